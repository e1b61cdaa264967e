"""The fitness that is expected of those called, from what the caller knows of them, and that each finds for itself.

    the caller's table ──► expected: of each of those called, by whoever reads it
           │ lag, history, distance
           ▼
    own slots and load ──► own_fitness: of a member, by itself just now

What is slow to change, or measured by the caller alone, a member takes from the table for itself too: so all
compare the same numbers. Its slots and load it knows better than anybody.

Source: our own.
"""

from __future__ import annotations

from dataclasses import replace

from mesh.contest.fitness import DEFAULT_WEIGHTS, Circumstances, Fitness, Weights, fitness
from mesh.contest.rank import bucket
from mesh.core.ids import NodeId
from mesh.placement.live_view import Wants
from mesh.placement.rendezvous import hash64
from mesh.wire.contest_messages import HISTORY_MAX, SCORE_MAX, Called
from mesh.wire.records import Metadata
from mesh.wire.task_messages import Offer


def expected(
    meta: Metadata, called: Called, wants: Wants, weights: Weights = DEFAULT_WEIGHTS
) -> float | None:
    """Return the fitness of 0 to 1 that is expected of a member, as it would be sent; None: it cannot take this, or has no slot free.

    `meta` is what it declares; all else is in the caller's table, and so the same for whoever reckons.
    """
    found = fitness(wants, _as_told(meta, called), weights)
    return None if found is None else sent_score(found.score) / SCORE_MAX


def own_fitness(
    meta: Metadata,
    called: Called,
    wants: Wants,
    weights: Weights = DEFAULT_WEIGHTS,
    *,
    free_slots: int,
    busy_pct: int,
) -> Fitness | None:
    """Return how fit a member finds itself, with its slots and the use of its processors (hundredths, 0 to 255) of now; None: as in `expected`."""
    told = _as_told(meta, called)
    circumstances = replace(told, free_slots=free_slots, busy_pct=busy_pct, age_s=0.0)
    return fitness(wants, circumstances, weights)


def sent_score(score: float) -> int:
    """Return a fitness of 0 to 1 as it is sent: ranks go by that, one's own too."""
    return round(min(max(score, 0.0), 1.0) * SCORE_MAX)


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


def _as_told(meta: Metadata, called: Called) -> Circumstances:
    return Circumstances(
        meta=meta,
        free_slots=called.free_slots,
        busy_pct=called.busy_pct,
        lag_s=None if called.lag_ms is None else called.lag_ms / 1e3,
        history=called.history / HISTORY_MAX,
        rtt_s=None if called.rtt_us is None else called.rtt_us / 1e6,
        age_s=called.age_ds / 10,
    )
