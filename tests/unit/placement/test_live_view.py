"""Which members fit what a task wants, and in which order."""

from __future__ import annotations

from mesh.core.address import Address
from mesh.core.ids import NodeId
from mesh.placement.live_view import LiveMember, LiveView, Wants
from mesh.wire.records import DEDICATED, EMERGENCY, Availability, Metadata


def member(number: int, meta: Metadata | None = None, free_slots: int = 1) -> LiveMember:
    return LiveMember(
        node_id=NodeId(number),
        boot=1,
        name=f"n{number}",
        address=Address("127.0.0.1", 7000 + number),
        meta=meta or Metadata(),
        free_slots=free_slots,
    )


def view_of(*members: LiveMember) -> LiveView:
    view = LiveView()
    for each in members:
        view.put(each)
    return view


def names(view: LiveView, wants: Wants) -> list[str]:
    return sorted(m.name for m in view.candidates(wants))


def test_empty_wants_mean_any_member_with_slots() -> None:
    view = view_of(member(1), member(2, Metadata(slots=0)), member(3, Metadata(pool="gpu")))
    assert names(view, Wants(key="k")) == ["n1", "n3"]


def test_pool_and_class_must_be_equal_when_they_are_given() -> None:
    gpu = Metadata(pool="gpu", node_class="large")
    view = view_of(member(1), member(2, gpu))
    assert names(view, Wants(key="k", pool="gpu")) == ["n2"]
    assert names(view, Wants(key="k", node_class="large")) == ["n2"]
    assert names(view, Wants(key="k", pool="default", node_class="large")) == []


def test_every_wanted_label_must_be_there() -> None:
    view = view_of(
        member(1, Metadata(labels=(("disk", "ssd"), ("zone", "a")))),
        member(2, Metadata(labels=(("disk", "ssd"),))),
    )
    assert names(view, Wants(key="k", labels=(("disk", "ssd"),))) == ["n1", "n2"]
    assert names(view, Wants(key="k", labels=(("disk", "ssd"), ("zone", "a")))) == ["n1"]


def test_declared_amounts_must_cover_the_needs() -> None:
    view = view_of(member(1, Metadata(offers=(("gpu", 1),))), member(2))
    assert names(view, Wants(key="k", needs=(("gpu", 1),))) == ["n1"]
    assert names(view, Wants(key="k", needs=(("gpu", 2),))) == []


def test_a_dedicated_member_comes_first_for_its_queues_and_never_for_others() -> None:
    video = Metadata(node_class=DEDICATED, queues=("video", "audio"))
    view = view_of(member(1), member(2, video), member(3))
    for number in range(20):
        first = view.candidates(Wants(key=str(number), queue="audio"))[0]
        assert first.name == "n2"
    assert names(view, Wants(key="k", queue="mail")) == ["n1", "n3"]
    assert names(view, Wants(key="k", queue="mail", node_class=DEDICATED)) == []


def test_who_stands_by_is_for_those_alone_that_ask_for_its_class_and_who_is_unfit_for_nobody() -> (
    None
):
    idle = Metadata(node_class=EMERGENCY, availability=Availability.STANDBY)
    view = view_of(member(1, idle), member(2, Metadata(availability=Availability.UNFIT)))
    assert names(view, Wants(key="k")) == []
    assert names(view, Wants(key="k", node_class=EMERGENCY)) == ["n1"]
    assert names(view, Wants(key="k", node_class="general")) == []


def test_a_busy_member_keeps_its_rank() -> None:
    free = view_of(member(1), member(2), member(3))
    busy = view_of(member(3, free_slots=0), member(2, free_slots=0), member(1, free_slots=0))
    wants = Wants(key="some key")
    order = [m.node_id for m in free.candidates(wants)]
    assert [m.node_id for m in busy.candidates(wants)] == order


def test_a_dropped_member_is_no_candidate_and_the_others_keep_their_order() -> None:
    view = view_of(*[member(i) for i in range(1, 8)])
    order = [m.node_id for m in view.candidates(Wants(key="x"))]
    view.drop(order[0])
    assert [m.node_id for m in view.candidates(Wants(key="x"))] == order[1:]
    assert view.get(order[0]) is None
    assert len(view) == 6


def test_members_come_by_node_id() -> None:
    view = view_of(member(3), member(1), member(2))
    assert [m.node_id for m in view.members()] == [1, 2, 3]


def test_the_version_grows_only_when_a_ranking_may_change() -> None:
    view = view_of(member(1))
    version = view.version
    view.put(member(1, free_slots=0))
    view.drop(NodeId(9))
    assert view.version == version
    view.put(member(1, Metadata(slots=2)))
    assert view.version == version + 1
