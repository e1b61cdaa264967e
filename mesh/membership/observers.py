"""Who observes whom: every node ranks the observers of a member alike, without a word.

Each pair of a member and another draws a lot from a hash of their ids; those with the highest lots are
the member's observers. A member that comes or goes changes no other pair's lot, so each observer keeps
most of those whom it observes, and each observes about as many as it is observed by.

Source: rendezvous hashing [HRW].
"""

from __future__ import annotations

import bisect
import hashlib
import heapq
import struct
from collections.abc import Iterable, Sequence

from mesh.core.ids import NodeId

_PAIR = struct.Struct(">QQ")


def lot(subject: NodeId, observer: NodeId) -> int:
    """Return the lot of a pair, 64 bits."""
    packed = _PAIR.pack(subject, observer)
    digest = hashlib.blake2b(packed, digest_size=8, person=b"observer").digest()
    return int.from_bytes(digest, "big")


def observers_of(subject: NodeId, others: Iterable[NodeId], count: int) -> list[NodeId]:
    """Return the `count` observers of a member among `others`, the first in rank first. O(others)."""
    candidates = (node_id for node_id in others if node_id != subject)
    return heapq.nlargest(count, candidates, key=lambda node_id: lot(subject, node_id))


def rank_of(own: NodeId, subject: NodeId, others: Iterable[NodeId], count: int) -> int | None:
    """Return the rank of `own`, from 0, among the `count` observers of another member; None: it is none of them.

    Most are not, and meet as many with higher lots soon: of thousands of others, some dozens are looked at.
    """
    if own == subject or count <= 0:
        return None
    mine = lot(subject, own)
    rank = 0
    for node_id in others:
        if node_id != subject and lot(subject, node_id) > mine:
            rank += 1
            if rank == count:
                return None
    return rank


class Observers:
    """The observers of one node, kept as members come and go: O(1) for each, O(mesh) when an observer goes."""

    __slots__ = ("_best", "_count", "_is_known", "_subject")

    def __init__(self, subject: NodeId, count: int) -> None:
        self._subject = subject
        self._count = count
        self._best: list[tuple[int, NodeId]] = []  # the highest lots, the lowest of them first
        self._is_known = False

    def follow(self, node_id: NodeId, *, is_living: bool) -> None:
        """Take that a member came or went."""
        if not self._is_known or node_id == self._subject:
            return
        drawn = (lot(self._subject, node_id), node_id)
        if not is_living:
            self._is_known = drawn not in self._best
        elif drawn not in self._best:
            bisect.insort(self._best, drawn)
            del self._best[: -self._count or None]

    def among(self, living: Sequence[NodeId], count: int) -> list[NodeId]:
        """Return the first `count` of them, the first in rank first; `living` are all members but this one."""
        if not self._is_known:
            best = observers_of(self._subject, living, self._count)
            self._best = sorted((lot(self._subject, node_id), node_id) for node_id in best)
            self._is_known = True
        ranked = [node_id for _, node_id in reversed(self._best)]
        return ranked[:count]
