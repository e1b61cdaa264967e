"""What many ready tasks cost at their voters, and how soon a voter that is started again has them.

    python -m bench.ready --tasks 100000        # from the repository's root; profile local

Three nodes that all vote. The tasks ask for a label that no node has, so they are ready, and stay so. Memory is what the
node's process takes up more (PSS) than before the first of them; a restart counts from the start of the command to
the first answer in which all of them are counted, after SIGKILL.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

from mesh.bench.contestant import BenchError
from mesh.bench.idle import usage
from mesh.cli.arguments import whole_number
from mesh.errors import ConfigError, MeshError
from mesh.fleet.clearing import signals_as_exits, wait_until
from mesh.fleet.fleet import Fleet, NodeProcess

BATCH: Final = 100
TASKS_MAX: Final = 1_000_000
VOTERS: Final = 3
PATIENCE_S: Final = 120.0
SETTLE_S: Final = 5.0
WAITING: Final = {"argv": ["true"], "labels": {"nowhere": "yes"}}


def measure(tasks: int) -> dict[str, Any]:
    """Return the figures of one run, JSON-ready."""
    with Fleet("local") as fleet:
        first = fleet.start("n1")
        nodes = [first, fleet.start("n2", fleet.seed), fleet.start("n3", fleet.seed)]
        fleet.wait_whole(PATIENCE_S)
        wait_until(
            lambda: all(_voters(node) == VOTERS for node in nodes) or None,
            PATIENCE_S,
            lambda: BenchError(f"{VOTERS} voters are expected"),
        )
        before = [usage(node.pid).pss_mib for node in nodes]
        began = time.monotonic()
        for done in range(0, tasks, BATCH):
            batch = [WAITING] * min(BATCH, tasks - done)
            found = first.call("submit_many", tasks=batch)["tasks"]
            if refused := [one["error"] for one in found if "error" in one]:
                raise BenchError(f"all tasks are expected to be taken, found refused: {refused[0]}")
            _show(done + len(batch), tasks)
        took_s = time.monotonic() - began
        wait_until(
            lambda: all(_ready(node) == tasks for node in nodes) or None,
            PATIENCE_S,
            lambda: BenchError(f"{tasks} are expected, found {[_ready(n) for n in nodes]}"),
        )
        time.sleep(SETTLE_S)  # what was being handed in is freed
        grown_bytes = [
            (usage(node.pid).pss_mib - one) * 1024 * 1024 / tasks
            for node, one in zip(nodes, before, strict=True)
        ]
        return {
            "tasks": tasks,
            "acknowledged_per_s": round(tasks / took_s, 1),
            "bytes_a_task": [round(one) for one in grown_bytes],
            "restart_s": round(_restart(fleet, nodes[1], tasks), 2),
        }


def _restart(fleet: Fleet, node: NodeProcess, tasks: int) -> float:
    node.kill()
    began = time.monotonic()
    again = fleet.start(node.name, fleet.seed)
    wait_until(
        lambda: _ready(again) == tasks or None,
        PATIENCE_S,
        lambda: BenchError(f"{tasks} are expected, found {_ready(again)}"),
    )
    return time.monotonic() - began


def _voters(node: NodeProcess) -> int:
    found: list[Any] = node.call("status")["registers"]["voters"]
    return len(found)


def _ready(node: NodeProcess) -> int:
    found: int = node.call("tasks", limit=0)["counts"].get("ready", 0)
    return found


def _show(done: int, tasks: int) -> None:
    if sys.stderr.isatty():
        end = "\n" if done == tasks else ""
        print(f"\r{done} of {tasks} tasks", end=end, file=sys.stderr, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.ready",
        description="What many ready tasks cost at their voters, and how soon a restarted voter has them.",
    )
    parser.add_argument("--tasks", type=whole_number("--tasks", 1, TASKS_MAX), default=100_000)
    try:
        options = parser.parse_args(argv)
    except ConfigError as error:
        parser.error(str(error))
    try:
        with signals_as_exits():
            figures = measure(options.tasks)
    except MeshError as error:
        print(f"bench.ready: {error}", file=sys.stderr)
        return 1
    print(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
