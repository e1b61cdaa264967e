"""The dead are tried again, each about as often as the others."""

import dataclasses

import pytest

from mesh.core.ids import low32
from mesh.membership.profile import local
from mesh.wire.packet import decode_packet
from mesh.wire.records import Cause, State
from mesh.wire.swim_messages import Ping
from tests.unit.membership.pump import Host, Pump, are_equal, card_bytes, node_id


def pings_to(host: Host, other: Host) -> int:
    return sum(
        isinstance(message, Ping) and message.target == low32(other.node_id)
        for sent in host.sent
        for message in decode_packet(sent.data).messages
    )


@pytest.mark.parametrize("count", [2, 5, 12])
def test_the_mesh_together_tries_a_dead_member_about_once_per_interval(count: int) -> None:
    pump = Pump()
    hosts = pump.mesh(count)
    victim = hosts[-1]
    pump.kill(victim)
    pump.run(15.0)
    for host in hosts:
        host.sent.clear()
    pump.run(60.0)
    tries = sum(pings_to(host, victim) for host in hosts[:-1])
    expected = 60.0 / pump.config.reconnect_interval_s
    assert 0.5 * expected < tries < 1.5 * expected


def test_partition_heals_by_itself_however_long_it_lasted() -> None:
    pump = Pump()
    hosts = pump.mesh(6)
    pump.partition(*hosts[:2])
    pump.run(300.0)
    assert hosts[0].state_of(hosts[5]) is State.DEAD
    assert hosts[5].state_of(hosts[0]) is State.DEAD
    pump.heal()
    assert pump.run_until(lambda: are_equal(hosts) and len(hosts[0].swim.table.living) == 5, 15.0)


def test_node_that_lost_the_whole_mesh_finds_it_again() -> None:
    pump = Pump()
    hosts = pump.mesh(5)
    pump.partition(hosts[0])
    pump.run(60.0)
    assert hosts[0].swim.table.living == []
    pump.heal()
    assert pump.run_until(lambda: are_equal(hosts) and len(hosts[0].swim.table.living) == 4, 10.0)


def test_who_left_and_old_dead_beyond_those_that_are_tried_are_forgotten_after_their_time() -> None:
    config = dataclasses.replace(
        local(), dead_retention_s=60.0, left_retention_s=20.0, reconnect_members_max=0
    )
    pump = Pump(config=config)
    hosts = pump.mesh(4)
    pump.kill(hosts[3])
    pump.leave(hosts[2])
    pump.run(15.0)
    assert hosts[0].state_of(hosts[2]) is State.LEFT
    assert hosts[0].state_of(hosts[3]) is State.DEAD
    pump.run(15.0)
    assert hosts[0].state_of(hosts[2]) is None
    assert hosts[0].state_of(hosts[3]) is State.DEAD
    pump.run(60.0)
    assert [host.state_of(hosts[3]) for host in hosts[:2]] == [None, None]


def test_the_latest_dead_are_remembered_and_tried_for_ever() -> None:
    config = dataclasses.replace(local(), dead_retention_s=60.0)
    pump = Pump(config=config)
    hosts = pump.mesh(3)
    pump.kill(hosts[2])
    pump.run(600.0)
    hosts[0].sent.clear()
    pump.run(60.0)
    assert hosts[0].state_of(hosts[2]) is State.DEAD
    assert pings_to(hosts[0], hosts[2]) > 10


def test_only_the_latest_dead_are_tried() -> None:
    config = dataclasses.replace(local(), reconnect_members_max=2)
    pump = Pump(config=config)
    hosts = pump.mesh(5)
    for host in (hosts[2], hosts[3], hosts[4]):
        pump.kill(host)
        pump.run(5.0)
    hosts[0].sent.clear()
    hosts[1].sent.clear()
    pump.run(30.0)
    tried = [sum(pings_to(h, dead) for h in hosts[:2]) for dead in hosts[2:]]
    assert tried[0] == 0
    assert min(tried[1:]) > 5


def test_who_left_is_not_tried() -> None:
    pump = Pump()
    hosts = pump.mesh(3)
    pump.leave(hosts[2])
    pump.run(2.0)
    hosts[0].sent.clear()
    pump.run(20.0)
    assert pings_to(hosts[0], hosts[2]) == 0


def test_nobody_gone_is_no_timer() -> None:
    pump = Pump()
    host = pump.add(1)
    assert host.swim._reconnect.next_deadline() is None
    host.swim.table.apply_card(pump.now, card_bytes(2))
    host.swim.table.apply_verdict(pump.now, node_id(2), (1, 0, State.DEAD, Cause.SILENT))
    pump._carry_out(host, host.swim.handle_timeout(pump.now))
    assert host.swim._reconnect.next_deadline() is not None
