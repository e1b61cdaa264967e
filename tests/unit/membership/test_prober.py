"""One probe: ping, helpers, nacks, and what silence means."""

from dataclasses import replace

import pytest

from mesh.core.effects import SendDatagram
from mesh.core.ids import NodeId, low32
from mesh.core.requests import Ask, Outgoing
from mesh.core.round_trip import RoundTrip
from mesh.membership.lifeguard import plain_swim
from mesh.membership.prober import PATIENCE_SHARE_MIN, PROBES_MAX, RELAYS_MAX
from mesh.membership.profile import local
from mesh.wire.packet import decode_packet
from mesh.wire.records import Cause, State, Vitals
from mesh.wire.swim_messages import Ack, Alive, Dead, Ping, PingReq, Suspect
from tests.unit.membership.pump import Host, Pump, address, card_bytes, node_id, packet


@pytest.fixture
def pump() -> Pump:
    return Pump()


def messages(outputs: list[Outgoing], kind: type) -> list[tuple[object, object]]:
    """Every message of one type in the datagrams, with where it goes."""
    return [
        (output.to, message)
        for output in outputs
        if isinstance(output, SendDatagram)
        for message in decode_packet(output.data).messages
        if isinstance(message, kind)
    ]


def next_probe(pump: Pump, host: Host) -> Ping:
    """Let time pass until the host pings somebody, whose answer never comes."""
    while True:
        assert host.due is not None
        pump.now = host.due
        outputs = host.swim.handle_timeout(pump.now)
        host.due = host.swim.next_timeout()
        pings = [m for _, m in messages(outputs, Ping) if isinstance(m, Ping)]
        if pings:
            return pings[0]


def test_answered_ping_measures_the_round_trip_and_the_vitals(pump: Pump) -> None:
    first, second = pump.mesh(2)
    second.swim.identity.vitals = Vitals(3, 40, 10)
    pump.run(1.0)
    member = first.swim.table.get(second.node_id)
    assert member is not None
    assert member.vitals == Vitals(3, 40, 10)
    assert member.rtt_s == pytest.approx(2 * pump.delay_s, rel=0.6)


def test_ping_for_another_node_is_not_answered(pump: Pump) -> None:
    first, second = pump.mesh(2)
    outputs = first.swim.handle_packet(
        pump.now, second.address, packet(second, Ping(7, low32(node_id(99)), 0))
    )
    assert messages(outputs, Ack) == []
    assert first.swim.counters["ignored_misdirected"] == 1


def test_silence_is_asked_about_through_others_and_over_tcp(pump: Pump) -> None:
    hosts = pump.mesh(6)
    ping = next_probe(pump, hosts[0])
    pump.now += pump.config.probe_timeout_s
    outputs = hosts[0].swim.handle_timeout(pump.now)
    requests = messages(outputs, PingReq)
    assert len({to for to, _ in requests}) == pump.config.indirect_probes
    assert all(isinstance(r, PingReq) and low32(r.target) == ping.target for _, r in requests)
    asks = [o for o in outputs if isinstance(o, Ask)]
    assert [type(ask.message) for ask in asks] == [Ping]


@pytest.mark.parametrize(
    ("measured", "share"),
    [(0.0, PATIENCE_SHARE_MIN), (0.5, 0.5), (2.0, 1.0)],
    ids=["at least so much", "what was measured", "at most the timeout"],
)
def test_others_are_asked_once_the_round_trips_that_were_measured_are_over(
    pump: Pump, measured: float, share: float
) -> None:
    first = pump.mesh(6)[0]
    timeout_s = pump.config.probe_timeout_s
    for other in first.swim.table.living:
        member = first.swim.table.get(other)
        assert member is not None
        member.round_trip = RoundTrip(measured * timeout_s, 0.0)
    next_probe(pump, first)
    patience_s = share * timeout_s
    early = first.swim.handle_timeout(pump.now + 0.99 * patience_s)
    assert messages(early, PingReq) == []
    due = first.swim.handle_timeout(pump.now + 1.01 * patience_s)
    assert len(messages(due, PingReq)) == pump.config.indirect_probes


def test_probes_under_way_are_bounded_and_no_two_are_of_one_member(pump: Pump) -> None:
    first, second = pump.mesh(2)
    numbers = range(10, 10 + 2 * PROBES_MAX)
    for number in numbers:
        pump.at_host(first, second, Alive(card_bytes(number)))
    prober = first.swim._prober
    prober.void(pump.now)
    for number in numbers:
        member = first.swim.table.get(node_id(number))
        assert member is not None
        for _ in range(2):
            prober._begin(pump.now, member)
    probed = [probe.node_id for probe in prober._probes.values()]
    assert probed == [node_id(number) for number in numbers[:PROBES_MAX]]


@pytest.mark.parametrize(("others", "suspects", "suspects_asked"), [(8, 4, 0), (5, 2, 1)])
def test_suspects_are_asked_to_help_only_where_others_are_too_few(
    pump: Pump, others: int, suspects: int, suspects_asked: int
) -> None:
    first, *hosts = pump.mesh(1 + others)
    ping = next_probe(pump, first)
    helpers = [host for host in hosts if low32(host.node_id) != ping.target]
    for host in helpers[:suspects]:
        incarnation = host.swim.identity.card.incarnation
        accusation = Suspect(host.node_id, 1, incarnation, hosts[-1].node_id)
        pump.at_host(first, hosts[-1], accusation)
        member = first.swim.table.get(host.node_id)
        assert member is not None
        assert member.state is State.SUSPECT
    pump.now += pump.config.probe_timeout_s
    asked = {to for to, _ in messages(first.swim.handle_timeout(pump.now), PingReq)}
    assert len(asked) == min(pump.config.indirect_probes, len(helpers))
    assert len(asked & {host.address for host in helpers[:suspects]}) == suspects_asked


def test_indirect_ack_under_the_askers_number_ends_the_probe(pump: Pump) -> None:
    first, second, third = pump.mesh(3)
    request = PingReq(77, third.node_id, third.address)
    outputs = second.swim.handle_packet(pump.now, first.address, packet(first, request))
    ((to, ping),) = messages(outputs, Ping)
    assert to == third.address
    assert isinstance(ping, Ping)
    ack = Ack(ping.seq, NodeId(0), 1, Vitals(1, 0, 0))
    outputs = second.swim.handle_packet(pump.now, third.address, packet(third, ack))
    assert messages(outputs, Ack) == [(first.address, Ack(77, third.node_id, 1, Vitals(1, 0, 0)))]
    again = second.swim.handle_packet(pump.now, third.address, packet(third, ack))
    assert messages(again, Ack) == []


def test_requests_to_relay_are_bounded(pump: Pump) -> None:
    first, second = pump.mesh(2)
    for seq in range(RELAYS_MAX + 10):
        request = PingReq(seq, node_id(90), address(90))
        second.swim.handle_packet(pump.now, first.address, packet(first, request))
    assert len(second.swim._prober._relayed) == RELAYS_MAX
    assert second.swim.counters["dropped_relays"] == 10


def test_member_that_loses_udp_only_is_never_suspected(pump: Pump) -> None:
    hosts = pump.mesh(3)
    pump.loss_ratio = 1.0
    pump.run(10.0)
    assert all(a.state_of(b) is State.ALIVE for a in hosts for b in hosts)


def test_ack_of_another_probe_does_not_end_this_one(pump: Pump) -> None:
    first, second = pump.mesh(2)
    ping = next_probe(pump, first)
    for seq, subject in ((ping.seq + 1, NodeId(0)), (ping.seq, node_id(9))):
        ack = Ack(seq, subject, 1, Vitals(1, 0, 0))
        first.swim.handle_packet(pump.now, second.address, packet(second, ack))
    assert ping.seq in first.swim._prober._probes


def test_ack_in_the_name_of_its_sender_ends_no_probe_of_another(pump: Pump) -> None:
    first, second, third = pump.mesh(3)
    ping = next_probe(pump, first)
    other = third if ping.target == low32(second.node_id) else second
    ack = Ack(ping.seq, NodeId(0), 1, Vitals(1, 0, 0))
    first.swim.handle_packet(pump.now, other.address, packet(other, ack))
    assert ping.seq in first.swim._prober._probes


def test_vitals_of_another_session_are_not_taken(pump: Pump) -> None:
    first, second = pump.mesh(2)
    pump.run(1.0)
    first.swim.handle_packet(
        pump.now, second.address, packet(second, Ack(1, NodeId(0), 2, Vitals(9, 9, 9)))
    )
    assert first.knows(second).vitals != Vitals(9, 9, 9)


def test_numbers_of_probes_begin_anywhere_in_32_bits() -> None:
    starts = [next_probe(pump, pump.mesh(2)[0]).seq for pump in (Pump(seed=n) for n in range(20))]
    assert len({seq >> 24 for seq in starts}) > 10


def test_target_that_is_declared_dead_in_the_middle_is_not_suspected_again(pump: Pump) -> None:
    first, second, third = pump.mesh(3)
    ping = next_probe(pump, first)
    target = second if ping.target == low32(second.node_id) else third
    other = third if target is second else second
    verdict = Dead(target.node_id, 1, 0, Cause.CRASHED, other.node_id)
    first.swim.handle_packet(pump.now, other.address, packet(other, verdict))
    pump.now += pump.config.probe_timeout_s
    outputs = first.swim.handle_timeout(pump.now)
    assert messages(outputs, PingReq) == []
    pump.now += pump.config.probe_interval_s
    first.swim.handle_timeout(pump.now)
    assert first.state_of(target) is State.DEAD


def test_target_that_restarts_in_the_middle_is_not_suspected(pump: Pump) -> None:
    first, second = pump.mesh(2)
    next_probe(pump, first)
    news = Alive(card_bytes(2, boot=2))
    first.swim.handle_packet(pump.now, second.address, packet(second, news))
    for _ in range(2):
        pump.now += pump.config.probe_timeout_s
        first.swim.handle_timeout(pump.now)
    assert first.state_of(second) is State.ALIVE


def test_called_late_for_both_at_once_those_just_asked_get_their_time() -> None:
    pump = Pump(config=replace(local(), lifeguard=plain_swim()))
    first, second, _ = pump.mesh(3)
    ping = next_probe(pump, first)
    target = next(h for h in pump.hosts if low32(h.node_id) == ping.target)
    pump.now += 2 * pump.config.probe_interval_s
    outputs = first.swim.handle_timeout(pump.now)
    assert messages(outputs, PingReq)
    assert first.state_of(target) is State.ALIVE
    ack = Ack(ping.seq, target.node_id, 1, Vitals(1, 0, 0))
    first.swim.handle_packet(pump.now, second.address, packet(second, ack))
    pump.now += pump.config.probe_interval_s
    first.swim.handle_timeout(pump.now)
    assert first.state_of(target) is State.ALIVE


def test_calling_early_or_twice_changes_nothing(pump: Pump) -> None:
    first, _ = pump.mesh(2)
    due = first.swim.next_timeout()
    assert due is not None
    assert first.swim.handle_timeout(due - 0.001) == []
    first.swim.handle_timeout(due)
    before = first.swim.next_timeout()
    assert first.swim.handle_timeout(due) == []
    assert first.swim.next_timeout() == before
