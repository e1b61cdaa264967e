"""Weighted rendezvous hashing: everybody ranks the members of a key alike, without a word.

Each member draws a lot for each key: a number u in (0, 1) from a hash of (key, node id), and the score
-weight / ln u. The highest score is the key's home. A member that comes or goes changes no other
member's lot, so only the keys that it wins or held move; a member of weight 2 wins twice as often as
one of weight 1, because -ln u / weight is an exponential arrival with that rate and the first arrival wins.

The hash is BLAKE2b over packed bytes: the same in every process and on every machine.

Source: [HRW]; weights through the logarithm [WRH].
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterable

from mesh.core.ids import NodeId

_CELL = struct.Struct(">cIQ")
_KEY = struct.Struct(">cQ")


def hash64(key: int | str, node_id: int = 0) -> int:
    """Return 64 hashed bits of a cell's number (0 to 2**32 - 1) or a key's text, and a node id (0: none)."""
    if isinstance(key, int):
        packed = _CELL.pack(b"c", key, node_id)
    else:
        packed = _KEY.pack(b"k", node_id) + key.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(packed, digest_size=8).digest(), "big")


def score(key: int | str, node_id: NodeId, weight: int) -> float:
    """Return the member's score for `key`: above 0, the more the better; 0.0 for weight 0 (never)."""
    if weight <= 0:
        return 0.0
    # 52 bits and a half: exact in a float, and never 0 or 1.
    u = ((hash64(key, node_id) >> 12) + 0.5) / 4503599627370496.0
    return -weight / math.log(u)


def rank(key: int | str, members: Iterable[tuple[NodeId, int]]) -> list[NodeId]:
    """Return the node ids of (node id, weight) pairs, best first; those of weight 0 are left out.

    Equal scores, which next to never happen, go by node id. O(n log n).
    """
    scored = [(-score(key, node_id, weight), node_id) for node_id, weight in members if weight > 0]
    scored.sort()
    return [node_id for _, node_id in scored]
