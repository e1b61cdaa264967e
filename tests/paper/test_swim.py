"""One claim of the SWIM paper, one test. Keys are resolved in docs/references.md."""

from __future__ import annotations

import dataclasses
import math
import random
import statistics

import pytest

from mesh.core.events import EventKind
from mesh.membership.dissemination import Dissemination, retransmit_limit
from mesh.membership.probe_order import ProbeOrder
from mesh.membership.profile import SwimConfig, lan, local
from mesh.membership.table import MemberTable
from mesh.wire.packet import PACKET_BYTES_MAX, decode_packet
from mesh.wire.records import State
from mesh.wire.swim_messages import Alive, Suspect
from tests.unit.membership.pump import Host, Pump, are_equal, card_bytes, node_id


def ready_made(
    count: int, config: SwimConfig, seed: int = 0, kind: type[Pump] = Pump
) -> tuple[Pump, list[Host]]:
    """A mesh whose members have known each other for long: no news is on its way."""
    pump = kind(seed, config)
    founder = pump.add(1)
    mesh_id = founder.swim.identity.mesh_id
    hosts = [founder, *(pump.add(n, mesh_id=mesh_id) for n in range(2, count + 1))]
    for host in hosts:
        for number in range(1, count + 1):
            if node_id(number) != host.node_id:
                change = host.swim.table.apply_card(pump.now, card_bytes(number))
                assert change is not None
                host.swim.rumours.names.file(change.card, is_living=True)
        host.swim._news.forget(host.node_id)
        host.due = host.swim.next_timeout()
    return pump, hosts


@pytest.mark.parametrize("count", [10, 40])
def test_load_per_member_does_not_grow_with_the_mesh(count: int) -> None:
    """[SWIM §3.1]: one ping a period leaves, and one on average arrives and is answered."""
    config = dataclasses.replace(lan(), sync_interval_s=1000.0)
    pump, hosts = ready_made(count, config)
    pump.run(20.0)
    sent = sum(len(host.sent) for host in hosts) / count / 20.0
    assert sent == pytest.approx(2.0, rel=0.1)


@pytest.mark.parametrize("count", [4, 20])
def test_first_detection_takes_about_one_and_a_half_periods_whatever_the_size(count: int) -> None:
    """[SWIM §3.1]: with uniformly random targets some member picks a failed one within e/(e-1) periods.

    Counted from the crash to the first ping to the dead member, over periods that are not aligned.
    Deviation: targets come round-robin [SWIM §4.3], each member's order an independent shuffle, which
    leaves the expectation about as it is.
    """
    config = dataclasses.replace(local(), sync_interval_s=1000.0)
    waits = []
    for seed in range(12):
        pump, hosts = ready_made(count, config, seed)
        pump.run(pump.rng.uniform(1, 3))
        victim = hosts[pump.rng.randrange(count)]
        pump.kill(victim)
        for host in hosts:
            host.sent.clear()
        rest = [host for host in hosts if host is not victim]
        waits.append(first_ping(pump, rest, victim) / config.probe_interval_s)
    assert statistics.mean(waits) < 1.2 * math.e / (math.e - 1)


def first_ping(pump: Pump, rest: list[Host], victim: Host) -> float:
    """Return the seconds until the first datagram goes to `victim`."""
    started = pump.now
    assert pump.run_until(lambda: any(s.to == victim.address for h in rest for s in h.sent), 30.0)
    return pump.now - started


def test_every_member_is_probed_again_within_two_rounds() -> None:
    """[SWIM §4.3]: round-robin probing bounds the time until a given member detects a crash."""
    count = 30
    table = MemberTable(node_id(1))
    for number in range(1, count + 1):
        table.apply_card(0.0, card_bytes(number))
    order = ProbeOrder(random.Random(3))
    last: dict[int, int] = {}
    gaps = []
    for period in range(20 * count):
        member = order.next(table)
        assert member is not None
        gaps.append(period - last.get(member.node_id, period))
        last[member.node_id] = period
    assert len(last) == count - 1
    assert max(gaps) <= 2 * (count - 1) - 1


def test_every_crash_is_detected_by_every_survivor() -> None:
    """[SWIM §3.1, §4.3]: strong completeness, here in bounded time and under loss."""
    pump, hosts = ready_made(12, local())
    pump.loss_ratio = 0.1
    victims, rest = hosts[9:], hosts[:9]
    for victim in victims:
        pump.kill(victim)
    config = pump.config
    bound_s = 2 * 12 * config.probe_interval_s + 2 * config.pause_tolerance_s
    assert pump.run_until(
        lambda: all(h.state_of(v) is State.DEAD for h in rest for v in victims), bound_s
    )


@pytest.mark.parametrize("count", [8, 64])
def test_news_reaches_everybody_in_a_logarithmic_number_of_rounds(count: int) -> None:
    """[SWIM §4.1]: infection-style dissemination infects all in O(log n) periods."""
    pump, hosts = ready_made(count, local())
    news = Alive(card_bytes(2, incarnation=1, name="news"))
    pump.at_host(hosts[0], hosts[2], news)
    started = pump.now
    informed = [h for h in hosts if h is not hosts[1]]
    assert pump.run_until(
        lambda: all(h.swim.rumours.names.holder("news", h.node_id) for h in informed), 10.0
    )
    rounds = (pump.now - started) / pump.config.gossip_interval_s
    assert rounds <= math.log2(count) + 3


def test_each_rumour_is_told_a_logarithmic_number_of_times() -> None:
    """[SWIM §4.1]: λ log n piggybacks of each update by each member, then it rests."""
    for size in (10, 100, 1000):
        news = Dissemination(3.0)
        news.add(node_id(1), b"x" * 30)
        told = sum(1 for _ in range(100) if news.take(1000, size))
        assert told == retransmit_limit(3.0, size) == math.ceil(3 * math.log10(size + 1))


def test_updates_told_less_often_are_preferred() -> None:
    """[SWIM §4.1]: when not all fit, young updates infect first."""
    news = Dissemination(4.0)
    news.add(node_id(1), b"old" * 10)
    news.take(30, 99)
    news.add(node_id(2), b"new" * 10)
    assert news.take(30, 99) == [b"new" * 10]


def test_news_rides_on_the_probes_that_are_sent_anyway() -> None:
    """[SWIM §4.1]: piggybacking spreads news without packets of its own.

    Deviation: here rounds of gossip speed it up; with one per hour the probes alone still do it.
    """
    config = dataclasses.replace(
        local(), gossip_interval_s=3600.0, news_delay_s=3600.0, sync_interval_s=1000.0
    )
    pump, hosts = ready_made(10, config)
    for host in hosts:
        host.sent.clear()
    pump.at_host(hosts[0], hosts[2], Alive(card_bytes(2, incarnation=1, name="news")))
    informed = [h for h in hosts if h is not hosts[1]]
    assert pump.run_until(
        lambda: all(h.swim.rumours.names.holder("news", h.node_id) for h in informed), 5.0
    )
    for host in hosts:
        assert all(
            any(not isinstance(m, Alive) for m in decode_packet(s.data).messages) for s in host.sent
        )
        assert all(len(sent.data) <= PACKET_BYTES_MAX for sent in host.sent)


class NoStreams(Pump):
    """A network that carries datagrams only."""

    def _answer(self, host: Host, data: bytes) -> bytes:
        return b""


def suspicions(indirect_probes: int) -> int:
    """Count first-hand false suspicions in a mesh that loses a tenth of all datagrams, without TCP."""
    config = dataclasses.replace(local(), indirect_probes=indirect_probes, sync_interval_s=1000.0)
    pump, hosts = ready_made(10, config, seed=5, kind=NoStreams)
    pump.loss_ratio = 0.1
    pump.run(20.0)
    return sum(
        event.kind is EventKind.SUSPECT and "no answer to a ping" in event.evidence[0]
        for host in hosts
        for event in host.events
    )


def test_indirect_probes_make_false_suspicions_rarer() -> None:
    """[SWIM §3.1]: k members asked to ping mask the loss on the direct path."""
    without, with_three = suspicions(0), suspicions(3)
    assert without > 50
    assert with_three < without / 10


def test_suspicion_lets_a_falsely_accused_member_refute() -> None:
    """[SWIM §4.2]: a suspect that is alive is not declared failed, if it hears of the suspicion in time."""
    pump, hosts = ready_made(10, local())
    for number in range(2, 7):
        accusation = Suspect(node_id(number), 1, 0, hosts[0].node_id)
        pump.at_host(hosts[0], hosts[9], accusation)
    pump.run(5.0)
    assert all(EventKind.DEAD not in host.kinds() for host in hosts)
    assert hosts[1].swim.identity.card.incarnation == 1
    assert are_equal(hosts)


def test_only_the_member_itself_raises_its_incarnation() -> None:
    """[SWIM §4.2]: others repeat the number that they heard."""
    pump, hosts = ready_made(6, local())
    pump.kill(hosts[5])
    pump.run(10.0)
    for host in hosts[:5]:
        member = host.swim.table.get(hosts[5].node_id)
        assert member is not None
        assert (member.state, member.incarnation) == (State.DEAD, 0)
