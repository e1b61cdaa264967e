"""What one voter keeps, counted and in order."""

from __future__ import annotations

from dataclasses import replace

from mesh.registers.record import NOTHING, Record
from mesh.tasks.body import task_key
from mesh.tasks.entry import in_order_of_making
from mesh.tasks.form import of_value, to_value
from mesh.tasks.listing import Listing
from mesh.wire.register_messages import Standing, Value
from tests.unit.tasks.made import NOON, TOKEN, claimed, ended, new


def held(value: Value) -> Record:
    return Record(TOKEN, TOKEN, 0, value)


def test_tasks_are_listed_newest_first_and_counted_by_state() -> None:
    listing = Listing()
    for task_id in ("a", "b", "c"):
        listing.changed(task_key(task_id), held(new(task_id=task_id)))
    listing.changed(task_key("a"), held(claimed(new(task_id="a"))))
    assert listing.newest(2) == [task_key("c"), task_key("b")]
    assert (listing.counts()["ready"], listing.counts()["leased"]) == (2, 1)
    listing.changed(task_key("a"), held(ended(claimed(new(task_id="a")))))
    listing.changed(task_key("b"), NOTHING)  # purged
    assert listing.newest(9) == [task_key("c"), task_key("a")]
    assert listing.counts() == {
        "ready": 1,
        "scheduled": 0,
        "leased": 0,
        "done": 1,
        "failed": 0,
        "cancelled": 0,
    }
    listing.check_invariants()


def test_a_session_begins_in_the_order_of_the_tasks_making() -> None:
    records = []
    for age, task_id in ((5, "young"), (500, "old"), (50, "middle")):
        body = replace(of_value(new(task_id=task_id)), created=NOON - age)
        records.append((task_key(task_id), held(to_value(body))))
    records.append((b"\x00roster/1", held(Value(Standing.FINAL, b"x"))))
    records.append((task_key("unread"), held(Value(Standing.OPEN, b"\x03"))))
    records.append((task_key("promised"), NOTHING))
    listing = Listing(in_order_of_making(records))
    assert listing.newest(9) == [task_key(name) for name in ("young", "middle", "old")]
    listing.check_invariants()


def test_what_can_be_read_no_more_is_not_counted() -> None:
    listing = Listing(in_order_of_making([(task_key("a"), held(new(task_id="a")))]))
    listing.changed(task_key("a"), held(Value(Standing.OPEN, b"\x03")))
    assert not any(listing.counts().values())
    assert listing.newest(9) == []
    listing.check_invariants()
