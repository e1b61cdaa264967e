"""A member whose host changes its address while it runs: the same session, another place."""

from __future__ import annotations

import pytest

from mesh.core.events import EventKind
from mesh.core.ids import NO_MESH, MeshId
from mesh.membership.identity import INCARNATION_MAX, Identity
from mesh.membership.profile import PROFILES, profile
from mesh.wire.packet import decode_packet
from mesh.wire.records import State
from mesh.wire.swim_messages import Alive, Suspect
from tests.unit.membership.pump import Host, Pump, address, are_equal, card

NEW = address(250)


def readdress(host: Host) -> None:
    """Only the host has another address: its node does not know yet."""
    host.address = NEW


def notice(pump: Pump, host: Host) -> None:
    host.swim.rumours.refutation.move(pump.now, NEW)
    pump._carry_out(host, host.swim.handle_timeout(pump.now))


@pytest.mark.parametrize("name", PROFILES)
def test_a_member_that_moves_in_its_session_is_followed_and_never_dead(name: str) -> None:
    config = profile(name)
    pump = Pump(config=config)
    hosts = pump.mesh(5, settle_s=10 * config.probe_interval_s)
    mover, rest = hosts[4], hosts[:4]
    before = mover.swim.identity.card
    for host in hosts:
        host.events.clear()
    readdress(mover)
    pump.run(0.9 * config.pause_tolerance_s)
    notice(pump, mover)
    moved_at = pump.now
    have_followed = pump.run_until(
        lambda: all(host.knows(mover).address == NEW for host in rest) and are_equal(hosts),
        2 * config.probe_interval_s,
    )
    assert have_followed, pump.now - moved_at
    pump.run(20 * config.probe_interval_s)
    assert are_equal(hosts)
    for host in rest:
        known = host.knows(mover)
        assert (known.boot, known.incarnation) == (
            before.boot,
            mover.swim.identity.card.incarnation,
        )
        assert EventKind.DEAD not in host.kinds()
        assert EventKind.CONFLICT not in host.kinds()
        told = [e for e in host.events if f"it was at {before.address} before" in e.evidence]
        assert len(told) == 1
        assert str(NEW) in told[0].detail
    assert mover.swim.identity.card.incarnation > before.incarnation
    own = [event for event in mover.events if event.kind is EventKind.UPDATE]
    assert [(event.member_id, event.state) for event in own] == [(mover.node_id, "alive")]
    assert str(NEW) in own[0].detail
    assert str(before.address) in own[0].detail


def test_a_member_that_was_held_dead_meanwhile_is_back_at_its_new_address() -> None:
    pump = Pump()
    hosts = pump.mesh(5)
    mover, rest = hosts[4], hosts[:4]
    boot = mover.swim.identity.card.boot
    pump.partition(mover)
    assert pump.run_until(lambda: all(h.state_of(mover) is State.DEAD for h in rest), 20.0)
    readdress(mover)
    pump.heal()
    notice(pump, mover)
    assert pump.run_until(lambda: are_equal(hosts) and len(rest[0].swim.table.living) == 4, 5.0)
    assert rest[0].knows(mover).address == NEW
    assert rest[0].knows(mover).boot == boot


@pytest.mark.parametrize("seed", range(20))
def test_a_member_that_does_not_know_where_it_is_reached_hears_of_a_suspicion_in_time(
    seed: int,
) -> None:
    pump = Pump(seed, config=profile("lan"))
    hosts = pump.mesh(5, settle_s=10.0)
    readdress(hosts[4])
    assert pump.run_until(lambda: EventKind.REFUTE in hosts[4].kinds(), 10.0)
    assert not [event for host in hosts for event in host.events if event.kind is EventKind.DEAD]


def test_a_probe_of_the_address_that_is_gone_accuses_nobody() -> None:
    for seed in range(30):
        pump = Pump(seed)
        hosts = pump.mesh(4, settle_s=3.0)
        readdress(hosts[3])
        pump.run(0.15)
        notice(pump, hosts[3])
        pump.run(3.0)
        suspected = [e for h in hosts for e in h.events if e.kind is EventKind.SUSPECT]
        assert not [event for event in suspected if str(NEW) in event.detail], seed


def test_who_moves_tells_the_living_and_the_dead_at_once() -> None:
    pump = Pump()
    hosts = pump.mesh(6)
    mover, rest = hosts[5], hosts[:5]
    pump.kill(hosts[0])
    assert pump.run_until(lambda: mover.state_of(hosts[0]) is State.DEAD, 20.0)
    pump.leave(hosts[1])
    pump.run(10.0)
    mover.sent.clear()
    readdress(mover)
    notice(pump, mover)
    told = {
        sent.to
        for sent in mover.sent
        if Alive(mover.swim.identity.card_bytes) in decode_packet(sent.data).messages
    }
    assert told == {host.address for host in rest if host is not hosts[1]}


def test_an_address_taken_twice_is_announced_once() -> None:
    pump = Pump()
    mover, _ = pump.mesh(2)
    readdress(mover)
    for _ in range(3):
        notice(pump, mover)
    assert mover.swim.identity.card.incarnation == 1
    assert mover.kinds(mover).count(EventKind.UPDATE) == 1


def test_a_suspicion_of_the_old_address_is_refuted_by_the_move() -> None:
    pump = Pump()
    mover, other = pump.mesh(2)
    readdress(mover)
    notice(pump, mover)
    moved = mover.swim.identity.card
    pump.at_host(mover, other, Suspect(mover.node_id, moved.boot, 0, other.node_id))
    assert mover.swim.identity.card == moved
    assert EventKind.REFUTE not in mover.kinds()


def test_a_node_that_seeks_tells_its_new_address_with_its_next_question() -> None:
    pump = Pump()
    founder = pump.add(1, found=True)
    pump.cut = lambda _a, _b: True
    seeker = pump.add(2, 1)
    pump.run(3.0)
    assert seeker.swim.identity.mesh_id == NO_MESH
    readdress(seeker)
    notice(pump, seeker)
    assert seeker.sent == []
    pump.heal()
    assert pump.run_until(lambda: founder.state_of(seeker) is State.ALIVE, 10.0)
    assert founder.knows(seeker).address == NEW


def test_a_node_that_leaves_moves_no_more() -> None:
    pump = Pump()
    mover, other = pump.mesh(2)
    pump.leave(mover)
    notice(pump, mover)
    pump.run(2.0)
    assert other.state_of(mover) is State.LEFT
    assert other.knows(mover).address == address(1)


def test_a_card_without_a_higher_incarnation_cannot_move() -> None:
    identity = Identity(card(1, incarnation=INCARNATION_MAX), MeshId(7))
    before = identity.card_bytes
    assert not identity.move(NEW)
    assert identity.card_bytes == before
