"""Rounds of gossip: while there is news, and to whom."""

from mesh.membership.dissemination import retransmit_limit
from mesh.membership.profile import lan
from mesh.wire.packet import PACKET_BYTES_MAX, decode_packet
from mesh.wire.records import Cause, State
from mesh.wire.swim_messages import Ack, Alive, Dead, Ping
from tests.unit.membership.pump import Pump, card_bytes, packet


def test_node_that_is_alone_is_quiet() -> None:
    pump = Pump()
    host = pump.add(1)
    pump.run(1.0)
    calls = 0
    while host.due is not None and host.due < pump.now + 10.0 and calls < 1000:
        host.swim.handle_timeout(host.due)
        host.due = host.swim.next_timeout()
        calls += 1
    assert calls <= 10 / pump.config.probe_interval_s + 5


def test_idle_mesh_sends_nothing_but_probes() -> None:
    pump = Pump(config=lan())
    hosts = pump.mesh(8, settle_s=20.0)
    for host in hosts:
        host.sent.clear()
    pump.run(60.0)
    for host in hosts:
        kinds = {type(m) for sent in host.sent for m in decode_packet(sent.data).messages}
        assert kinds <= {Ping, Ack}
        assert len(host.sent) / 60.0 < 3.0


def test_news_goes_out_at_once() -> None:
    pump = Pump()
    hosts = pump.mesh(8)
    moved = Alive(card_bytes(8, incarnation=1, name="renamed"))
    pump.at_host(hosts[0], hosts[1], moved)
    assert pump.run_until(
        lambda: all(h.swim.rumours.names.holder("renamed", hosts[0].node_id) for h in hosts[:7]),
        0.2,
    )


def test_the_first_rounds_of_news_follow_each_other_closely() -> None:
    pump = Pump(config=lan())
    hosts = pump.mesh(30)
    hosts[0].sent.clear()
    pump.at_host(hosts[0], hosts[1], Alive(card_bytes(8, incarnation=1, name="renamed")))
    pump.run(pump.config.gossip_interval_s / 2)
    told = [s.to for s in hosts[0].sent if Alive in map(type, decode_packet(s.data).messages)]
    assert len(set(told)) >= 2 * pump.config.gossip_fanout, "two rounds, and nobody told twice"


def test_news_ends_after_a_bounded_number_of_packets() -> None:
    pump = Pump()
    hosts = pump.mesh(8)
    for host in hosts:
        host.sent.clear()
    pump.at_host(hosts[0], hosts[1], Alive(card_bytes(8, incarnation=1, name="renamed")))
    pump.run(5.0)
    carrying = [
        sum(Alive in map(type, decode_packet(sent.data).messages) for sent in host.sent)
        for host in hosts
    ]
    assert max(carrying) <= 4  # 4 * log10(8 + 1), rounded up


def test_recently_dead_are_told_too() -> None:
    pump = Pump()
    hosts = pump.mesh(3)
    pump.at_host(
        hosts[0],
        hosts[1],
        Dead(hosts[2].node_id, 1, 0, Cause.CRASHED, hosts[1].node_id),
    )
    assert hosts[0].state_of(hosts[2]) is State.DEAD
    hosts[0].sent.clear()
    pump.run(2 * pump.config.gossip_interval_s)
    told = [s.to for s in hosts[0].sent if Dead in map(type, decode_packet(s.data).messages)]
    assert hosts[2].address in told
    assert pump.run_until(lambda: hosts[0].state_of(hosts[2]) is State.ALIVE, 0.5)


def test_where_a_guardian_has_said_that_a_session_is_over_nobody_is_told_anything() -> None:
    pump = Pump()
    hosts = pump.mesh(3)
    pump.kill(hosts[2])
    verdict = Dead(hosts[2].node_id, 1, 0, Cause.ENDED, hosts[2].node_id)
    pump.at_host(hosts[0], hosts[1], verdict)
    hosts[0].sent.clear()
    pump.run(5 * pump.config.gossip_interval_s)
    told = {s.to for s in hosts[0].sent if Dead in map(type, decode_packet(s.data).messages)}
    assert told == {hosts[1].address}


def test_what_the_dead_are_told_uses_up_no_telling_of_the_living() -> None:
    pump = Pump()
    hosts = pump.mesh(30)
    for dead in hosts[1:4]:
        verdict = Dead(dead.node_id, 1, 0, Cause.CRASHED, hosts[5].node_id)
        for host in (hosts[0], *hosts[4:]):
            pump.at_host(host, hosts[5] if host is not hosts[5] else hosts[6], verdict)
        pump.cut = lambda a, b: {a, b} & {host.address for host in hosts[1:4]} != set()
    pump.run(3.0)  # until that is told
    hosts[0].sent.clear()
    pump.at_host(hosts[0], hosts[5], Alive(card_bytes(6, incarnation=1, name="renamed")))
    pump.run(3.0)
    told = [s.to for s in hosts[0].sent if Alive in map(type, decode_packet(s.data).messages)]
    living = [to for to in told if to not in {host.address for host in hosts[1:4]}]
    assert len(told) > len(living), "the dead are told too"
    assert len(living) == retransmit_limit(pump.config.retransmit_multiplier, 27)


def test_datagrams_keep_to_the_limit_with_three_hundred_rumours_pending() -> None:
    pump = Pump()
    first, second = pump.mesh(2)
    first.sent.clear()
    for number in range(10, 300):
        message = Alive(card_bytes(number, name=f"host-{number}-" + "x" * (number % 40)))
        first.swim.handle_packet(pump.now, second.address, packet(second, message))
    pump.run(0.3)  # the pump asserts the limit on every datagram
    sizes = [len(sent.data) for sent in first.sent]
    assert sizes
    assert PACKET_BYTES_MAX - 200 < max(sizes) <= PACKET_BYTES_MAX


def test_largest_card_travels_beside_a_ping() -> None:
    pump = Pump()
    first, second = pump.mesh(2)
    labels = tuple((f"{n:02}" + "k" * 20, "v" * 40) for n in range(14))
    meta = first.swim.identity.card.meta.__class__(labels=labels)
    big = card_bytes(30, meta=meta)
    assert len(big) > 900
    pump.at_host(first, second, Alive(big))
    pump.run(0.5)
    assert any(big in sent.data for sent in first.sent)
