"""How long until a task that ran, or was about to, runs at another node.

    python -m bench.handover --rounds 20 --json FILE        # from the repository's root; profile local

    killed        SIGKILL of the node that runs it; its guardian lives
    both_killed   SIGKILL of node and guardian
    stopped       SIGSTOP of the node: it is silent, and nothing is proved
    cut           the node's host is cut off (network namespaces: root)
    drained       the node is told to leave at once
    home_killed   the node to which the task's key points is killed, and the task is submitted just then, elsewhere

Counted from just before the fault (of the last: from the submission) to the first line of the command, on one
clock; the command's own start is in it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from bench.faults.stage import PROFILE, Stage
from mesh.bench.ledger import Ledger, now_ns
from mesh.bench.namespaces import why_not
from mesh.client import Client
from mesh.core.ids import NodeId
from mesh.errors import MeshError
from mesh.fleet.clearing import signals_as_exits
from mesh.placement.rendezvous import rank

HOLD_S: Final = 600.0
START_S: Final = 30.0
MOVE_S: Final = 60.0
CUT: Final = ("-A INPUT -i eth0 -j DROP", "-A OUTPUT -o eth0 -j DROP")

Break = Callable[[Stage, str], Callable[[], None]]
"""Breaks a node, and returns what mends it."""


def _killed(stage: Stage, name: str) -> Callable[[], None]:
    pid = stage.node(name).pid
    os.kill(pid, signal.SIGKILL)
    return lambda: _again(stage, name, pid)


def _both_killed(stage: Stage, name: str) -> Callable[[], None]:
    pid = stage.node(name).pid
    stage.signal([stage.node(name).outer_pid, pid], signal.SIGKILL)
    return lambda: _again(stage, name, pid)


def _stopped(stage: Stage, name: str) -> Callable[[], None]:
    pid = stage.node(name).pid
    os.kill(pid, signal.SIGSTOP)
    return lambda: os.kill(pid, signal.SIGCONT)


def _cut(stage: Stage, name: str) -> Callable[[], None]:
    stage.rule(name, *CUT)
    return lambda: stage.unrule(name)


def _drained(stage: Stage, name: str) -> Callable[[], None]:
    pid = stage.node(name).pid
    stage.node(name).call("leave", reason="benchmark")
    return lambda: _again(stage, name, pid)


def _again(stage: Stage, name: str, pid: int) -> None:
    stage.wait_gone(name, pid)
    stage.restart(name)


BREAKS: Final[dict[str, Break]] = {
    "killed": _killed,
    "both_killed": _both_killed,
    "stopped": _stopped,
    "cut": _cut,
    "drained": _drained,
    "home_killed": _killed,
}
APART: Final = frozenset({"cut"})


def running_task(stage: Stage, ledger: Ledger, act: Break) -> float:
    """Break the node that runs a task; return after how many ms it runs elsewhere."""
    asked = stage.names[0]
    task_id = stage.node(asked).call("submit", argv=ledger.argv(HOLD_S))["id"]
    first = ledger.wait(task_id, 1, START_S)
    owner = next(name for name in stage.running() if stage.node(name).pid == first.node_pid)
    began_ns = now_ns()
    mend = act(stage, owner)
    second = ledger.wait(task_id, 2, MOVE_S)
    _end(stage, owner, task_id, mend)
    return (second.at_ns - began_ns) / 1e6


def new_task(stage: Stage, ledger: Ledger, act: Break) -> float:
    """Break a task's home and submit the task elsewhere at that moment; return after how many ms it runs."""
    names = stage.names
    home, door = names[-1], stage.node(names[0])
    ids = stage.ids()
    keys = (f"key-{number}" for number in range(100_000))
    key = next(
        key for key in keys if rank(key, [(NodeId(ids[n]), 1) for n in names])[0] == ids[home]
    )
    with Client(door.data) as client:
        client.call("status")  # connected, before the clock is read
        mend = act(stage, home)
        began_ns = now_ns()
        task_id = client.call("submit", argv=ledger.argv(HOLD_S), key=key)["id"]
    started = ledger.wait(task_id, 1, MOVE_S)
    _end(stage, home, task_id, mend)
    return (started.at_ns - began_ns) / 1e6


def _end(stage: Stage, broken: str, task_id: str, mend: Callable[[], None]) -> None:
    """Take the task away, let the node be back, and all find together again."""
    other = next(name for name in stage.running() if name != broken)
    stage.node(other).call("cancel", id=task_id)
    mend()
    stage.wait_whole()
    stage.wait_voters()


def play(name: str, rounds: int, nodes: int) -> list[float]:
    """Return the times of one kind, in ms, in the order in which they were measured."""
    one = new_task if name.startswith("home") else running_task
    place: AbstractContextManager[str] = tempfile.TemporaryDirectory(prefix="mesh-handover-")
    with place as home, Stage(nodes, is_apart=name in APART) as stage:
        ledger = Ledger(Path(home) / "ledger")
        stage.start_all()
        return [one(stage, ledger, BREAKS[name]) for _ in range(rounds)]


def row(name: str, times_ms: Sequence[float]) -> str:
    """Return one kind as a line."""
    return (
        f"{name:<12}  {len(times_ms)} rounds  first {min(times_ms):.0f}  median {statistics.median(times_ms):.0f}  "
        f"worst {max(times_ms):.0f} ms"
    )


def main(arguments: list[str]) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.handover", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "kinds", nargs="*", metavar="KIND", help=f"{', '.join(BREAKS)} (default: all)"
    )
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--nodes", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE")
    wanted = parser.parse_args(arguments)
    if unknown := set(wanted.kinds) - BREAKS.keys():
        parser.error(
            f"no kind is called {', '.join(sorted(unknown))}; there are {', '.join(BREAKS)}"
        )
    found: dict[str, list[float]] = {}
    failures: dict[str, str] = {}
    with signals_as_exits():
        for name in wanted.kinds or BREAKS:
            if name in APART and (reason := why_not()):
                print(f"{name}: left out: {reason}", flush=True)
                continue
            try:
                found[name] = [round(one, 1) for one in play(name, wanted.rounds, wanted.nodes)]
                print(row(name, found[name]), flush=True)
            except MeshError as error:
                failures[name] = str(error)
                print(f"{name}: FAILED: {error}", flush=True)
    if wanted.json is not None:
        settings = {"profile": PROFILE, "nodes": wanted.nodes, "rounds": wanted.rounds}
        result = {"settings": settings, "times_ms": found, "failures": failures}
        wanted.json.write_text(json.dumps(result, indent=1) + "\n")
    return 1 if failures else 0


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main(sys.argv[1:]))
