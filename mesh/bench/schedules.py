"""How long uneven tasks take on uneven slots: in a mesh, and by schedules on paper.

No schedule can be shorter than the longest task, nor than all of them spread evenly over all slots (the bound). Who
knows all durations comes close to that: the longest first. Who knows none can do no better than to give each slot
that is free the next task (the greedy schedule), and ends later by about the longest task, when the last of the
short ones are gone.

Source: our own.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from mesh.errors import LocalProtocolError


@dataclass(frozen=True, slots=True, kw_only=True)
class Makespan:
    """How long all tasks took, in seconds: in the mesh, and by schedules on paper."""

    mesh_s: float
    bound_s: float
    longest_first_s: float
    greedy_s: float
    """In the order in which the mesh began them."""

    def __str__(self) -> str:
        return (
            f"{self.mesh_s:.1f} s; {self.mesh_s / self.bound_s:.3f} of the bound, "
            f"{self.mesh_s / self.longest_first_s:.3f} of the longest first, "
            f"{self.mesh_s / self.greedy_s:.3f} of the greedy schedule"
        )


def compare(mesh_s: float, begun: Sequence[float], slots: int) -> Makespan:
    """Return what the mesh took beside what schedules on paper would. O(n log n).

    Args:
        mesh_s: from the first submission to the last end, in seconds.
        begun: the durations of all tasks in seconds, one at least, in the order in which the mesh began them.
        slots: of all members together, 1 or more.

    Raises:
        LocalProtocolError: there are no tasks, or no slots.
    """
    return Makespan(
        mesh_s=mesh_s,
        bound_s=bound_s(begun, slots),
        longest_first_s=greedy_s(sorted(begun, reverse=True), slots),
        greedy_s=greedy_s(begun, slots),
    )


def bound_s(durations: Sequence[float], slots: int) -> float:
    """Return what no schedule of these can fall below, in seconds.

    Raises:
        LocalProtocolError: there are no tasks, or no slots.
    """
    if not durations or slots < 1:
        raise LocalProtocolError(
            f"one task and one slot at least are expected, found {len(durations)} and {slots}"
        )
    return max(*durations, sum(durations) / slots)


def greedy_s(durations: Iterable[float], slots: int) -> float:
    """Return when the last of these ends, in seconds, where each goes in this order to the slot that is free first."""
    free_at = [0.0] * slots
    for duration_s in durations:
        heapq.heapreplace(free_at, free_at[0] + duration_s)
    return max(free_at)


def draw_durations(rng: Random, count: int, shortest_s: float, longest_s: float) -> list[float]:
    """Draw durations, in seconds, spread evenly over their orders of magnitude: between 0.05 and 5 s, half last 0.5 s at most."""
    ratio = longest_s / shortest_s
    return [shortest_s * ratio ** rng.random() for _ in range(count)]
