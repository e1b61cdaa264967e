"""Who comes first of those called to a contest: scores in eight buckets, then rendezvous, then the node id.

    score   0 ────┬────┬────┬────┬────┬────┬────┬──── 1
    bucket    0   │ 1  │ 2  │ 3  │ 4  │ 5  │ 6  │ 7      a higher one comes first
                                  └ within one: the lots that the task's key draws, other ones for each task

Scores rest on what was known a moment ago, so a small difference says nothing: it would only send every task to
the same member, and change its mind with each breath. Buckets make such members equal, and the lot spreads tasks
over them. The order is reckoned in integers alone, so it is the same at every node that has the same scores.

It needs the scores as they were sent: whoever rounds a score on its way compares the rounded one, its own too.
A member whose score lies at an edge would be in one bucket by what it knows of itself and in the next by what was told
of it, and two would take themselves for the first; `held` keeps it where it was placed.

Source: our own; the lots are those of [HRW].
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mesh.contest.bounds import within
from mesh.core.ids import NodeId
from mesh.placement.rendezvous import hash64

BUCKETS: Final = 8
"""So many kinds of scores are told apart."""

MARGIN: Final = 1 / 32
"""A score has left its bucket when it lies so far beyond an edge: a quarter of a bucket. Less: two are first; more: none."""


def bucket(score: float) -> int:
    """Return the bucket of a score from 0 to 1: 0 (worst) to 7; the score 1 is in the last.

    Raises:
        LocalProtocolError: the score is no number from 0 to 1.
    """
    return min(BUCKETS - 1, int(within("score", score, 0, 1) * BUCKETS))


def better(score_a: float, id_a: NodeId, score_b: float, id_b: NodeId, key: str) -> bool:
    """Say whether member a comes before member b for the task of this key: at every node alike.

    A strict total order of members with different ids. Nobody is better than itself. Two hashes, where the
    buckets are equal.

    Raises:
        LocalProtocolError: a score is no number from 0 to 1.
    """
    bucket_a, bucket_b = bucket(score_a), bucket(score_b)
    if bucket_a != bucket_b:
        return bucket_a > bucket_b
    # By the hash itself, not by the rendezvous score made of it: the order is the same, and a logarithm may differ
    # in its last bit from host to host. Weights are left out: each node may know others of them, and free slots
    # are in the score.
    lot_a, lot_b = hash64(key, id_a), hash64(key, id_b)
    return lot_a > lot_b if lot_a != lot_b else id_a < id_b


def estimate_rank(
    own_id: NodeId, own_score: float, others: Mapping[NodeId, float], key: str
) -> int:
    """Return where a member stands among those called, 1 the best, by the scores that it reckons for them.

    It is an estimate as far as their scores are. `others` are those that can run the task; an entry for the member
    itself does not count. O(n) in `others`.

    Raises:
        LocalProtocolError: a score is no number from 0 to 1.
    """
    ahead = (
        better(score, node_id, own_score, own_id, key)
        for node_id, score in others.items()
        if node_id != own_id
    )
    return 1 + sum(ahead)


def held(score: float, placed: float) -> float:
    """Return the score by which a member is ranked that was placed by another one, of what was told of it.

    It stays in the bucket of `placed` unless `score`, what it is by now, lies beyond an edge of that by MARGIN or more:
    then the middle of that bucket, which survives any rounding on its way. So what it knows of itself and was told
    of it may differ a little, and all who know both rank it alike.

    Raises:
        LocalProtocolError: one of them is no number from 0 to 1.
    """
    found, kept = bucket(score), bucket(placed)
    low, high = kept / BUCKETS - MARGIN, (kept + 1) / BUCKETS + MARGIN
    return (kept + 0.5) / BUCKETS if found != kept and low < score < high else score
