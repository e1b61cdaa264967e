"""What two members compare before they exchange anything: hashes of the living and of the forgotten.

Members fall into 64 buckets by their id. A bucket's hash is the exclusive or of its members' hashes,
so its order does not matter; the exclusive or of all is kept by the table as the members change. The
dead and the left are left out: they are dropped at different times, and nobody is to be reminded of
them. Tombstones are compared, since nothing else tells who missed a forgetting; in the 32 bits that a ping
carries they are not, which would have them all exchanged each time that one runs out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from mesh.core.ids import NodeId
from mesh.errors import DecodeError
from mesh.membership.member import Member
from mesh.wire.records import State
from mesh.wire.swim_messages import SYNC_BUCKETS

_SHIFT: Final = 64 - (SYNC_BUCKETS.bit_length() - 1)
_HASH_BYTES: Final = 8


def bucket_of(node_id: NodeId) -> int:
    """Return the bucket of an id, 0 to 63."""
    return node_id >> _SHIFT


@lru_cache(maxsize=65536)
def _entry_hash(card: bytes, incarnation: int, state: int) -> int:
    mixed = hashlib.blake2b(card, digest_size=_HASH_BYTES, key=b"%d/%d" % (incarnation, state))
    return int.from_bytes(mixed.digest(), "big")


def hash_of(member: Member) -> int:
    """Return the hash of all that is compared of a living member; 0 for one that is gone."""
    if not member.is_living:
        return 0
    return _entry_hash(member.card_bytes, member.incarnation, member.state)


def tombstone_hash(member: Member) -> int:
    """Return the hash of all that is compared of a forgotten member; 0 for any other.

    Its card is not: nodes may have forgotten it under different ones.
    """
    if member.state is not State.FORGOTTEN:
        return 0
    return _entry_hash(b"%d/%d" % (member.node_id, member.boot), member.incarnation, member.state)


def bucket_hashes(members: Iterable[Member]) -> list[int]:
    """Return the hash of each bucket, forgotten members included. O(members)."""
    hashes = [0] * SYNC_BUCKETS
    for member in members:
        hashes[member.node_id >> _SHIFT] ^= hash_of(member) ^ tombstone_hash(member)
    return hashes


def pack_hashes(hashes: list[int]) -> bytes:
    """Return the hashes as bytes, for the wire."""
    return b"".join(value.to_bytes(_HASH_BYTES, "big") for value in hashes)


def differing(hashes: list[int], theirs: bytes) -> tuple[int, ...]:
    """Return the buckets whose hashes differ, in order.

    Raises:
        DecodeError: `theirs` does not hold one hash per bucket.
    """
    if len(theirs) != SYNC_BUCKETS * _HASH_BYTES:
        raise DecodeError(f"{SYNC_BUCKETS} hashes are expected, found {len(theirs)} bytes")
    mine = pack_hashes(hashes)
    return tuple(
        bucket
        for bucket in range(SYNC_BUCKETS)
        if mine[bucket * 8 : bucket * 8 + 8] != theirs[bucket * 8 : bucket * 8 + 8]
    )
