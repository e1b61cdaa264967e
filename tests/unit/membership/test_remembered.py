"""What is kept for the next session, and when."""

from __future__ import annotations

from typing import Any

from mesh.core.ids import MeshId, NodeId
from mesh.core.known import KnownMember
from mesh.core.limits import REMEMBERED_MAX
from mesh.membership.identity import Identity
from mesh.membership.remembered import MOMENT_S, PAUSE_S, Remembered
from mesh.membership.table import MemberTable
from mesh.wire.records import Cause, State
from tests.unit.membership.pump import Host, Pump, address, card, card_bytes, node_id

NOW = 100.0


def known(number: int, at: int | None = None) -> KnownMember:
    return KnownMember(node_id(number), f"host-{number}", address(at or number))


class Stage:
    """One list, and the table that it follows."""

    def __init__(self, *before: KnownMember) -> None:
        self.table = MemberTable(node_id(1))
        self.remembered = Remembered(Identity(card(1), MeshId(7)), self.table, before)

    def meet(self, number: int, *, boot: int = 1, **changed: Any) -> None:  # noqa: ANN401 - what cards take
        change = self.table.apply_card(NOW, card_bytes(number, boot=boot, **changed))
        if change is not None:
            self.remembered.note(NOW, change)

    def judge(self, number: int, state: State) -> None:
        cause = Cause.SILENT if state is State.DEAD else Cause.NONE
        change = self.table.apply_verdict(NOW, node_id(number), (1, 0, state, cause))
        assert change is not None
        self.remembered.note(NOW, change)

    @property
    def kept(self) -> list[NodeId]:
        return [member.node_id for member in self.remembered.members()]


def test_the_living_and_the_dead_are_kept_and_who_left_is_not() -> None:
    stage = Stage()
    for number in (2, 3, 4):
        stage.meet(number)
    stage.judge(3, State.DEAD)
    stage.judge(4, State.LEFT)
    assert stage.kept == [node_id(2), node_id(3)]


def test_who_is_not_met_again_is_kept_on_and_who_leaves_is_dropped() -> None:
    stage = Stage(known(2), known(3), known(1))
    assert stage.kept == [node_id(3), node_id(2)]
    stage.meet(2)
    stage.judge(2, State.LEFT)
    assert stage.kept == [node_id(3)]
    assert len(stage.remembered) == 1


def test_a_member_met_at_another_address_is_kept_there() -> None:
    stage = Stage(known(2))
    stage.meet(2, address=address(50))
    assert stage.remembered.members() == (known(2, at=50),)


def test_the_latest_thousand_are_kept_the_living_first() -> None:
    stage = Stage(
        *(KnownMember(NodeId(n), "old", address(9)) for n in range(1, REMEMBERED_MAX + 1))
    )
    stage.meet(2)
    stage.meet(3)
    stage.judge(3, State.DEAD)
    assert len(stage.kept) == REMEMBERED_MAX
    assert stage.kept[:2] == [node_id(2), node_id(3)]


def test_strangers_are_those_at_whose_address_no_living_member_is() -> None:
    stage = Stage(known(5), known(6, at=2), known(7, at=1))
    stage.meet(2)
    stage.meet(3)
    stage.judge(3, State.DEAD)
    assert stage.remembered.strangers() == [known(3), known(5)]


def test_a_snapshot_follows_a_change_after_a_moment_and_ten_seconds_the_last() -> None:
    stage = Stage()
    assert stage.remembered.next_deadline() is None
    stage.meet(2)
    assert stage.remembered.next_deadline() == NOW + MOMENT_S
    assert stage.remembered.handle_timeout(NOW) is None
    snapshot = stage.remembered.handle_timeout(NOW + MOMENT_S)
    assert snapshot is not None
    assert (snapshot.mesh_id, snapshot.members) == (MeshId(7), (known(2),))
    assert stage.remembered.next_deadline() is None
    stage.meet(3)
    assert stage.remembered.next_deadline() == NOW + MOMENT_S + PAUSE_S


def test_what_does_not_change_the_list_brings_no_snapshot() -> None:
    stage = Stage()
    stage.meet(2)
    stage.remembered.take(NOW)
    stage.judge(2, State.SUSPECT)
    stage.judge(2, State.DEAD)
    stage.meet(2, incarnation=1)
    assert stage.remembered.next_deadline() is None


def snapshots(host: Host) -> list[list[str]]:
    return [sorted(member.name for member in snapshot.members) for snapshot in host.snapshots]


def test_an_idle_mesh_makes_no_snapshots() -> None:
    pump = Pump()
    hosts = pump.mesh(5)
    pump.run(30.0)
    for host in hosts:
        host.snapshots.clear()
    pump.run(100.0)
    assert [host.snapshots for host in hosts] == [[]] * 5


def test_a_mesh_that_changes_all_the_time_makes_one_in_ten_seconds() -> None:
    pump = Pump()
    founder = pump.add(1)
    for number in range(2, 32):
        pump.add(number, 1)
        pump.run(1.0)
    assert 3 <= len(founder.snapshots) <= 4


def test_who_leaves_keeps_whom_it_knew_at_the_end() -> None:
    pump = Pump()
    hosts = pump.mesh(3)
    late = pump.add(4, 1)
    pump.run(0.5)
    pump.leave(late)
    pump.run(2.0)
    assert late.stop is not None
    assert snapshots(late)[-1] == ["host-1", "host-2", "host-3"]
    assert [snapshots(host)[-1] for host in hosts[:1]] == [["host-2", "host-3"]]
