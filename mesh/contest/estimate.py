"""The fitness that a node expects of others, from what it knows of them.

Each node makes its own estimates: of those whom it would call, and of those that were called with it. What it
does not know (what a member has in its caches, how it did with such tasks) counts as neither good nor bad.

Source: our own.
"""

from __future__ import annotations

from typing import Final

from mesh.contest.fitness import Circumstances, Fitness, Weights, fitness
from mesh.contest.known import Known
from mesh.contest.rank import bucket
from mesh.core.ids import NodeId
from mesh.placement.live_view import LiveMember, Wants
from mesh.placement.rendezvous import hash64
from mesh.wire.task_messages import Offer

COMPARED: Final = Weights(lag=0, history=0, checkpoint=0, warm=0, distance=0, zone=0)
"""What members know of each other, and so can be compared by. Of the other parts each knows its own alone: who counted
them for itself, and one half for the rest, would take itself for the first wherever it did well."""


def compared_fitness(
    wants: Wants, circumstances: Circumstances, weights: Weights = COMPARED
) -> Fitness | None:
    """Return how fit a member is, as members compare each other; None: it cannot take such a task, or has no slot free."""
    return fitness(wants, circumstances, weights)


def estimate(
    now: float, member: LiveMember, wants: Wants, known: Known, weights: Weights = COMPARED
) -> float | None:
    """Return the fitness of 0 to 1 that is expected of a member; None: it cannot take this, or has no slot free.

    `member` bears its vitals, `known` says how old they are.
    """
    circumstances = Circumstances(
        meta=member.meta,
        free_slots=member.free_slots,
        cpu_pct=min(member.load_pct, 255),
        age_s=known.age_s(now),
    )
    found = compared_fitness(wants, circumstances, weights)
    return None if found is None else found.score


def in_order(scores: dict[NodeId, float], key: str) -> list[NodeId]:
    """Return members by their scores, the best first, as `rank.better` has it. O(n log n)."""
    return sorted(scores, key=lambda one: (-bucket(scores[one]), -hash64(key, one), one))


def wants_of(offer: Offer) -> Wants:
    """Return what an offer asks of a member; the task's own id ranks those that are equally fit."""
    return Wants(
        key=offer.task_id,
        queue=offer.queue,
        pool=offer.pool,
        node_class=offer.node_class,
        labels=offer.labels,
        needs=offer.needs,
    )
