"""One register as a row: its limits, and a checksum over all of it.

SQLite notices pages that contradict themselves, but not a bit that turned inside a value. A ballot that reads
differently from how it was written is a wrong vote, so that every row carries a checksum of its own.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, Final, TypeAlias
from zlib import crc32

from mesh.core.stored import StoredRecord
from mesh.errors import LocalProtocolError
from mesh.runtime.store.faults import damaged

KEY_BYTES_MAX: Final = 512
VALUE_BYTES_MAX: Final = 4 * 1024 * 1024
BALLOT_BYTES_MAX: Final = 128
NUMBER_MAX: Final = (1 << 63) - 1
NAME_BYTES_MAX: Final = 64

Row: TypeAlias = tuple[bytes, bytes | None, bytes | None, int, bytes | None, int]
"""A record and its checksum, in the order of the table's columns."""

ALL_ROWS: Final = "SELECT key, promised, ballot, seq, value, checksum FROM registers"

_LENGTHS: Final = struct.Struct(">IiiQi")  # no promise, no ballot and no value are -1


def check_record(record: StoredRecord, ballot_bytes: int) -> None:
    """Check what can be checked without the disk.

    Raises:
        LocalProtocolError: no voter can have promised or accepted this.
    """
    if not 0 < len(record.key) <= KEY_BYTES_MAX:
        raise LocalProtocolError(
            f"a key of 1 to {KEY_BYTES_MAX} bytes is expected, found {len(record.key)}"
        )
    for name, ballot in (("promised", record.promised), ("ballot", record.ballot)):
        if ballot is not None and len(ballot) != ballot_bytes:
            raise LocalProtocolError(
                f"{name} has {ballot_bytes} bytes in this store, found {len(ballot)}"
            )
    if not 0 <= record.seq <= NUMBER_MAX:
        raise LocalProtocolError(f"seq from 0 to 2**63 - 1 is expected, found {record.seq}")
    if record.ballot is None and (record.seq or record.value is not None):
        raise LocalProtocolError("a value and a seq come under a ballot, found them without one")
    if record.value is not None and len(record.value) > VALUE_BYTES_MAX:
        raise LocalProtocolError(
            f"a value of at most {VALUE_BYTES_MAX} bytes is expected, found {len(record.value)}"
        )


def check_number(name: str, value: int) -> None:
    """Check a named integer.

    Raises:
        LocalProtocolError: the name or the value is out of range.
    """
    if not 0 < len(name.encode()) <= NAME_BYTES_MAX or not 0 <= value <= NUMBER_MAX:
        raise LocalProtocolError(
            f"a name of 1 to {NAME_BYTES_MAX} bytes and a value from 0 to 2**63 - 1 are expected, "
            f"found {name[:80]!r}: {value}"
        )


def to_row(record: StoredRecord) -> Row:
    """Return the row of a record."""
    key, promised, ballot, value = record.key, record.promised, record.ballot, record.value
    return (
        key,
        promised,
        ballot,
        record.seq,
        value,
        _checksum(key, promised, ballot, record.seq, value),
    )


def from_row(row: tuple[Any, ...], path: Path, ballot_bytes: int) -> StoredRecord:
    """Return the record of a row.

    Raises:
        StoreDamagedError: the row is not as it was written, or its ballots are of another width than the store's.
    """
    key, promised, ballot, seq, value, checksum = row
    try:
        is_whole = _checksum(key, promised, ballot, seq, value) == checksum
    except (TypeError, struct.error):  # a column became one of another type
        is_whole = False
    if not is_whole:
        name = key.hex()[:64] if isinstance(key, bytes) else repr(key)[:64]
        raise damaged(path, "what was written of each key", f"another checksum at key {name}")
    for one in (promised, ballot):
        if one is not None and len(one) != ballot_bytes:
            found = f"{len(one)} at key {key.hex()[:64]}"
            raise damaged(path, f"a ballot of {ballot_bytes} bytes", found)
    return StoredRecord(key, promised, ballot, seq, value)


def number_checksum(name: str, value: int) -> int:
    """Return the checksum that is kept beside a named integer."""
    return crc32(value.to_bytes(8, "big"), crc32(name.encode()))


def _checksum(
    key: bytes, promised: bytes | None, ballot: bytes | None, seq: int, value: bytes | None
) -> int:
    head = _LENGTHS.pack(
        len(key),
        -1 if promised is None else len(promised),
        -1 if ballot is None else len(ballot),
        seq,
        -1 if value is None else len(value),
    )
    return crc32(value or b"", crc32(b"".join((head, key, promised or b"", ballot or b""))))
