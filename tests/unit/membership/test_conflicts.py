"""One address, one member; one session, one address: said once for each case."""

from __future__ import annotations

from typing import Any

from mesh.core.events import Event, EventKind
from mesh.core.ids import MeshId
from mesh.membership.conflicts import SAID_MAX, TO_AND_FRO_S, Conflicts
from mesh.membership.identity import Identity
from mesh.membership.table import MemberTable
from mesh.wire.records import Cause, State
from mesh.wire.swim_messages import Alive
from tests.unit.membership.pump import Pump, address, are_equal, card, card_bytes, node_id

NOW = 100.0


class Stage:
    """A table, and whoever looks at its changes."""

    def __init__(self) -> None:
        self.table = MemberTable(node_id(1))
        self.conflicts = Conflicts(Identity(card(1), MeshId(7)), self.table)

    def hear(
        self,
        number: int,
        *,
        boot: int = 1,
        incarnation: int = 0,
        after_s: float = 0.0,
        **changed: Any,  # noqa: ANN401 - what cards take
    ) -> list[Event]:
        data = card_bytes(number, boot=boot, incarnation=incarnation, **changed)
        change = self.table.apply_card(NOW, data)
        return [] if change is None else self.conflicts.note(NOW + after_s, change)

    def judge(self, number: int, state: State, incarnation: int = 0) -> list[Event]:
        rank = (1, incarnation, state, Cause.SILENT if state is State.DEAD else Cause.NONE)
        change = self.table.apply_verdict(NOW, node_id(number), rank)
        assert change is not None
        return self.conflicts.note(NOW, change)


def test_two_living_members_at_one_address_are_one_event() -> None:
    stage = Stage()
    assert stage.hear(2) == []
    (event,) = stage.hear(3, address=address(2))
    assert event.kind is EventKind.CONFLICT
    assert "host-3" in event.detail
    assert "host-2" in event.detail
    assert "--advertise" in event.detail


def test_a_conflict_is_not_said_again_with_every_rumour() -> None:
    stage = Stage()
    stage.hear(2)
    stage.hear(3, address=address(2))
    for incarnation in range(5):
        assert stage.judge(3, State.SUSPECT, incarnation) == []
        assert stage.judge(3, State.DEAD, incarnation) == []
        assert stage.hear(3, incarnation=incarnation + 1, address=address(2)) == []
        assert stage.hear(2, incarnation=incarnation + 1) == []


def test_a_third_at_the_address_is_another_conflict() -> None:
    stage = Stage()
    stage.hear(2)
    stage.hear(3, address=address(2))
    assert len(stage.hear(4, address=address(2))) == 1


def test_who_takes_the_address_of_the_dead_is_no_conflict() -> None:
    stage = Stage()
    stage.hear(2)
    stage.judge(2, State.DEAD)
    assert stage.hear(3, address=address(2)) == []


def test_a_member_at_this_nodes_own_address_is_one() -> None:
    (event,) = Stage().hear(2, address=address(1))
    assert "host-1" in event.detail


def test_one_id_at_two_addresses_in_one_session_is_one_event() -> None:
    stage = Stage()
    low, high = sorted((2, 50), key=lambda n: card_bytes(2, address=address(n)))
    stage.hear(2, address=address(low))
    (event,) = stage.hear(2, address=address(high))
    assert event.kind is EventKind.CONFLICT
    assert "data directory of its own" in event.detail
    assert len(stage.table) == 1
    for incarnation in range(1, 5):
        at = address((low, high)[incarnation % 2])
        assert stage.hear(2, incarnation=incarnation, address=at) == []


def test_a_member_that_moves_and_comes_back_at_once_in_one_session_is_two() -> None:
    stage = Stage()
    stage.hear(2)
    assert stage.hear(2, incarnation=1, address=address(50)) == []
    assert len(stage.hear(2, incarnation=2, after_s=TO_AND_FRO_S - 1.0)) == 1


def test_a_host_that_gets_its_old_address_back_later_is_one() -> None:
    stage = Stage()
    stage.hear(2)
    for hour in range(1, 6):
        at = address(50 if hour % 2 else 2)
        assert stage.hear(2, incarnation=hour, after_s=hour * 3600.0, address=at) == []


def test_the_next_session_may_be_anywhere() -> None:
    stage = Stage()
    stage.hear(2)
    assert stage.hear(2, boot=2, address=address(50)) == []
    assert stage.hear(2, boot=3) == []


def test_what_is_remembered_as_said_is_bounded() -> None:
    stage = Stage()
    stage.hear(2)
    for number in range(SAID_MAX + 10):
        stage.conflicts._is_new("address", number)
    assert len(stage.conflicts._said) == SAID_MAX


def test_a_host_that_lost_its_disk_replaces_itself_and_everybody_says_so_once() -> None:
    pump = Pump()
    hosts = pump.mesh(4)
    pump.kill(hosts[3])
    fresh = pump.add(9, 1, address=hosts[3].address)
    pump.run(30.0)
    for host in hosts[:3]:
        assert (
            host.kinds(fresh).count(EventKind.CONFLICT)
            + host.kinds(hosts[3]).count(EventKind.CONFLICT)
            == 1
        )
        assert host.state_of(hosts[3]) is State.DEAD
        assert host.state_of(fresh) is State.ALIVE


def test_a_card_of_a_copy_that_does_not_run_is_refuted_by_the_one_that_does() -> None:
    pump = Pump()
    hosts = pump.mesh(4)
    copy = card_bytes(4, boot=hosts[3].swim.identity.card.boot, incarnation=1, address=address(60))
    for _ in range(5):
        pump.at_host(hosts[0], hosts[1], Alive(copy))
    pump.run(2 * pump.config.sync_interval_s)
    assert are_equal(hosts)
    assert [host.knows(hosts[3]).address for host in hosts] == [hosts[3].address] * 4
    assert max(host.kinds(hosts[3]).count(EventKind.CONFLICT) for host in hosts) == 1


def test_a_copied_data_directory_is_one_identity_and_a_copy_stops() -> None:
    pump = Pump()
    hosts = pump.mesh(4)
    old = hosts[3].swim.identity
    copy = pump.add(4, boot=old.card.boot + 1, mesh_id=old.mesh_id, address=address(60))
    for host in hosts[:3]:
        pump.at_host(host, copy, Alive(copy.swim.identity.card_bytes))
    pump.run_until(lambda: hosts[3].stop is not None, 2 * pump.config.sync_interval_s)
    assert hosts[3].stop is not None
    assert "data directory" in hosts[3].stop.reason
    assert hosts[3].kinds().count(EventKind.CONFLICT) == 1
    pump.run(2.0)
    assert copy.stop is None
    assert are_equal([*hosts[:3], copy])
