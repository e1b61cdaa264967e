"""`join`: make this host a member."""

from __future__ import annotations

import argparse
import errno
import gc
import os
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from mesh.cli.arguments import (
    Commands,
    Parser,
    add_command,
    add_data,
    amount,
    data_dir,
    decimal,
    distinct,
    network_address,
    pair,
    user_path,
    whole_number,
)
from mesh.cli.hook_arguments import add_hooks, hook_settings
from mesh.cli.leave import WITHIN_S_MAX
from mesh.cli.times import duration
from mesh.core.limits import EXPECT_MAX, SLOTS_MAX
from mesh.errors import (
    DataDirectoryError,
    TransportError,
)

if TYPE_CHECKING:
    import socket

    from mesh.runtime.settings import AgentSettings

BIND: Final = "127.0.0.1:7946"
BIND_WITH_KEY: Final = "0.0.0.0:7946"
COMMAND_CHARS_MAX: Final = 4096
PAUSE_TOLERANCE_S_MIN: Final = 0.1
PAUSE_TOLERANCE_S_MAX: Final = 600.0


def add_commands(commands: Commands) -> None:
    """Add this group's commands."""
    join = add_command(commands, "join", run_join, "make this host a member: found or join a mesh")
    seed = network_address("SEED")
    join.add_argument(
        "seeds",
        metavar="SEED",
        nargs="*",
        type=seed,
        help=(
            "members to ask, as HOST or HOST:PORT; without any, this node returns to the mesh it was in, "
            "or founds one"
        ),
    )
    add_data(join)
    join.add_argument(
        "--name",
        metavar="NAME",
        default=None,
        help=(
            "what this node is called; once is enough, the data directory keeps it (default: the host's name; where "
            "another member has that, the beginning of the node's id follows)"
        ),
    )
    _add_network(join)
    _add_offers(join)
    join.add_argument(
        "--profile",
        metavar="NAME",
        default="lan",
        help="how patient membership is: local, lan or wan (default: lan)",
    )
    join.add_argument(
        "--pause-tolerance",
        metavar="SECONDS",
        type=decimal("--pause-tolerance", PAUSE_TOLERANCE_S_MIN, PAUSE_TOLERANCE_S_MAX),
        default=None,
        help=(
            "how long a suspect may be silent before this node holds it dead (default: the profile's, local 1, "
            "lan 3, wan 10)"
        ),
    )
    join.add_argument(
        "--evidence",
        metavar="WHAT",
        default="all",
        help="what a crash is told by: all, or none but silence, to compare with (default: all)",
    )
    join.add_argument("--found", action="store_true", help="found a mesh, even with seeds")
    join.add_argument(
        "--expect",
        metavar="N",
        type=whole_number("--expect", 1, EXPECT_MAX),
        default=0,
        help="found a mesh once N nodes that were given the same seeds have met",
    )
    _add_processes(join)
    add_hooks(join)


def _add_network(join: Parser) -> None:
    """Add where this node listens, how others reach it, and the key that they share."""
    join.add_argument(
        "--bind",
        metavar="HOST:PORT",
        type=network_address("--bind", is_bind=True),
        default=None,
        help=(
            "where to listen, UDP and TCP (default: port 7946, with a key on all of this host's IPv4 addresses, "
            "without one on loopback; port 0: any free one)"
        ),
    )
    join.add_argument(
        "--advertise",
        metavar="HOST:PORT",
        type=network_address("--advertise"),
        default=None,
        help=(
            "what others are told to send to, whatever becomes of this host's addresses (default: what is bound; of "
            "all addresses the one that faces the members, another when that changes)"
        ),
    )
    join.add_argument(
        "--key",
        metavar="FILE",
        default=None,
        help=(
            "the key that all members share (mesh keygen makes one), needed beyond loopback; once is enough, "
            "the data directory keeps it"
        ),
    )


def _add_offers(join: Parser) -> None:
    """Add what this node offers to tasks."""
    join.add_argument(
        "--slots",
        metavar="N",
        type=whole_number("--slots", 0, SLOTS_MAX),
        default=None,
        help="how many tasks run here at once (default: the number of processors; 0: none; more than 10000 are not used)",
    )
    join.add_argument("--pool", metavar="NAME", default="default", help="default: default")
    join.add_argument(
        "--class",
        metavar="NAME",
        default="general",
        help=(
            "general; dedicated: takes the tasks of its queues, before others do (by contest unless others are much fitter), and no others; emergency: takes tasks once "
            "more than 0.8 of the slots of its pool were in use for 5 s, until less than 0.6 are, and at any time those that "
            "ask for this class; any other word that tasks may ask for (default: general)"
        ),
    )
    join.add_argument(
        "--queue",
        metavar="NAME",
        action="append",
        default=[],
        help="a queue that a dedicated node is for; may be given several times",
    )
    for flag, metavar, reader, text in (
        ("--label", "KEY=VALUE", pair("--label"), "what tasks may ask for"),
        ("--offer", "KEY=N", amount("--offer"), "an amount that tasks' needs count against"),
    ):
        join.add_argument(
            flag, metavar=metavar, type=reader, action="append", default=[], help=text
        )


def _add_processes(join: Parser) -> None:
    """Add what stands beside the node: its screen, its guardian."""
    # Said by main: else this process is not given away, and nobody knows how it was started.
    join.set_defaults(is_program=False, given=())
    join.add_argument(
        "--headless", action="store_true", help="log lines instead of the screen, on a terminal too"
    )
    join.add_argument(
        "--drain",
        metavar="DURATION",
        type=duration("--drain", 0, WITHIN_S_MAX),
        default=0.0,
        help=(
            "how long running tasks may go on after SIGTERM or Ctrl-C, before they are stopped and run elsewhere "
            "(default: 0s)"
        ),
    )
    join.add_argument(
        "--no-guardian",
        action="store_true",
        help=(
            "one process instead of two; what commands have started in the background then outlives a node that is "
            "killed, and nobody clears it away"
        ),
    )


def run_join(options: argparse.Namespace) -> int:
    """Run a node until it is told to stop; on a terminal with the screen before it.

    The first process of a `mesh join` does not return from here: it becomes the guardian.
    """
    import sys

    guardian, why_alone = _guardian(options)
    settings = _settings(options)
    gc.collect()  # what reading the command line took is used again for what comes now
    from mesh.client import last_start
    from mesh.runtime.agent import run_agent

    try:
        if options.headless or not (sys.stdin.isatty() and sys.stdout.isatty()):
            return run_agent(settings, guardian, why_alone=why_alone)
        from mesh.cli.joined_screen import joined_screen

        with joined_screen(settings.data_dir):
            return run_agent(settings, guardian, why_alone=why_alone)
    except DataDirectoryError as error:
        if isinstance(error.__cause__, BlockingIOError) and options.data is None:
            line = _second_node("DIR", options.seeds)
            raise DataDirectoryError(f"{error}; another node on this host: {line}") from error
        raise
    except TransportError as error:
        if error.errno == errno.EADDRINUSE and options.bind is None:
            data = str(data_dir(options)) if options.data else None
            if data is not None and (again := last_start(data_dir(options))):
                raise TransportError(
                    f"{BIND} is taken, and this node was another time started by: {again}"
                ) from error
            line = _second_node(data, options.seeds)
            raise TransportError(f"{BIND} is taken; another node on this host: {line}") from error
        raise


def _guardian(options: argparse.Namespace) -> tuple[socket.socket | None, str]:
    """Return the link to the guardian that started this process, or why there is none."""
    from mesh.runtime.guarded import RECORD, go_under_guardian, take_link, take_reason

    guardian, why_alone = take_link(os.environ), take_reason(os.environ)
    if guardian is not None or why_alone:
        return guardian, why_alone
    if options.no_guardian:
        return None, "as asked"
    if not options.is_program:
        return None, "this process has more to do than to be a node"
    return None, go_under_guardian(data_dir(options) / RECORD)


def _second_node(data: str | None, seeds: Sequence[str]) -> str:
    """Return the command that starts one more node on a host, beside the one at the default port."""
    given = [] if data is None else ["--data", data]
    return shlex.join(["mesh", "join", *given, "--bind", "127.0.0.1:0", *(seeds or [BIND])])


def _command(options: argparse.Namespace) -> str:
    """Return the shell line that starts this node again, with the data directory if only the environment named it.

    "" if it is not known, or is none to be shown: too long, or not printable.
    """
    if not options.given:
        return ""
    command, *words = options.given
    if not options.data and os.environ.get("MESH_DATA"):
        words = ["--data", str(data_dir(options)), *words]
    line = shlex.join(["mesh", command, *words])
    return line if line.isprintable() and len(line) <= COMMAND_CHARS_MAX else ""


def _settings(options: argparse.Namespace) -> AgentSettings:
    """Return what was asked for, checked as far as it can be before anything is opened."""
    from dataclasses import replace

    from mesh.core.address import split_host_port
    from mesh.runtime.settings import AgentSettings

    bind = split_host_port(options.bind or BIND)
    settings = AgentSettings(
        data_dir=data_dir(options),
        name=options.name,
        bind=bind,
        advertise=None if options.advertise is None else split_host_port(options.advertise),
        slots=options.slots,
        pool=options.pool,
        node_class=getattr(options, "class"),
        queues=tuple(options.queue),
        labels=distinct("--label", options.label),
        offers=distinct("--offer", options.offer),
        key_file=None if options.key is None else user_path("--key", options.key),
        profile=options.profile,
        evidence=options.evidence,
        drain_s=options.drain,
        pause_tolerance_s=options.pause_tolerance,
        seeds=tuple(options.seeds),
        found=options.found,
        hooks=hook_settings(options),
        expect=options.expect,
        command=_command(options),
        fault_hook=os.environ.get("MESH_FAULT_HOOK") == "1",
    )
    settings.check()
    if options.bind is None and not settings.reach().is_loopback_only:
        settings = replace(settings, bind=split_host_port(BIND_WITH_KEY))
    return settings
