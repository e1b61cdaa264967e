"""A voter's side of watching a task: who is told, of what, and for how long."""

from __future__ import annotations

from mesh.core.ids import NodeId
from mesh.registers.record import NOTHING, Record
from mesh.tasks.body import task_key
from mesh.tasks.noticing import WATCHES_MAX, Noticing
from mesh.wire.register_messages import Standing, Value
from mesh.wire.task_messages import Notice, TaskState, Watch
from tests.unit.tasks.made import ANNA, SPEC, TOKEN, claimed, ended, marked, new

ID = SPEC.task_id
KEY = task_key(ID)
P, Q = NodeId(21), NodeId(22)
READY, LEASED = new(), claimed(new())
DONE = ended(LEASED)


def held(value: Value, seq: int = 0) -> Record:
    return Record(TOKEN, TOKEN, seq, value)


def test_a_watcher_is_told_at_once_and_at_each_change_of_state() -> None:
    noticing = Noticing()
    found = noticing.watch(0.0, P, Watch(ID, 60), held(READY))
    assert found == [(P, Notice(ID, TOKEN, 0, TaskState.READY, 0, None))]
    assert noticing.changed(KEY, held(READY, 1)) == []
    found = noticing.changed(KEY, held(LEASED, 2))
    assert found == [(P, Notice(ID, TOKEN, 2, TaskState.LEASED, 1, ANNA))]
    assert noticing.changed(KEY, held(marked(LEASED), 3)) == []
    assert [notice.state for _, notice in noticing.changed(KEY, held(DONE, 4))] == [TaskState.DONE]
    noticing.check_invariants()


def test_all_watchers_are_told_and_forgotten_at_the_end() -> None:
    noticing = Noticing()
    noticing.watch(0.0, P, Watch(ID, 60), held(READY))
    noticing.watch(0.0, Q, Watch(ID, 60), held(READY))
    assert [to for to, _ in noticing.changed(KEY, held(DONE))] == [P, Q]
    assert len(noticing) == 0
    assert noticing.next_timeout() is None
    noticing.check_invariants()


def test_who_watches_what_has_ended_is_told_and_not_remembered() -> None:
    noticing = Noticing()
    assert len(noticing.watch(0.0, P, Watch(ID, 60), held(DONE))) == 1
    assert len(noticing) == 0


def test_a_task_may_be_watched_before_it_is_there() -> None:
    noticing = Noticing()
    assert noticing.watch(0.0, P, Watch(ID, 60), NOTHING) == []
    assert [notice.state for _, notice in noticing.changed(KEY, held(READY))] == [TaskState.READY]


def test_a_watcher_is_forgotten_when_its_time_is_over_unless_it_asks_again() -> None:
    noticing = Noticing()
    noticing.watch(0.0, P, Watch(ID, 60), held(READY))
    noticing.watch(0.0, Q, Watch(ID, 60), held(READY))
    noticing.watch(50.0, Q, Watch(ID, 60), held(READY))
    assert noticing.next_timeout() == 60.0
    noticing.handle_timeout(60.0)
    noticing.check_invariants()
    assert [to for to, _ in noticing.changed(KEY, held(LEASED))] == [Q]
    noticing.handle_timeout(110.0)
    assert noticing.changed(KEY, held(READY)) == []


def test_who_watches_no_more_is_told_no_more() -> None:
    noticing = Noticing()
    noticing.watch(0.0, P, Watch(ID, 60), held(READY))
    assert noticing.watch(1.0, P, Watch(ID, 0), held(READY)) == []
    assert noticing.changed(KEY, held(DONE)) == []
    assert noticing.watch(1.0, Q, Watch(ID, 0), held(READY)) == []
    noticing.check_invariants()


def test_what_is_no_task_or_cannot_be_read_is_told_to_nobody() -> None:
    noticing = Noticing()
    strange = held(Value(Standing.OPEN, b"\x03"))
    assert noticing.watch(0.0, P, Watch(ID, 60), strange) == []
    assert noticing.changed(KEY, strange) == []
    assert noticing.changed(b"\x00roster/1", held(READY)) == []


def test_watches_are_bounded_and_those_turned_away_are_counted() -> None:
    noticing = Noticing()
    for number in range(WATCHES_MAX):
        noticing.watch(0.0, P, Watch(f"{number}", 60), NOTHING)
    assert len(noticing.watch(0.0, P, Watch(ID, 60), held(READY))) == 1
    assert (len(noticing), noticing.turned_away) == (WATCHES_MAX, 1)
    noticing.watch(5.0, P, Watch("7", 60), NOTHING)  # one that is remembered may stay
    assert noticing.turned_away == 1
    noticing.check_invariants()
