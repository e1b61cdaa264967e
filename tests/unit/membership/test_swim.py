"""Whole meshes of machines: crashes, returns, restarts, leaves, partitions."""

import dataclasses

import pytest

from mesh.core.events import EventKind
from mesh.core.ids import NO_MESH, NodeId
from mesh.errors import ConfigError, LocalProtocolError
from mesh.membership.flaps import FLAPS_MIN
from mesh.membership.identity import Identity
from mesh.membership.profile import PROFILES, SwimConfig, local, profile
from mesh.membership.swim import Swim
from mesh.wire.packet import Packet
from mesh.wire.records import State
from mesh.wire.swim_messages import Alive, Ping, Suspect, SyncSame
from tests.unit.membership.pump import Pump, are_equal, card, card_bytes, node_id


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_finds_a_crash_and_accuses_nobody_else(name: str) -> None:
    config = profile(name)
    pump = Pump(config=config)
    hosts = pump.mesh(6, settle_s=10 * config.probe_interval_s)
    victim, rest = hosts[5], hosts[:5]
    pump.kill(victim)
    killed_at = pump.now
    bound = 12 * config.probe_interval_s + config.pause_tolerance_s
    assert pump.run_until(lambda: all(h.state_of(victim) is State.DEAD for h in rest), bound)
    assert pump.now - killed_at >= config.pause_tolerance_s
    accused = {e.member_id for h in rest for e in h.events if e.kind is EventKind.DEAD}
    assert accused == {victim.node_id}


@pytest.mark.parametrize("name", PROFILES)
def test_pause_shorter_than_the_tolerance_is_no_death(name: str) -> None:
    config = profile(name)
    pump = Pump(config=config)
    hosts = pump.mesh(5, settle_s=10 * config.probe_interval_s)
    for _ in range(5):
        pump.pause(hosts[4])
        pump.run(0.95 * config.pause_tolerance_s)
        pump.resume(hosts[4])
        pump.run(10 * config.probe_interval_s)
    for host in hosts[:4]:
        assert EventKind.DEAD not in host.kinds(hosts[4])
    assert are_equal(hosts)


def test_leave_is_known_to_all_at_once_and_accuses_nobody() -> None:
    pump = Pump()
    hosts = pump.mesh(20)
    pump.leave(hosts[7])
    rest = [host for host in hosts if host is not hosts[7]]
    assert pump.run_until(lambda: all(h.state_of(hosts[7]) is State.LEFT for h in rest), 0.3)
    pump.run(10.0)
    assert all(h.state_of(hosts[7]) is State.LEFT for h in rest)
    assert all(EventKind.DEAD not in h.kinds() for h in rest)
    assert hosts[7].stop is not None
    assert hosts[7].stop.exit_code == 0


def test_leave_is_told_to_every_member_of_a_small_mesh_directly() -> None:
    pump = Pump()
    hosts = pump.mesh(30)
    hosts[0].sent.clear()
    pump.leave(hosts[0])
    assert {sent.to for sent in hosts[0].sent} == {host.address for host in hosts[1:]}


def test_leave_survives_heavy_loss() -> None:
    missed = 0
    for seed in range(10):
        pump = Pump(seed)
        hosts = pump.mesh(5)
        pump.loss_ratio = 0.3
        pump.leave(hosts[4])
        pump.run(1.0)
        missed += sum(h.state_of(hosts[4]) is not State.LEFT for h in hosts[:4])
    assert missed == 0


def test_leave_twice_is_one_leave() -> None:
    pump = Pump()
    hosts = pump.mesh(3)
    pump.leave(hosts[2])
    assert hosts[2].swim.leave(pump.now, "again") == []
    pump.run(2.0)
    assert hosts[2].stop is not None
    assert hosts[2].stop.reason == "asked to"


def test_node_that_seeks_leaves_at_once() -> None:
    pump = Pump()
    host = pump.add(2, 1)
    pump.leave(host)
    pump.run(0.0)
    assert host.stop is not None
    assert host.stop.exit_code == 0


def test_leaving_node_refutes_nothing_and_suspects_nobody() -> None:
    pump = Pump()
    hosts = pump.mesh(3)
    pump.leave(hosts[2])
    pump.at_host(hosts[2], hosts[0], Suspect(hosts[2].node_id, 1, 0, hosts[0].node_id))
    assert hosts[2].swim.identity.card.incarnation == 0
    pump.run(5.0)
    assert all(h.state_of(hosts[2]) is State.LEFT for h in hosts[:2])


def test_member_that_left_and_comes_back_is_alive_again() -> None:
    pump = Pump()
    hosts = pump.mesh(3)
    pump.leave(hosts[2])
    pump.run(2.0)
    back = pump.restart(hosts[2], seeds=(1,))
    pump.run(1.0)
    assert are_equal([*hosts[:2], back])
    assert hosts[0].kinds(back)[-1] is EventKind.RETURN
    assert hosts[0].events[-1].evidence[0] == "a new process, session 2"


def test_member_that_says_goodbye_each_time_does_not_flap() -> None:
    pump = Pump()
    hosts = pump.mesh(3)
    back = hosts[2]
    for _ in range(FLAPS_MIN):
        pump.leave(back)
        pump.run(1.0)
        back = pump.restart(back, seeds=(1,))
        pump.run(1.0)
    assert hosts[0].kinds(back).count(EventKind.RETURN) == FLAPS_MIN
    assert EventKind.WARN not in hosts[0].kinds()


def test_member_that_was_only_cut_off_returns_as_the_same_process() -> None:
    pump = Pump()
    hosts = pump.mesh(4)
    pump.partition(hosts[3])
    pump.run(20.0)
    assert hosts[0].state_of(hosts[3]) is State.DEAD
    pump.heal()
    pump.run(30.0)
    returns = [e for e in hosts[0].events if e.kind is EventKind.RETURN]
    assert [e.evidence[0].partition(":")[0] for e in returns] == ["the same process"]


def test_killed_node_that_returns_is_alive_everywhere_within_two_periods() -> None:
    pump = Pump()
    hosts = pump.mesh(8)
    pump.kill(hosts[7])
    pump.run(10.0)
    back = pump.restart(hosts[7], seeds=(1, 2))
    everybody = [*hosts[:7], back]
    bound = 2 * pump.config.probe_interval_s
    assert pump.run_until(lambda: are_equal(everybody), bound)
    assert all(host.state_of(back) is State.ALIVE for host in hosts[:7])


def test_restart_before_anybody_noticed_is_a_return() -> None:
    pump = Pump()
    hosts = pump.mesh(3)
    back = pump.restart(hosts[2], seeds=(1,))
    pump.run(1.0)
    assert hosts[0].kinds(back) == [EventKind.JOIN, EventKind.RETURN]
    assert are_equal([*hosts[:2], back])


def test_seeking_node_hears_no_datagrams() -> None:
    pump = Pump()
    host = pump.add(2, 1)
    message = Alive(card_bytes(5))
    assert (
        host.swim.handle_packet(pump.now, card(5).address, Packet(NO_MESH, node_id(5), (message,)))
        == []
    )
    assert len(host.swim.table) == 0


def test_unknown_request_is_our_own_bug() -> None:
    pump = Pump()
    host = pump.add(1)
    with pytest.raises(LocalProtocolError):
        host.swim.handle_request(pump.now, node_id(2), SyncSame())


def test_contradicting_settings_are_refused() -> None:
    broken: SwimConfig = dataclasses.replace(local(), probe_timeout_s=9.0)
    pump = Pump()
    with pytest.raises(ConfigError, match="probe_timeout_s"):
        Swim(config=broken, identity=Identity(card(1), NO_MESH), rng=pump.rng)


def test_own_packet_is_ignored() -> None:
    pump = Pump()
    host = pump.add(1)
    own = Packet(host.swim.identity.mesh_id, NodeId(host.node_id), (Ping(1, host.node_id, 0),))
    assert host.swim.handle_packet(pump.now, host.address, own) == []


def test_one_seed_gives_one_run() -> None:
    def run() -> list[tuple[bytes, ...]]:
        pump = Pump(7)
        pump.loss_ratio = 0.1
        hosts = pump.mesh(6)
        pump.kill(hosts[3])
        pump.run(5.0)
        return [tuple(sent.data for sent in host.sent) for host in hosts]

    assert run() == run()
