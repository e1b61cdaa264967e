"""`leave` and `drain`: let this host's node go, at once or when what runs on it has ended.

Its tasks are the mesh's, and stay. What it runs is stopped and let go, for others to run: `leave` at once, `drain`
after a time in which it may end by itself. A voter without which too few are left for anything to be stored stays,
unless it is forced: all task work of the others would stand still.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any, Final

from mesh.cli.arguments import Commands, add_command, add_data, data_dir
from mesh.cli.local_node import node_at
from mesh.cli.stdio import complain
from mesh.cli.times import duration
from mesh.errors import MeshError, MeshUnreachable

if TYPE_CHECKING:
    from pathlib import Path

LEAVE_TIMEOUT_S: Final = 30.0
"""From when nothing more runs there until it has stopped."""

POLL_S: Final = 0.05
POLL_S_MAX: Final = 0.5
WITHIN_S: Final = 600.0
WITHIN_S_MAX: Final = 30 * 86_400.0


def add_commands(commands: Commands) -> None:
    """Add this group's commands."""
    leave = add_command(commands, "leave", run_leave, "let this host's node leave and stop")
    drain = add_command(
        commands, "drain", run_drain, "let what runs on this host's node end, then let it leave"
    )
    drain.add_argument(
        "--within",
        metavar="DURATION",
        type=duration("--within", 0, WITHIN_S_MAX),
        default=WITHIN_S,
        help="what still runs after that is stopped and run elsewhere (default: 10m)",
    )
    for parser in (leave, drain):
        parser.add_argument(
            "--force",
            action="store_true",
            help="even if too few voters are left then, and the others' task work stands still",
        )
        add_data(parser)


def run_leave(options: argparse.Namespace) -> int:
    """Ask the node to leave and wait until it has stopped."""
    return _leave(options, "asked by mesh leave", 0.0)


def run_drain(options: argparse.Namespace) -> int:
    """Ask the node to take nothing more and to leave once it is idle, and wait until it has stopped."""
    return _leave(options, "asked by mesh drain", options.within)


def _leave(options: argparse.Namespace, reason: str, within_s: float) -> int:
    directory = data_dir(options)
    with node_at(directory) as client:
        status = client.call("status")
        parting = status["registers"].get("parting", "") if status.get("phase") != "leaving" else ""
        if parting and not options.force:
            raise MeshError(
                f"{parting}: start the others again first, or leave all the same with --force"
            )
        view = next(item["view"] for item in client.stream("views") if "view" in item)
    with node_at(directory) as client:
        client.call("leave", reason=reason, within_s=within_s)
    from mesh.tasks.words import of_those_that_run

    if parting:
        complain(parting)
    if text := of_those_that_run([task["id"] for task in view["running"]], within_s):
        complain(text)
    if text := _unfinished(view):
        complain(text)
    _wait_gone(directory, within_s + LEAVE_TIMEOUT_S)
    return 0


def _wait_gone(directory: Path, timeout_s: float) -> None:
    """Return once no node answers there.

    Raises:
        MeshError: one still does after `timeout_s`.
    """
    from mesh.core.time import format_duration

    deadline = time.monotonic() + timeout_s
    pause_s = POLL_S
    while time.monotonic() < deadline:
        try:
            with node_at(directory) as client:
                client.call("status")
        except MeshUnreachable:
            return
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, POLL_S_MAX)
    raise MeshError(
        f"the node was told to leave and should have stopped within {format_duration(timeout_s)}, but still "
        "answers; see its log"
    )


def _unfinished(view: dict[str, Any]) -> str:
    """Say what becomes of unfinished tasks when nobody else is left to run them; "" if somebody is."""
    others = [m for m in view["members"] if not m["self"] and m["state"] in {"alive", "suspect"}]
    counts = view["task_counts"]
    count = sum(counts.get(state, 0) for state in ("scheduled", "ready", "leased"))
    if others or not count:
        return ""
    tasks = "1 unfinished task" if count == 1 else f"{count} unfinished tasks"
    return f"no other member is left to run {tasks}: kept in {view['node']['data']} until a node runs there again"
