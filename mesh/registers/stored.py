"""A voter's record as it is kept on a disk, and back.

A ballot that is none is no bytes, so that a store can tell that nothing was promised or accepted.
"""

from __future__ import annotations

from typing import Any

import msgpack

from mesh.core.ballot import BALLOT_BYTES, NO_BALLOT, Ballot
from mesh.core.stored import StoredRecord
from mesh.errors import DecodeError
from mesh.registers.record import Record
from mesh.wire.register_messages import Value, value_form


def to_stored(key: bytes, record: Record) -> StoredRecord:
    """Return what is to be kept of a record."""
    value = record.value
    return StoredRecord(
        key,
        _pack(record.promised),
        _pack(record.ballot),
        record.seq,
        None if value is None else msgpack.packb(value_form.pack(value)),
    )


def from_stored(stored: StoredRecord) -> tuple[bytes, Record]:
    """Return the key and the record of what was kept.

    Raises:
        DecodeError: it is nothing that `to_stored` returns: of a newer Mesh, or not as it was written.
    """
    try:
        promised, ballot = _unpack(stored.promised), _unpack(stored.ballot)
        value = None if stored.value is None else _value(stored.value)
    except (DecodeError, ValueError) as error:
        raise DecodeError(
            f"a record of a register is expected at key {stored.key.hex()[:64]}, found another thing: {error}; it may "
            "be of a newer Mesh"
        ) from error
    return stored.key, Record(promised, ballot, stored.seq, value)


def _pack(ballot: Ballot) -> bytes | None:
    return None if ballot == NO_BALLOT else ballot.pack()


def _unpack(raw: bytes | None) -> Ballot:
    if raw is not None and len(raw) != BALLOT_BYTES:
        raise DecodeError(f"a ballot of {BALLOT_BYTES} bytes is expected, found {len(raw)}")
    return NO_BALLOT if raw is None else Ballot.unpack(raw)


def _value(raw: bytes) -> Value:
    unpacked: Any = msgpack.unpackb(raw)
    value: Value = value_form.unpack(unpacked)
    return value
