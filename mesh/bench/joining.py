"""Start all members of a contestant, or one of them again, timed from the binding of sockets."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Final

from mesh.bench.contestant import BenchError, Contestant
from mesh.bench.ports import BindWatch
from mesh.bench.records import Join
from mesh.bench.sightings import Sight

BIND_TIMEOUT_S: Final = 60.0
WHOLE_TIMEOUT_S: Final = 120.0
RETURN_TIMEOUT_S: Final = 60.0
SLICE_S: Final = 0.5  # between two looks at whether those who are waited for run at all


def start_all(contestant: Contestant) -> Join:
    """Start every member, the first alone, and wait until all hold each other alive.

    Raises:
        BenchError: a socket was not bound, or they did not all meet, in time.
    """
    first, *others = contestant.members
    ports = contestant.ports
    with BindWatch(set(ports.values()), partial(_tables, contestant)) as watch:
        began_ns = time.time_ns()
        contestant.spawn(first, None)
        _bound(contestant, watch, [first])
        for member in others:
            contestant.spawn(member, first)
        bound_ns = max(_bound(contestant, watch, contestant.members).values())
    whole_ns = await_whole(contestant)
    return Join(
        nodes=len(ports),
        converged_ms=round(max(0, whole_ns - bound_ns) / 1e6, 1),
        took_ms=round((whole_ns - began_ns) / 1e6, 1),
    )


def await_whole(contestant: Contestant, timeout_s: float = WHOLE_TIMEOUT_S) -> int:
    """Wait until all members hold each other alive; return when the last came to, Unix time in ns.

    Raises:
        BenchError: they do not, in time, or one of them has ended.
    """
    members = contestant.members
    deadline = time.monotonic() + timeout_s
    while True:
        left_s = deadline - time.monotonic()
        whole_ns = contestant.log.wait_whole(members, min(max(left_s, 0.0), SLICE_S))
        contestant.check_runs(members)
        if whole_ns is not None:
            return whole_ns
        if left_s <= 0:
            raise BenchError(
                f"{contestant.name}: the {len(members)} members did not all hold each other alive "
                f"within {timeout_s:g} s"
            )


def bring_back(contestant: Contestant, member: str, seed: str) -> dict[str, float]:
    """Start a member again; return how long after its bind each other member saw it alive, in ms.

    Whoever did not in time is missing. Raises BenchError if its socket is not bound in time.
    """
    others = [name for name in contestant.members if name != member]
    with BindWatch({contestant.ports[member]}, partial(_tables, contestant)) as watch:
        began_ns = time.time_ns()
        contestant.spawn(member, seed)
        bound_ns = _bound(contestant, watch, [member])[member]
    seen_ns = contestant.log.wait_seen([Sight.ALIVE], member, others, began_ns, RETURN_TIMEOUT_S)
    return {name: round(max(0, at_ns - bound_ns) / 1e6, 1) for name, at_ns in seen_ns.items()}


def _tables(contestant: Contestant) -> list[Path]:
    return contestant.ground.tables(list(contestant.pids.values()))


def _bound(contestant: Contestant, watch: BindWatch, members: list[str]) -> dict[str, int]:
    ports = {contestant.ports[member]: member for member in members}
    deadline = time.monotonic() + BIND_TIMEOUT_S
    while True:
        left_s = deadline - time.monotonic()
        found = watch.wait(set(ports), min(max(left_s, 0.0), SLICE_S))
        contestant.check_runs(members)
        missing = [member for port, member in ports.items() if port not in found]
        if not missing:
            return {ports[port]: at_ns for port, at_ns in found.items()}
        if left_s <= 0:
            raise BenchError(
                f"{contestant.name}: {', '.join(missing)} should have bound a socket within {BIND_TIMEOUT_S:g} s"
            )
