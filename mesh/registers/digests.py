"""What a voter holds, in 257 sums: two voters compare these, and need not tell each other all that is equal.

    (key, ballot, seq) ── hash ──► XORed into the sum of its bucket once it has stood unchanged for a while
                               └─► listed there at once: what is listed need not be shipped here

A bucket is a cell, so that all its registers have the same voters; one more is of the rosters. A change costs a
hash or two. What is being written now differs between any two voters and is no reason to ship: so only what is
settled is summed up and shipped. A register that is being purged is hidden: neither summed up nor shipped, though
it is held.

Source: sums over buckets instead of a tree of hashes are our own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Final

from mesh.core.ageing import take_aged
from mesh.core.ballot import Ballot
from mesh.registers.record import Record
from mesh.registers.roster import ROSTERS
from mesh.registers.seating import cell_of_key
from mesh.wire.repair_messages import BUCKETS, DIGEST_BYTES, HELD_BYTES_MAX, SUM_BYTES

OF_ROSTERS: Final = BUCKETS - 1
"""The bucket of what every voter keeps."""

_SUM_MASK: Final = (1 << 8 * SUM_BYTES) - 1


def bucket_of(key: bytes) -> int:
    """Return the bucket of a register."""
    return OF_ROSTERS if key.startswith(ROSTERS) else cell_of_key(key)


def digest_of(key: bytes, ballot: Ballot, seq: int) -> int:
    """Return what stands for a value, by its register and number."""
    packed = ballot.pack() + seq.to_bytes(4, "big") + key
    return int.from_bytes(hashlib.blake2b(packed, digest_size=DIGEST_BYTES).digest(), "big")


class Digests:
    """The sums of one voter's records."""

    def __init__(self, settle_s: float, records: Iterable[tuple[bytes, Record]]) -> None:
        """Begin with what the voter holds, all of it settled. `settle_s`: so long a record stands unchanged before."""
        self._settle_s = settle_s
        self._digests: list[dict[bytes, int]] = [{} for _ in range(BUCKETS)]
        self._sums = [0] * BUCKETS
        self._unsettled: dict[bytes, float] = {}  # since when, the oldest first
        self._hidden: dict[bytes, None] = {}
        for key, record in records:
            if record.value is not None:
                bucket, digest = bucket_of(key), digest_of(key, record.ballot, record.seq)
                self._digests[bucket][key] = digest
                self._sums[bucket] ^= digest

    def note(self, now: float, key: bytes, record: Record) -> None:
        """Take what is held of a register from now on; NOTHING: it is gone. O(1)."""
        bucket = bucket_of(key)
        digests = self._digests[bucket]
        before = digests.get(key)
        after = None if record.value is None else digest_of(key, record.ballot, record.seq)
        if before == after:
            return  # a promise alone
        if before is not None and key not in self._unsettled and key not in self._hidden:
            self._sums[bucket] ^= before
        self._unsettled.pop(key, None)
        self._hidden.pop(key, None)
        if after is None:
            del digests[key]
        else:
            digests[key] = after
            self._unsettled[key] = now

    def settle(self, now: float) -> None:
        """Sum up what has stood for long enough. O(1) for each change, once."""
        for key in take_aged(self._unsettled, now, self._settle_s):
            bucket = bucket_of(key)
            if key not in self._hidden:
                self._sums[bucket] ^= self._digests[bucket][key]

    def hide(self, key: bytes) -> None:
        """Neither sum up nor ship what is held of a register, unless it changes, or is shown again."""
        bucket = bucket_of(key)
        if key not in self._hidden and key in self._digests[bucket]:
            self._hidden[key] = None
            if key not in self._unsettled:
                self._sums[bucket] ^= self._digests[bucket][key]

    def show(self, key: bytes) -> None:
        """Undo `hide`."""
        if key in self._hidden:
            del self._hidden[key]
            if key not in self._unsettled:
                bucket = bucket_of(key)
                self._sums[bucket] ^= self._digests[bucket][key]

    # What is told of it.

    def sums(self, shares: Callable[[int], bool]) -> bytes:
        """Return SUM_BYTES of each bucket's sum, zeros where it is not shared."""
        return b"".join(
            (self._sums[bucket] & _SUM_MASK if shares(bucket) else 0).to_bytes(SUM_BYTES, "big")
            for bucket in range(BUCKETS)
        )

    def sum(self, shares: Callable[[int], bool]) -> int:
        """Return one sum of all shared buckets."""
        packed = b"".join(
            (total if shares(bucket) else 0).to_bytes(DIGEST_BYTES, "big")
            for bucket, total in enumerate(self._sums)
        )
        return int.from_bytes(hashlib.blake2b(packed, digest_size=8).digest(), "big")

    def held(self, bucket: int) -> bytes:
        """Return the digests of all that is held in a bucket, settled or not; the first of them, if they are too many."""
        packed = (digest.to_bytes(DIGEST_BYTES, "big") for digest in self._digests[bucket].values())
        return b"".join(packed)[:HELD_BYTES_MAX]

    def lacking(self, bucket: int, held: bytes, after: bytes) -> list[bytes]:
        """Return the keys of a bucket, in order and after this one, whose settled values are not among those held. O(bucket)."""
        digests = {
            int.from_bytes(held[at : at + DIGEST_BYTES], "big")
            for at in range(0, len(held), DIGEST_BYTES)
        }
        return sorted(
            key
            for key, digest in self._digests[bucket].items()
            if key > after
            and digest not in digests
            and key not in self._unsettled
            and key not in self._hidden
        )

    def check_invariants(self, records: Iterable[tuple[bytes, Record]]) -> None:
        """Raise AssertionError if the sums are not those of the voter's records. O(records)."""
        expected = {
            key: digest_of(key, record.ballot, record.seq)
            for key, record in records
            if record.value is not None
        }
        assert {key: one for those in self._digests for key, one in those.items()} == expected
        assert self._unsettled.keys() | self._hidden.keys() <= expected.keys()
        sums = [0] * BUCKETS
        for key, digest in expected.items():
            if key not in self._unsettled and key not in self._hidden:
                sums[bucket_of(key)] ^= digest
        assert sums == self._sums
