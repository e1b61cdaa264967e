"""Who observes whom: every node ranks the observers of a member alike, without a word.

Each pair of a member and another draws a lot from a hash of their ids; those with the highest lots are
the member's observers. A member that comes or goes changes no other pair's lot, so each observer keeps
most of those whom it observes, and each observes about as many as it is observed by.

Source: rendezvous hashing [HRW].
"""

from __future__ import annotations

import hashlib
import heapq
import struct
from collections.abc import Iterable

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
