"""Who looks hears how busy all are; nobody is suspected for it, or missed."""

from __future__ import annotations

from dataclasses import replace

from mesh.core.effects import SendDatagram
from mesh.core.requests import Outgoing
from mesh.membership.glances import ANSWER_S, AT_ONCE, FRESH_S
from mesh.membership.profile import local
from mesh.wire.packet import decode_packet
from mesh.wire.records import State, Vitals
from mesh.wire.swim_messages import Glance
from tests.unit.membership.pump import Host, Pump


def look(pump: Pump, host: Host) -> list[Outgoing]:
    """Let a host look, and everybody answer."""
    host.swim.glances.look(pump.now)
    outputs = host.swim.handle_timeout(pump.now)
    host.due = host.swim.next_timeout()
    pump._carry_out(host, outputs)
    return outputs


def glances(outputs: list[Outgoing]) -> int:
    return sum(
        isinstance(message, Glance)
        for output in outputs
        if isinstance(output, SendDatagram)
        for message in decode_packet(output.data).messages
    )


def test_who_looks_hears_of_everybody_in_a_mesh_in_which_it_pings_a_few() -> None:
    pump = Pump()
    hosts = pump.mesh(12)
    pump.run(5.0)
    for number, host in enumerate(hosts):
        host.swim.identity.vitals = Vitals(number, 7, 9)
    first = hosts[0]
    assert glances(look(pump, first)) > 0
    assert first.swim.glances.is_waiting(pump.now)
    pump.run(0.1)
    assert not first.swim.glances.is_waiting(pump.now)
    pump.run(FRESH_S)  # some were heard of a moment before
    look(pump, first)
    pump.run(0.1)
    for number, host in enumerate(hosts[1:], start=1):
        member = first.swim.table.get(host.node_id)
        assert member is not None
        assert member.vitals == Vitals(number, 7, 9)
        assert member.rtt_s is not None


def test_nobody_is_asked_twice_in_a_moment_and_not_all_of_many_at_once() -> None:
    pump = Pump()
    first = pump.mesh(AT_ONCE + 9)[0]
    pump.run(1.0)
    pump.now += 2 * FRESH_S
    assert glances(look(pump, first)) == AT_ONCE
    assert 0 < glances(look(pump, first)) <= 8
    assert glances(look(pump, first)) == 0


def test_who_does_not_answer_is_waited_for_no_longer_and_not_suspected() -> None:
    config = replace(local(), probe_interval_s=60.0)
    pump = Pump(config=config)
    first, second = pump.mesh(2)
    pump.run(1.0)
    pump.now += 2 * FRESH_S
    first.swim.glances.look(pump.now)
    assert glances(first.swim.handle_timeout(pump.now)) == 1  # and it is lost
    assert first.swim.glances.is_waiting(pump.now)
    assert not first.swim.glances.is_waiting(pump.now + ANSWER_S)
    member = first.swim.table.get(second.node_id)
    assert member is not None
    assert member.state is State.ALIVE
