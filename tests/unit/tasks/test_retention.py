"""For how long the record of a task is kept, by a node's clock."""

from __future__ import annotations

from mesh.core.ballot import NO_BALLOT
from mesh.registers.record import Record
from mesh.registers.upkeep import RETAIN_S
from mesh.tasks.body import task_key
from mesh.tasks.retention import expiring
from mesh.wire.register_messages import Standing, Value
from tests.unit.tasks.made import NOON, TOKEN, claimed, ended, new

KEY = task_key("thumbs-1")
expires = expiring(NOON - 100.0)
"""Of a node whose clock showed 100 at noon."""


def held(value: Value | None) -> Record:
    return Record(TOKEN, NO_BALLOT if value is None else TOKEN, 0, value)


def test_a_task_is_kept_from_its_end_on_for_as_long_as_it_says() -> None:
    assert expires(KEY, held(ended(claimed(new()), at=NOON + 5))) == 105.0 + RETAIN_S


def test_what_has_not_ended_does_not_expire() -> None:
    assert expires(KEY, held(claimed(new()))) is None


def test_what_is_no_task_or_cannot_be_read_is_kept_for_good() -> None:
    assert expires(b"lock/a", held(ended(claimed(new())))) is None
    assert expires(KEY, held(Value(Standing.FINAL, b"of a newer Mesh"))) is None
    assert expires(KEY, held(None)) is None
