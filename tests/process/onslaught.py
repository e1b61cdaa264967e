"""A node under fire, watched from outside: it answers, it stays small, and it is the same afterwards."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from mesh.bench.idle import usage
from mesh.core.address import Address, split_host_port
from mesh.errors import CommandRefused
from mesh.fleet.clearing import wait_until
from mesh.fleet.fleet import Fleet, NodeProcess

ANSWER_S = 2.0
"""Nine answers of ten come within this; the last one may meet a machine that stalls."""

PATIENCE_S = 30.0
SAMPLE_S = 0.1
_FLEETING = ("rtt_ms", "load", "used")
"""What changes in a member's row while nothing happens."""

_ACCUSATIONS = {"suspect", "dead", "conflict"}


class Watch:
    """Asks for the members, over and over, and weighs the process meanwhile."""

    def __init__(self, node: NodeProcess) -> None:
        self.answers_s: list[float] = []
        self.rss_mib: list[float] = []
        self.failure = ""
        self._node = node
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch of {node.name}", daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._is_over.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), f"{self._node.name} does not answer any more"
        assert not self.failure, self.failure

    def wait_answers(self, count: int) -> None:
        """Go on when the node has answered `count` times more."""
        wanted = len(self.answers_s) + count
        wait_until(
            lambda: len(self.answers_s) >= wanted or bool(self.failure) or None,
            PATIENCE_S,
            lambda: AssertionError(f"{self._node.name} does not answer any more"),
        )

    def _run(self) -> None:
        try:
            while not self._is_over.wait(SAMPLE_S):
                begin = time.monotonic()
                self._node.call("members")
                self.answers_s.append(time.monotonic() - begin)
                self.rss_mib.append(usage(self._node.pid).rss_mib)
        except Exception as error:  # noqa: BLE001 - told by the test's own thread
            self.failure = f"{type(error).__name__}: {error}"


@contextmanager
def onslaught(
    fleet: Fleet,
    target: NodeProcess,
    *,
    growth_mib_max: float,
    besides: Collection[str] = (),
    tasks: Collection[str] = (),
) -> Iterator[Watch]:
    """Check that what the block does to `target` harms nobody.

    Members called as in `besides` and the tasks of the ids `tasks` may come and go in it.
    """
    nodes = fleet.running()
    before = {node.name: state(node, besides, tasks) for node in nodes}
    pids = {node.name: node.call("status")["pid"] for node in nodes}
    begin_ns, small_mib = time.time_ns(), usage(target.pid).rss_mib
    watch = Watch(target)
    try:
        yield watch
        watch.wait_answers(3)
    finally:
        watch.end()
    growth_mib = max(watch.rss_mib) - small_mib
    answers = sorted(watch.answers_s)
    print(
        f"{len(answers)} answers, median {answers[len(answers) // 2]:.3f} s, "
        f"longest {answers[-1]:.3f} s; {small_mib:.1f} MiB and {growth_mib:+.1f} MiB"
    )
    assert answers[len(answers) * 9 // 10] < ANSWER_S
    assert growth_mib < growth_mib_max
    for node in nodes:
        assert node.call("status")["pid"] == pids[node.name]
        assert accusations(node, begin_ns) == []
        after = state(node, besides, tasks)
        changed = [k for k in after if after[k] != before[node.name][k]]
        assert not changed, f"{node.name}: {[(before[node.name][k], after[k]) for k in changed]}"


def state(
    node: NodeProcess, besides: Collection[str] = (), tasks: Collection[str] = ()
) -> dict[str, Any]:
    """Return what a node shows of the mesh and its work, without what changes by itself."""
    members = [
        {key: value for key, value in row.items() if key not in _FLEETING}
        for row in node.call("members")
        if row["name"] not in besides
    ]
    found = node.call("tasks")
    kept = sorted((t for t in found["tasks"] if t["id"] not in tasks), key=lambda t: str(t["id"]))
    return {"members": members, "tasks": kept}


def accusations(node: NodeProcess, since_ns: int) -> list[dict[str, Any]]:
    """Return the events since then in which a member was suspected or given up."""

    def told() -> list[dict[str, Any]] | None:
        with node.client() as client, suppress(CommandRefused):  # places become free one by one
            return list(client.stream("events", follow=False, last=2_000))
        return None

    events = wait_until(told, PATIENCE_S, lambda: AssertionError("it has no place for us"))
    return [e for e in events if e["at_ns"] >= since_ns and e["kind"] in _ACCUSATIONS]


def address_of(node: NodeProcess) -> Address:
    return Address(*split_host_port(node.call("status")["address"]))


def counters(node: NodeProcess) -> dict[str, int]:
    found: dict[str, int] = node.call("status")["counters"]
    return found
