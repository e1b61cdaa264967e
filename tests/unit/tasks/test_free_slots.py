"""Whose slots are counted: those of members that may be asked, and of nobody else."""

from __future__ import annotations

from mesh.core.ids import NodeId
from mesh.placement.live_view import LiveView
from mesh.tasks.free_slots import FreeSlots
from tests.unit.tasks.stewarded import member

P, GONE = NodeId(21), NodeId(22)


def test_what_is_heard_of_one_that_may_not_be_asked_is_not_kept() -> None:
    view = LiveView()
    view.put(member(P, 2))
    slots = FreeSlots(view)
    for node_id in (P, GONE):
        slots.hear(node_id, 1, is_news=True, is_noted=True)
        slots.take(node_id)
    assert (slots.known(member(P, 2)), slots.news(P)) == (0, 1)
    assert (slots.known(member(GONE, 2)), slots.news(GONE), slots.moved(GONE)) == (2, 0, 0)
