"""Anti-entropy: two members compare what they know, and both end up with the union."""

import pytest

from mesh.core.ids import NodeId, low32
from mesh.errors import TransportError
from mesh.membership.sync import SYNCS_MAX
from mesh.wire.packet import Packet, encode_message
from mesh.wire.records import Cause, Standing, State, Vitals
from mesh.wire.swim_messages import (
    Ack,
    Ping,
    SyncBuckets,
    SyncDelta,
    SyncOffer,
    SyncRoot,
    SyncSame,
)
from tests.unit.membership.pump import (
    Host,
    Pump,
    address,
    are_equal,
    card_bytes,
    node_id,
    packet,
)


@pytest.fixture
def pump() -> Pump:
    return Pump()


def syncs(host: Host) -> int:
    return sum(isinstance(ask.message, SyncRoot) for ask in host.asked)


def test_equal_members_exchange_less_than_a_hundred_bytes_each_way(pump: Pump) -> None:
    hosts = pump.mesh(20)
    pump.run(20.0)
    pump.bytes_on_streams = 0
    before = sum(map(syncs, hosts))
    pump.run(30.0)
    count = sum(map(syncs, hosts)) - before
    assert count >= 20
    assert pump.bytes_on_streams / count < 100
    assert len(encode_message(SyncSame())) < 10


def test_only_the_buckets_that_differ_are_offered(pump: Pump) -> None:
    first, second = pump.mesh(2)
    for number in range(3, 200):
        for host in (first, second):
            host.swim.table.apply_card(pump.now, card_bytes(number))
    second.swim.table.apply_card(pump.now, card_bytes(250))
    first.swim._sync.begin(second.address)
    pump._carry_out(first, first.swim._outbox.take())
    pump.run(0.05)
    offer = next(ask.message for ask in first.asked if isinstance(ask.message, SyncOffer))
    assert len(offer.buckets) == 1
    assert len(offer.members) < 10
    assert first.swim.table.get(node_id(250)) is not None


def test_what_gossip_missed_is_repaired(pump: Pump) -> None:
    hosts = pump.mesh(4)
    hosts[0].swim.table.apply_card(pump.now, card_bytes(3, incarnation=5))
    hosts[2].swim.identity.refute(4)
    hosts[2].swim.table.apply_card(pump.now, hosts[2].swim.identity.card_bytes)
    pump.run(6 * pump.config.sync_interval_s)
    assert are_equal(hosts)


def test_stranger_who_speaks_is_met(pump: Pump) -> None:
    first, second = pump.mesh(2)
    other = Pump(5)
    stranger = other.add(9, mesh_id=first.swim.identity.mesh_id)
    pump.hosts.append(stranger)
    pump.at_host(first, stranger, Ping(1, low32(first.node_id), 0))
    pump.run(1.0)
    assert are_equal([first, second, stranger])
    assert len(first.swim.table) == 3


def test_falsely_dead_member_is_back_within_a_period_of_its_next_message(pump: Pump) -> None:
    hosts = pump.mesh(5)
    victim = hosts[4]
    pump.pause(victim)
    pump.run(10.0)
    assert all(host.state_of(victim) is State.DEAD for host in hosts[:4])
    pump.resume(victim)
    victim.sent.clear()
    pump.run_until(lambda: bool(victim.sent), 5.0)
    pump.run(pump.config.probe_interval_s)
    assert all(host.state_of(victim) is State.ALIVE for host in hosts[:4])
    assert all(victim.state_of(host) is State.ALIVE for host in hosts[:4])


def test_exchanges_under_way_are_bounded_and_all_end(pump: Pump) -> None:
    first, second = pump.mesh(2)
    for number in range(20, 60):
        pump.cut = lambda _a, to: to != second.address
        stray = packet(second, Ping(1, low32(first.node_id), 0))
        stranger = Packet(stray.mesh_id, node_id(number), stray.messages)
        pump._carry_out(first, first.swim.handle_packet(pump.now, address(number), stranger))
    assert len(first.swim._sync._open) == SYNCS_MAX
    assert first.swim.counters["dropped_syncs"] >= 40 - SYNCS_MAX
    pump.run(3 * pump.config.exchange_timeout_s)
    assert len(first.swim._sync._open) == 0


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize(
    "reply",
    [
        TransportError("timed out"),
        SyncBuckets(b"short"),
        Ack(1, NodeId(0), 1, Vitals(1, 0, 0)),
        SyncSame(),
    ],
)
def test_any_unexpected_reply_ends_the_exchange(pump: Pump, step: int, reply: object) -> None:
    first, second = pump.mesh(2)
    sync = first.swim._sync
    sync.begin(second.address)
    sync.handle_reply(pump.now, second.node_id, ("sync", second.address, step), reply)
    assert len(sync._open) == 0


def test_peer_that_always_differs_does_not_keep_an_exchange_going_for_ever(pump: Pump) -> None:
    first, second = pump.mesh(2)
    first.swim._sync.begin(second.address)
    first.swim._outbox.take()
    tag: object = ("sync", second.address, 1)
    different = Packet(first.swim.identity.mesh_id, second.node_id, (SyncBuckets(b"\x01" * 512),))
    rounds = 0
    while tag is not None and rounds < 10:
        outputs = first.swim.handle_reply(pump.now, tag, different)
        tags = [o.tag for o in outputs if hasattr(o, "tag")]
        tag = tags[0] if tags else None
        rounds += 1
    assert rounds == 2
    assert len(first.swim._sync._open) == 0


def test_delta_holds_only_what_is_known_better_here(pump: Pump) -> None:
    first, second = pump.mesh(2)
    first.swim.table.apply_card(pump.now, card_bytes(3, incarnation=4))
    first.swim.table.apply_card(pump.now, card_bytes(4))
    theirs = second.swim.table
    theirs.apply_card(pump.now, card_bytes(3, incarnation=2))
    theirs.apply_card(pump.now, card_bytes(4))
    buckets = tuple(range(64))
    offer = SyncOffer(buckets, tuple(m.standing(pump.now) for m in theirs))
    reply, _ = first.swim.handle_request(pump.now, second.node_id, offer)
    assert isinstance(reply, SyncDelta)
    assert [standing.card for standing in reply.members] == [card_bytes(3, incarnation=4)]


def test_missed_farewell_is_learned_after_a_partition(pump: Pump) -> None:
    hosts = pump.mesh(6)
    leaver = hosts[5]
    pump.partition(hosts[0], hosts[1])
    pump.run(5.0)
    pump.leave(leaver)
    pump.run(5.0)
    assert hosts[0].state_of(leaver) is State.DEAD
    assert hosts[2].state_of(leaver) is State.LEFT
    pump.heal()
    pump.run(20.0)
    assert [host.state_of(leaver) for host in hosts[:5]] == [State.LEFT] * 5


def test_member_that_still_says_farewell_is_not_asked_what_it_knows(pump: Pump) -> None:
    hosts = pump.mesh(8)
    pump.leave(hosts[7])
    before = [len(host.asked) for host in hosts]
    pump.run(2 * pump.config.leave_linger_s)
    new = [a for host, count in zip(hosts, before, strict=True) for a in host.asked[count:]]
    asked = [ask for ask in new if ask.to == hosts[7].address]
    assert all(host.state_of(hosts[7]) is State.LEFT for host in hosts[:7])
    assert [ask for ask in asked if isinstance(ask.message, SyncRoot)] == []


def test_member_that_missed_the_news_learns_it_within_two_periods_of_pings(pump: Pump) -> None:
    hosts = pump.mesh(8)
    pump.run(30.0)
    deaf = hosts[-1]
    for host in hosts[:-1]:
        host.swim.table.apply_card(pump.now, card_bytes(77))  # gossip has come and gone
    assert pump.run_until(lambda: deaf.swim.table.get(node_id(77)) is not None, 2.0)


def test_views_that_differ_for_ever_cost_one_exchange_a_period(pump: Pump) -> None:
    first, second = pump.mesh(2)
    pump.run(10.0)
    before = syncs(first)
    for _ in range(50):
        pump.at_host(first, second, Ping(1, low32(first.node_id), 12345))
        pump.run(0.02)
    assert 1 <= syncs(first) - before <= 1.0 / first.swim._config.probe_interval_s + 1


@pytest.mark.parametrize(("cause", "is_short"), [(Cause.CRASHED, True), (Cause.SILENT, False)])
def test_crash_that_another_saw_is_a_short_suspicion_and_silence_a_whole_one(
    pump: Pump, cause: Cause, is_short: bool
) -> None:
    hosts = pump.mesh(4)
    pump.run(1.0)
    gone, teller = hosts[3], hosts[1]
    pump.kill(gone)
    standing = Standing(1, 0, State.DEAD, cause, 0, card_bytes(4))
    hosts[0].swim.handle_request(pump.now, teller.node_id, SyncOffer((0,), (standing,)))
    assert hosts[0].state_of(gone) is State.SUSPECT
    suspected = hosts[0].swim.rumours.suspicions.get(gone.node_id)
    assert suspected is not None
    ends_s = suspected.due - pump.now
    config = pump.config
    least_s = config.moment_s(4) if is_short else config.longest_suspicion_s(4)
    assert ends_s == pytest.approx(least_s, rel=0.01)
    pump.run(ends_s + 0.1)
    assert hosts[0].knows(gone).cause is cause
