"""Membership and everything else share each datagram and each second; neither starves the other."""

from __future__ import annotations

from collections.abc import Callable

from mesh.core.effects import Effect, SendDatagram
from mesh.core.ids import NodeId
from mesh.core.requests import Tell
from mesh.membership.gossip import ROUNDS, ROUNDS_BURST
from mesh.membership.profile import local
from mesh.node.budget import DATAGRAMS_BURST, DATAGRAMS_S, RUMOUR_BYTES_MAX, WAITING_MAX
from mesh.node.node import Node
from mesh.wire.packet import HEADER, PACKET_BYTES_MAX, decode_packet, encode_message
from mesh.wire.swim_messages import Ack, Alive, Ping
from mesh.wire.work_messages import SlotsFree
from tests.unit.membership.pump import address, card_bytes
from tests.unit.node.talk import NOW, from_host, started

STORM = 1_000
CHECKED_EVERY = 100
PEERS = range(2, 12)


class Watched:
    """A node that hears nothing but what the test tells it, and every datagram that it sends."""

    def __init__(self, rumours: int = 0) -> None:
        self.node: Node = started()
        self.now = NOW
        self.sent: list[tuple[float, SendDatagram]] = []
        self._steps = 0
        for peer in PEERS:
            self.hear(peer, Alive(card_bytes(peer)))
        self.run(NOW + 1.0)
        self.sent.clear()
        for number in range(100, 100 + rumours, 10):
            told = [Alive(card_bytes(n, node_id=NodeId(n))) for n in range(number, number + 10)]
            self.hear(2, *told)

    def run(
        self, until: float, each: Callable[[], None] | None = None, every_s: float = 1.0
    ) -> None:
        """Keep the node's deadlines; call `each` every so often."""
        due = self.now
        while True:
            at = self.node.next_timeout()
            if each is not None and due <= min(until, at if at is not None else until):
                self.now = due
                each()
                due += every_s
            elif at is not None and at <= until:
                self.now = max(self.now, at)
                self._answer_pings(self._keep(self.node.handle_timeout(self.now)))
            else:
                self.now = until
                return

    def work(self, *tells: Tell) -> None:
        """Let the node's work tell something."""
        self._keep(self.node._settle(self.now, list(tells)))

    def hear(self, peer: int, *messages: object) -> None:
        """Let a peer tell something."""
        data = from_host(peer, *messages)
        self._keep(self.node.handle_datagram(self.now, address(peer), data))

    def carrying(self, kind: type) -> list[tuple[float, SendDatagram]]:
        return [sent for sent in self.sent if kind in kinds(sent[1])]

    def _keep(self, effects: list[Effect]) -> list[SendDatagram]:
        self._steps += 1
        if self._steps % CHECKED_EVERY == 0:
            self.node.check_invariants()
        datagrams = [effect for effect in effects if isinstance(effect, SendDatagram)]
        assert all(len(datagram.data) <= PACKET_BYTES_MAX for datagram in datagrams)
        self.sent += [(self.now, datagram) for datagram in datagrams]
        return datagrams

    def _answer_pings(self, datagrams: list[SendDatagram]) -> None:
        for datagram in datagrams:
            for peer in PEERS:
                if datagram.to == address(peer) and Ping in kinds(datagram):
                    ping = decode_packet(datagram.data).messages[0]
                    ack = Ack(ping.seq, NodeId(0), 1, self.node.identity.vitals)
                    self.hear(peer, ack)


def kinds(datagram: SendDatagram) -> list[type]:
    return [type(message) for message in decode_packet(datagram.data).messages]


def to_all() -> list[Tell]:
    return [Tell(address(peer), SlotsFree(1)) for peer in PEERS]


def test_a_storm_of_rumours_delays_no_work_and_rides_with_it() -> None:
    watched = Watched(STORM)
    said: list[float] = []

    def each() -> None:
        said.append(watched.now)
        watched.work(*to_all())

    watched.run(watched.now + 1.0, each, every_s=0.01)
    work = watched.carrying(SlotsFree)
    assert [at for at, _ in work] == [at for at in said for _ in PEERS]
    assert len(said) >= 100
    for _, datagram in work:
        riders = [m for m in decode_packet(datagram.data).messages if isinstance(m, Alive)]
        room = sum(len(encode_message(rider)) for rider in riders)
        assert 0 < room <= RUMOUR_BYTES_MAX


def test_work_takes_no_telling_away_from_the_rumours() -> None:
    calm, busy = Watched(STORM), Watched(STORM)
    calm.run(NOW + 30.0)
    busy.run(NOW + 30.0, lambda: busy.work(*to_all()), every_s=0.05)
    rounds = [d for d in busy.sent if SlotsFree not in kinds(d[1])]
    assert rounds == calm.sent
    assert len(busy.node._swim._news) == len(calm.node._swim._news) == 0


def test_a_storm_of_rumours_is_told_at_a_bounded_pace() -> None:
    watched = Watched(STORM)
    for number in range(1000):  # and never ends
        watched.hear(3, Alive(card_bytes(2, incarnation=number + 1)))
        watched.run(watched.now + 0.005)
    rounds = {at for at, datagram in watched.sent if Alive in kinds(datagram)}
    seconds = watched.now - NOW - 1.0
    assert len(rounds) <= ROUNDS * seconds / local().gossip_interval_s + ROUNDS_BURST + 60
    assert watched.node.view(watched.now).node["counters"]["held_gossip"] > 0


def test_a_flood_of_work_moves_no_probe() -> None:
    calm, busy = Watched(), Watched()
    calm.run(NOW + 4.0)

    def flood() -> None:
        busy.work(*(Tell(address(n), SlotsFree(n)) for n in range(2, 250) for _ in range(20)))

    busy.run(NOW + 4.0, flood, every_s=0.05)
    assert busy.carrying(Ping) == calm.carrying(Ping)
    work = [at for at, datagram in busy.sent if SlotsFree in kinds(datagram)]
    assert max(sum(at <= t < at + 1.0 for t in work) for at in work[:: len(work) // 50]) <= (
        DATAGRAMS_S + DATAGRAMS_BURST
    )
    counters = busy.node.view(busy.now).node["counters"]
    assert counters["held_tells"] > 0
    assert counters["dropped_tells"] > 0
    assert len(busy.node._budget) <= WAITING_MAX


def test_what_waits_for_tokens_leaves_in_time_by_itself() -> None:
    watched = Watched()
    for count in range(3):
        watched.work(*(Tell(address(n), SlotsFree(count)) for n in range(2, 202)))
    assert len(watched.carrying(SlotsFree)) == DATAGRAMS_BURST
    assert len(watched.node._budget) > 0
    watched.run(watched.now + 1.0)
    told = [
        (sent.to, message.free_slots)
        for _, sent in watched.sent
        for message in decode_packet(sent.data).messages
        if isinstance(message, SlotsFree)
    ]
    assert sorted(told, key=str) == sorted(
        ((address(n), count) for n in range(2, 202) for count in range(3)), key=str
    )
    for n in range(2, 202):
        assert [count for to, count in told if to == address(n)] == [0, 1, 2]
    assert "dropped_tells" not in watched.node.view(watched.now).node["counters"]


def test_the_header_and_both_shares_fill_a_packet() -> None:
    assert HEADER.size + RUMOUR_BYTES_MAX * 4 in range(PACKET_BYTES_MAX - 3, PACKET_BYTES_MAX + 1)
