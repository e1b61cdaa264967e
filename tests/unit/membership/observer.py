"""Host 1 as an observer of host 2, for what it makes of ends and refusals."""

from __future__ import annotations

import errno
import random

from mesh.core.address import Address
from mesh.core.effects import KeepOpen, SendDatagram
from mesh.core.ids import MeshId, low32
from mesh.core.lines import DatagramRefused, HungUp
from mesh.core.requests import Ask, Outgoing
from mesh.errors import TransportError
from mesh.membership.identity import Identity
from mesh.membership.profile import lan
from mesh.membership.swim import Swim
from mesh.wire.packet import Packet, decode_packet
from mesh.wire.records import Cause, State, Vitals
from mesh.wire.swim_messages import (
    Ack,
    Alive,
    Lifeline,
    LifelineKept,
    Ping,
    Seen,
    Suspect,
)
from tests.unit.membership.pump import address, card, card_bytes, node_id

MESH = MeshId(7)
BOTH = int(Seen.CLOSED | Seen.REFUSED)
REFUSAL = TransportError("refused", errno.ECONNREFUSED)
LINE = Address("10.0.0.9", 40_000)


class Observer:
    """Host 1 in a mesh of `size`; host 2 is whom it observes."""

    def __init__(self, size: int = 3) -> None:
        self.swim = Swim(config=lan(), identity=Identity(card(1), MESH), rng=random.Random(1))
        self.swim.start(0.0, is_founder=False)
        for number in range(2, size + 1):
            self.hears(0.0, number, Alive(card_bytes(number)))
        self.swim.take_changes()
        assert self.keeps(Lifeline(1)) == LifelineKept()

    def hears(self, now: float, sender: int, *messages: object) -> list[Outgoing]:
        packet = Packet(MESH, node_id(sender), messages)
        return self.swim.handle_packet(now, address(sender), packet)

    def keeps(self, message: Lifeline, source: Address = LINE) -> LifelineKept | None:
        reply = self.swim.lines.evidence.on_lifeline(node_id(2), source, message)
        kept = [output for output in self.swim.handle_timeout(0.0) if isinstance(output, KeepOpen)]
        assert kept == ([KeepOpen(source)] if reply else [])
        return reply

    def hang_up(self, now: float = 1.0, source: Address = LINE) -> list[Ask]:
        self.swim.lines.handle(now, HungUp(source))
        return [output for output in self.swim.handle_timeout(now) if isinstance(output, Ask)]

    def refused(self, now: float = 1.0, number: int = 2) -> list[Outgoing]:
        self.swim.lines.handle(now, DatagramRefused(address(number)))
        return self.swim.handle_timeout(now)

    def answers(self, now: float, ask: Ask, reply: Packet | Exception) -> list[Outgoing]:
        return self.swim.handle_reply(now, ask.tag, reply)

    def waits(self, now: float) -> list[Outgoing]:
        return self.swim.handle_timeout(now)

    @property
    def state(self) -> tuple[State, Cause]:
        return self.state_of(2)

    def state_of(self, number: int) -> tuple[State, Cause]:
        member = self.swim.table.get(node_id(number))
        assert member is not None
        return member.state, member.cause


def asks(outputs: list[Outgoing]) -> list[Ask]:
    return [output for output in outputs if isinstance(output, Ask)]


def pings(outputs: list[Outgoing]) -> list[Address]:
    """Return who is pinged beside the periods."""
    sent = [o for o in outputs if isinstance(o, SendDatagram)]
    return [o.to for o in sent if Ping(0, low32(node_id(2)), 0) in decode_packet(o.data).messages]


def suspicions(outputs: list[Outgoing]) -> set[Suspect]:
    packets = [decode_packet(o.data) for o in outputs if isinstance(o, SendDatagram)]
    return {m for packet in packets for m in packet.messages if isinstance(m, Suspect)}


def ack(boot: int = 1, number: int = 2) -> Packet:
    message = Ack(0, node_id(0) if number == 0 else node_id(number), low32(boot), Vitals(1, 0, 0))
    return Packet(MESH, node_id(number), (message,))
