"""The past of each member: kept apart from the others', and bounded."""

from __future__ import annotations

import random

from mesh.core.events import Event, EventKind
from mesh.membership.history import ENTRIES_MAX, History
from tests.unit.membership.pump import node_id


def event(number: int, kind: EventKind = EventKind.SUSPECT, detail: str = "") -> Event:
    return Event(kind=kind, member_id=node_id(number), member=f"host-{number}", detail=detail)


def test_a_member_that_comes_and_goes_does_not_push_out_the_death_of_another() -> None:
    history = History(entries_max=40)
    history.note(1.0, event(1))
    history.note(2.0, event(1, EventKind.DEAD))
    for at in range(1_000):
        history.note(10.0 + at, event(2, detail=str(at)))
        history.note(10.0 + at, event(3, detail=str(at)))
    history.check_invariants()
    assert [entry.event.kind for entry in history.of(node_id(1))] == [
        EventKind.SUSPECT,
        EventKind.DEAD,
    ]
    assert history.of(node_id(3))[-1].event.detail == "999"
    assert len(history) == 40


def test_of_one_member_the_latest_are_kept() -> None:
    history = History()
    for at in range(100):
        history.note(float(at), event(1))
    assert [entry.at for entry in history.of(node_id(1))] == [
        float(at) for at in range(100 - ENTRIES_MAX, 100)
    ]


def test_who_joins_and_what_it_declares_takes_no_room() -> None:
    history = History()
    for kind in (EventKind.JOIN, EventKind.UPDATE, EventKind.WARN, EventKind.TASK):
        history.note(1.0, event(1, kind))
    history.note(1.0, Event(kind=EventKind.CONFLICT))
    assert (len(history), list(history)) == (0, [])


def test_whatever_comes_the_bound_holds_and_the_index_is_right() -> None:
    rng = random.Random(1)
    history = History(entries_max=25)
    for at in range(2_000):
        history.note(float(at), event(rng.randrange(1, 60) if at % 3 else 1))
        history.check_invariants()
    assert len(history) == 25
