"""How much of a pool is in use: emergency members help to bear it, and are no part of what there is."""

from __future__ import annotations

from mesh.placement.demand import Demand, demand_of
from mesh.wire.records import DEDICATED, EMERGENCY, Availability, Metadata
from tests.unit.placement.test_live_view import member


def test_the_load_is_what_is_used_over_what_is_there() -> None:
    assert demand_of([member(1, Metadata(slots=4), 1), member(2, Metadata(slots=6), 6)]) == (3, 10)
    assert Demand(3, 10).load == 0.3


def test_work_that_an_emergency_member_takes_over_still_counts() -> None:
    regular = member(1, Metadata(slots=4), 0)
    helper = member(2, Metadata(slots=8, node_class=EMERGENCY), 6)
    assert demand_of([regular, helper]) == (6, 4)
    assert demand_of([regular, helper]).load == 1.5


def test_slots_that_are_for_some_or_for_nobody_are_not_there() -> None:
    video = member(1, Metadata(slots=9, node_class=DEDICATED, queues=("video",)), 0)
    unfit = member(2, Metadata(slots=4, availability=Availability.UNFIT), 3)
    leaving = member(3, Metadata(slots=4, availability=Availability.DRAINING), 0)
    assert demand_of([video, unfit, leaving, member(4, Metadata(slots=2), 2)]) == (0, 2)


def test_where_all_are_dedicated_their_slots_are_what_there_is() -> None:
    video = Metadata(slots=4, node_class=DEDICATED, queues=("video",))
    assert demand_of([member(1, video, 4), member(2, video, 3)]) == (1, 8)


def test_without_any_regular_slot_all_is_in_use() -> None:
    assert demand_of([]).load == 1.0
    assert demand_of([member(1, Metadata(slots=3, node_class=EMERGENCY), 3)]).load == 1.0
