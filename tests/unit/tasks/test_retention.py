"""For how long the record of a task is kept, by a node's clock, and what went before that."""

from __future__ import annotations

import random

import pytest

from mesh.core.ballot import NO_BALLOT
from mesh.core.ids import NodeId
from mesh.registers import leases
from mesh.registers.record import NOTHING, Record
from mesh.registers.upkeep import RETAIN_S, UpkeepTimes
from mesh.registers.voter import Forget, Voter
from mesh.tasks.body import task_key
from mesh.tasks.retention import TaskKeeping, expiring
from mesh.wire.register_messages import Standing, Value
from mesh.wire.roster_messages import Roster
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


@pytest.mark.parametrize(("finals_max", "early"), [(0, 3), (2, 1), (3, 0)])
def test_only_what_goes_before_its_time_is_counted(finals_max: int, early: int) -> None:
    own = NodeId(1)
    names = "abc"
    records = [(task_key(name), held(ended(claimed(new(task_id=name))))) for name in names]
    voter = Voter(own, leases.local(), epoch=1, now=0.0, records=records)
    keeping = TaskKeeping(
        own,
        voter=voter,
        roster=Roster(1, (own,)),
        times=UpkeepTimes(compare_s=2, settle_s=1, message_life_s=30, finals_max=finals_max),
        expires=expiring(NOON),
        rng=random.Random(1),
        now=0.0,
    )
    while len(voter) and (due := keeping.next_deadline()) is not None:
        for move in keeping.handle_timeout(due):
            assert isinstance(move, Forget)
            voter.purge(move.keys, move.n)
            keeping.note(due, [(key, NOTHING) for key in move.keys])
    assert not len(voter)
    assert keeping.purged_early == early
