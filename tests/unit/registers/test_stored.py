"""A record comes back from its disk as it was kept, and else says what it is not."""

from __future__ import annotations

import pytest

from mesh.core.ballot import BALLOT_BYTES, NO_BALLOT, Ballot
from mesh.core.ids import NodeId
from mesh.core.stored import StoredRecord
from mesh.errors import DecodeError
from mesh.registers.record import Record
from mesh.registers.stored import from_stored, to_stored
from mesh.wire.register_messages import Standing, Value

BALLOT = Ballot(1, 2, 3, NodeId(4))


@pytest.mark.parametrize(
    "record",
    [
        Record(BALLOT, BALLOT, 5, Value(Standing.FINAL, b"over")),
        Record(BALLOT, NO_BALLOT, 0, None),
    ],
)
def test_record_comes_back_as_it_was_kept(record: Record) -> None:
    assert from_stored(to_stored(b"k", record)) == (b"k", record)


@pytest.mark.parametrize("width", [0, 1, BALLOT_BYTES - 1, BALLOT_BYTES + 1])
@pytest.mark.parametrize("name", ["promised", "ballot"])
def test_ballot_of_another_width_is_said_in_plain_words(name: str, width: int) -> None:
    ballots = {"promised": BALLOT.pack(), "ballot": BALLOT.pack(), name: bytes(width)}
    stored = StoredRecord(b"k", ballots["promised"], ballots["ballot"], 0, None)
    wanted = f"a ballot of {BALLOT_BYTES} bytes is expected, found {width}"
    with pytest.raises(DecodeError, match=wanted):
        from_stored(stored)
