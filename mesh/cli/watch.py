"""`members`, `events`, `status` and `top`: look at the mesh through this host's node."""

from __future__ import annotations

import argparse
from typing import Any, Final

from mesh.cli.arguments import Commands, add_command, add_data, add_json, data_dirs, whole_number
from mesh.cli.local_node import first_answering, local_node

LAST_MAX = 2_000  # what a node holds
LONG_DEAD_S = 86_400.0
"""The dead are tried for ever, so they are listed for ever; people see those of the last day."""

_MEMBER_COLUMNS: Final = (
    ("NAME", None),
    ("STATE", None),
    ("FOR", None),
    ("ADDRESS", None),
    ("RTT", None),
    ("SLOTS", None),
    ("LOAD", None),
    ("POOL", "default"),
    ("CLASS", "general"),
    ("LABELS", "-"),
)
"""The columns, and what all members have in those that are left out then."""


MEMBERS_WORDS: Final = """\
FOR     how long it has been so
RTT     the round trip of its answers, smoothed
SLOTS   taken and in all: how many tasks run there, and may run at once
LOAD    the load average of its last minute, in per cent of all its processors: who wanted to run there. 100% keeps
        each processor busy, beyond that processes wait for one (`load` in JSON: 1.0 is 100%). It lags behind by that
        minute. How much of the processors is idle just now is another figure, which contests weigh: mesh why ID

Pools, classes and labels are shown where a member has one of its own.
"""


def add_commands(commands: Commands) -> None:
    """Add this group's commands."""
    members = add_command(commands, "members", show_members, "list the members of the mesh")
    members.formatter_class = argparse.RawDescriptionHelpFormatter
    members.epilog = MEMBERS_WORDS
    members.add_argument(
        "--all", action="store_true", help="show those too who have been dead for more than a day"
    )
    events = add_command(commands, "events", show_events, "show what this node saw happen")
    events.add_argument(
        "--follow", action="store_true", help="go on with every new event until Ctrl-C"
    )
    events.add_argument(
        "--last",
        metavar="N",
        type=whole_number("--last", 0, LAST_MAX),
        default=None,
        help="only the last N events (default: all that are held, with --follow the last 10)",
    )
    top = add_command(commands, "top", show_top, "watch the mesh live; q quits")
    status = add_command(commands, "status", show_status, "show this node's own state")
    for parser in (members, events, top, status):
        add_data(parser)
    add_json(members)
    add_json(status)
    add_json(events, "print one JSON object a line")


def show_members(options: argparse.Namespace) -> int:
    """Print every member that this node knows."""
    from mesh.cli.text import print_json, table
    from mesh.core.order import natural

    with local_node(options) as client:
        phase = client.call("status")["phase"]
        members = sorted(client.call("members"), key=lambda m: natural(m["name"]))
    if options.json:
        print_json(members)
    else:
        shown = members if options.all else [m for m in members if not _is_long_dead(m)]
        told = [
            number
            for number, (title, value) in enumerate(_MEMBER_COLUMNS)
            if value is None or any(_cell(member, title.lower()) != value for member in shown)
        ]
        rows = [_member_row(member, phase) for member in shown]
        headings = [_MEMBER_COLUMNS[number][0] for number in told]
        print(table(headings, [[row[number] for number in told] for row in rows]))
        hidden = len(members) - len(shown)
        if hidden:
            print(f"not shown: {hidden} dead for more than a day; mesh members --all shows them")
    return 0


def _cell(member: dict[str, Any], key: str) -> str:
    """Return what a member declares, as text: labels as `key=value`, "-" for none."""
    if key == "class":
        from mesh.core.member_class import class_words

        # A node that runs since before an upgrade says less.
        queues, availability = member.get("queues", ()), member.get("availability", "")
        return class_words(member["class"], queues, availability)
    if key != "labels":
        return str(member[key])
    return " ".join(f"{name}={value}" for name, value in sorted(member["labels"].items())) or "-"


def _is_long_dead(member: dict[str, Any]) -> bool:
    import time

    return bool(member["state"] == "dead" and time.time() - member["since"] > LONG_DEAD_S)


def _member_row(member: dict[str, Any], phase: str) -> tuple[object, ...]:
    from mesh.cli.text import since
    from mesh.core.load import format_load

    is_up = member["state"] in {"alive", "suspect"}
    rtt_ms, used, load = member["rtt_ms"], member["used"], member["load"]
    slots = member["slots"] if used is None or not is_up else f"{used}/{member['slots']}"
    return (
        f"{member['name']} (me)" if member.get("self") else member["name"],
        _state(member, phase),
        since(member["since"]),
        member["address"],
        "-" if rtt_ms is None or not is_up else f"{rtt_ms:.1f}ms",
        slots,
        "-" if load is None or not is_up else format_load(load),
        *(_cell(member, key) for key in ("pool", "class", "labels")),
    )


def _state(member: dict[str, Any], phase: str) -> str:
    """Return a member's state, with the cause of a death; of this node also that it is on its way in or out."""
    if member.get("self") and phase in {"seeking", "leaving"}:
        return phase
    return f"{member['state']} ({member['cause']})" if member["cause"] else str(member["state"])


def show_events(options: argparse.Namespace) -> int:
    """Print the events that this node holds, oldest first, and with `--follow` every new one."""
    from mesh.cli.event_line import event_line
    from mesh.cli.text import print_json

    last = options.last
    if last is None:
        last = 10 if options.follow else LAST_MAX
    with local_node(options) as client:
        client.call("status")  # a stream is waited for without end: is anybody there?
        for event in client.stream("events", follow=options.follow, last=last):
            if options.json:
                print_json(event, is_line=True)
            else:
                print(event_line(event), flush=True)
    return 0


def show_status(options: argparse.Namespace) -> int:
    """Print what this node says of itself."""
    from mesh.cli.status_text import voters_text
    from mesh.cli.text import facts, print_json
    from mesh.core.time import format_duration

    with local_node(options) as client:
        status = client.call("status")
    if options.json:
        print_json(status)
        return 0
    dropped = ", ".join(
        f"{name} {count}" for name, count in sorted(status["counters"].items()) if count
    )
    print(
        facts(
            [
                ("name", status["name"]),
                ("phase", status["phase"]),
                ("address", status["address"]),
                ("node", f"{status['node_id']} (session {status['boot']})"),
                ("mesh", status["mesh_id"] or "none yet"),
                ("profile", status["profile"]),
                ("voters", voters_text(status["registers"])),
                *_standstill(status["registers"]),
                ("slots", f"{status['used']} of {status['slots']} in use{_closed(status)}"),
                ("process", f"{status['pid']}, up for {format_duration(status['uptime_s'])}"),
                ("data", status["data"]),
                ("started by", status.get("command") or "-"),
                ("sent", _traffic(status["sent"])),
                ("received", _traffic(status["received"])),
                ("counters", dropped or "-"),
                ("version", status["version"]),
            ]
        )
    )
    return 0


def _closed(status: dict[str, Any]) -> str:
    """Return whether the node takes nothing just now; of one before an upgrade it is not known."""
    availability = status.get("availability", "open")
    return "" if availability == "open" else f", and takes no tasks: {availability}"


def _standstill(registers: dict[str, Any]) -> list[tuple[str, str]]:
    text = registers.get("standstill", "")
    return [("tasks", f"stand still: {text}")] if text else []


def _traffic(counts: dict[str, int]) -> str:
    from mesh.cli.text import size

    return (
        f"{counts['datagrams']} datagrams ({size(counts['datagram_bytes'])}), "
        f"{counts['frames']} frames ({size(counts['frame_bytes'])})"
    )


def show_top(options: argparse.Namespace) -> int:
    """Show the live screen until `q`."""
    from mesh.tui.top import run_top

    return run_top(first_answering(data_dirs(options)))
