"""Members that are only slow: each stands still now and then, for a moment or for longer, and goes on.

    n01  ──────▒▒▒─────────▒──────▒▒▒▒▒▒▒▒▒───      ▒ SIGSTOP, then SIGCONT
    n02  ───▒────────▒▒▒▒▒▒────────▒▒──────────      n03, n04: never stopped

Who is held dead because of that was accused falsely. Lengths are drawn evenly over their logarithm, so
that short moments and long ones have the same part, whatever a detector's patience is.
"""

from __future__ import annotations

import heapq
import math
import os
import random
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from mesh.bench.contestant import Contestant
from mesh.bench.sightings import Sight, Sighting

LENGTH_S: Final = {"local": (0.1, 5.0), "lan": (0.5, 12.0), "wan": (2.0, 40.0)}
"""The shortest and the longest pause."""

GAP_SHARES: Final = (0.1, 0.4)
"""How long a member runs between two pauses, of the longest pause."""


@dataclass(frozen=True, slots=True)
class Pause:
    """A member that stands still, in seconds or, once it was played, in Unix nanoseconds."""

    start: float
    end: float
    member: str


def plan_pauses(
    members: Sequence[str], seconds: float, lengths_s: tuple[float, float], rng: random.Random
) -> list[Pause]:
    """Return when which member pauses, ordered by start; none lasts beyond `seconds`."""
    shortest_s, longest_s = lengths_s
    found = []
    for member in members:
        at_s = 0.0
        while True:
            at_s += longest_s * rng.uniform(*GAP_SHARES)
            drawn = rng.uniform(math.log(shortest_s), math.log(longest_s))
            end_s = at_s + math.exp(drawn)
            if end_s > seconds:
                break
            found.append(Pause(at_s, end_s, member))
            at_s = end_s
    return sorted(found, key=lambda pause: (pause.start, pause.member))


def play_pauses(
    on: Contestant, plan: Iterable[Pause], seconds: float, tick: Callable[[float], None]
) -> list[Pause]:
    """Play the pauses and let `seconds` pass; return those that were played, in Unix ns. All run again then."""
    began_s, began_ns = time.monotonic(), time.time_ns()
    moments = [(pause.start, signal.SIGSTOP, pause.member) for pause in plan]
    moments += [(pause.end, signal.SIGCONT, pause.member) for pause in plan]
    heapq.heapify(moments)
    stopped: dict[str, int] = {}
    played = []
    try:
        while moments:
            at_s, number, member = heapq.heappop(moments)
            time.sleep(max(0.0, began_s + at_s - time.monotonic()))
            tick(at_s)
            on.check_runs([member])
            os.kill(on.pid(member), number)
            if number is signal.SIGSTOP:
                stopped[member] = time.time_ns()
            else:
                played.append(Pause(stopped.pop(member), time.time_ns(), member))
    finally:
        for member in stopped:
            if on.last_words(member) is None:
                os.kill(on.pid(member), signal.SIGCONT)
    time.sleep(max(0.0, (began_ns / 1e9 + seconds) - time.time()))
    return sorted(played, key=lambda pause: (pause.start, pause.member))


def accused_pauses(seen: Iterable[Sighting], pauses: Sequence[Pause]) -> set[tuple[str, float]]:
    """Return whose verdicts of death followed which pause of theirs, as member and the pause's start.

    However many members hold one dead after a pause, that counts once. A start of 0: nothing had been
    done to that member.
    """
    found = set()
    for one in seen:
        if one.sight is Sight.DEAD:
            starts = [
                pause.start
                for pause in pauses
                if pause.member == one.member and pause.start <= one.at_ns
            ]
            found.add((one.member, max(starts, default=0.0)))
    return found
