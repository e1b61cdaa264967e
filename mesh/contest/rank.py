"""Who comes first of those called to a contest: scores in eight buckets, then rendezvous, then the node id.

    score   0 ────┬────┬────┬────┬────┬────┬────┬──── 1
    bucket    0   │ 1  │ 2  │ 3  │ 4  │ 5  │ 6  │ 7      a higher one comes first
                                  └ within one: the lots that the task's key draws, other ones for each task

Scores rest on what was known a moment ago, so a small difference says nothing: it would only send every task to
the same member, and change its mind with each breath. Buckets make such members equal, and the lot spreads tasks
over them. The order is reckoned in integers alone, so it is the same at every node that has the same scores.

It needs the scores as they were sent: whoever rounds a score on its way compares the rounded one, its own too.
A member whose score lies at an edge would change its bucket all the time; `Hysteresis` holds it.

Source: our own; the lots are those of [HRW].
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Final

from mesh.contest.bounds import within
from mesh.core.ids import NodeId
from mesh.placement.rendezvous import hash64

BUCKETS: Final = 8
"""So many kinds of scores are told apart."""

MARGIN: Final = 1 / 32
"""A score has left its bucket when it lies so far beyond an edge: a quarter of a bucket. Less: it flaps; more: it lags."""

SUBJECTS_MAX: Final = 4_096
"""Buckets that are kept; of more, the one that was looked at longest ago is dropped."""


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


class Hysteresis:
    """Keeps each subject in its bucket until its score has left that by a margin.

    A subject is whatever has one score over time: a member for one kind of task, say. Where tasks differ
    in what they ask for, so do the scores of one member: each then is a subject of its own.
    """

    __slots__ = ("_buckets", "_margin", "_subjects_max")

    def __init__(self, *, margin: float = MARGIN, subjects_max: int = SUBJECTS_MAX) -> None:
        """Begin with no subject.

        Args:
            margin: how far beyond an edge a score has left its bucket; 0 to 1, a few hundredths make sense.
            subjects_max: how many buckets are kept; at least 1.

        Raises:
            LocalProtocolError: one of them is out of its bounds.
        """
        self._margin = within("margin", margin, 0, 1)
        self._subjects_max = int(within("subjects_max", subjects_max, 1))
        self._buckets: dict[Hashable, int] = {}  # the one looked at longest ago first

    def __len__(self) -> int:
        return len(self._buckets)

    def settle(self, subject: Hashable, score: float) -> float:
        """Return the score by which the subject is ranked: its own, or the middle of the bucket that it is kept in.

        The middle survives any rounding on its way; only the bucket counts in the order. O(1).

        Raises:
            LocalProtocolError: the score is no number from 0 to 1; nothing changed.
        """
        found = bucket(score)
        kept = self._buckets.pop(subject, found)
        if kept != found and not self._is_near(kept, score):
            kept = found
        self._buckets[subject] = kept
        if len(self._buckets) > self._subjects_max:
            del self._buckets[next(iter(self._buckets))]
        return score if kept == found else (kept + 0.5) / BUCKETS

    def forget(self, subject: Hashable) -> None:
        """Keep nothing of a subject; nothing happens if nothing is kept."""
        self._buckets.pop(subject, None)

    def _is_near(self, kept: int, score: float) -> bool:
        low, high = kept / BUCKETS - self._margin, (kept + 1) / BUCKETS + self._margin
        return low <= score < high
