"""The plain scheme: all who are called answer with a score after 100 ms, and the highest takes the task, asking nobody.

    caller ──call──► every member ──waits 100 ms ± 10 %──► tells all others its score
                          └──── has waited until the last answer must be there: heard of no better one? takes the task

Nobody grants anything, so whoever did not hear of a better one believes to be the best, and a lost datagram makes two
owners. Everybody waits as long as the slowest answer can take, for whoever heard of the call last: where nothing is
lost, nothing is too late. (A shorter wait would be quicker, by what delays vary, and wrong more often.)

The same network, the same members and the same fitness as Mesh's contest, each at the same moment. Members that
cannot take the task keep silent.

Source: our own.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from mesh.sim.network import Conditions, Network

ANSWER_S: Final = 0.1
SPREAD: Final = 0.1
"""An answer comes after 100 ms, 10 % more or less, evenly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one contest. Members are numbers, from 0."""

    owners: tuple[int, ...]
    """Who took the task, the first first; more than one: all but one were wrong."""

    answers: int
    grant_s: float | None
    """From the call until somebody took the task; None: nobody did."""


def patience_s(conditions: Conditions) -> float:
    """Return how long a member waits for answers, from when it heard of the call."""
    apart_s = conditions.delay_s_max - conditions.delay_s  # as far as two hear of one call
    return ANSWER_S * (1 + SPREAD) + conditions.delay_s_max + apart_s


def play(
    network: Network, rng: random.Random, caller: int, scores: Sequence[float | None]
) -> Outcome:
    """Play one contest over all members; `scores` as they are, None for one that cannot take the task.

    O(members log members) without loss, and next to that with a few percent of it.
    """
    called_s: dict[int, float] = {}
    for member, score in enumerate(scores):
        # Whoever calls takes part as if it had heard of it with the others: it would be too early for them.
        is_own = member == caller
        at_s = network.conditions.delay_s if is_own else _arrival_s(network, 0.0, caller, member)
        if score is not None and at_s is not None:
            called_s[member] = at_s
    answered_s = {
        member: heard_s + ANSWER_S * rng.uniform(1 - SPREAD, 1 + SPREAD)
        for member, heard_s in called_s.items()
    }
    # Of two with one score the lower number counts as the better, to all alike.
    ranked = sorted(called_s, key=lambda one: (-(scores[one] or 0.0), one))
    taken: list[tuple[float, int]] = []
    for place, member in enumerate(ranked):
        until_s = called_s[member] + patience_s(network.conditions)
        heard = (
            _arrival_s(network, answered_s[better], better, member) for better in ranked[:place]
        )
        if not any(at_s is not None and at_s <= until_s for at_s in heard):
            taken.append((until_s, member))
    taken.sort()
    return Outcome(
        owners=tuple(member for _, member in taken),
        answers=len(answered_s),
        grant_s=taken[0][0] if taken else None,
    )


def _arrival_s(network: Network, now_s: float, sender: int, receiver: int) -> float | None:
    """Return when a word arrives; None: never."""
    return next(iter(network.datagram_arrivals(now_s, sender, receiver)), None)
