"""Whoever lets a node in dials the address back that it advertises, and says in plain words if that fails.

    joiner                         seed
      |------ Join ---------------->|
      |<----- Welcome --------------|   nothing waits for what follows
      |<~~~~~ ping by UDP ~~~~~~~~~~|   again and again until an ack, for as long as an exchange may take
      |<===== ping on a stream =====|   once
      |                             |   an event at the seed, if either found nobody
      |------ Reached? ------------>|   a moment later, once
      |<----- what came of it ------|   an event at the joiner: it is the one who can mend it

A node that can send but not be reached joins well, and is then suspected for ever after: the reason,
a wrong `--advertise` or a firewall, is told where people look.
"""

from __future__ import annotations

import random
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from mesh.core.address import Address
from mesh.core.events import Event, EventKind
from mesh.core.ids import NodeId, low32
from mesh.errors import TransportError
from mesh.membership.identity import Identity
from mesh.membership.outbox import Outbox
from mesh.membership.profile import SwimConfig
from mesh.membership.table import MemberTable
from mesh.wire.packet import Packet
from mesh.wire.records import Card, State
from mesh.wire.swim_messages import Ack, Ping, Reached, ReachedAnswer

PINGS: Final = 10
"""How often it is pinged before it counts as out of reach by UDP: lost packets are no firewall."""

DIALS_MAX: Final = 64
"""So many are dialled at once; whoever joins meanwhile is not."""

RESULTS_MAX: Final = 1_024
"""So many results are held for the question that comes later, the latest."""

REASON_CHARS_MAX: Final = 200

ADVICE: Final = "check --advertise and the firewall"


@dataclass(slots=True)
class _Dial:
    card: Card
    seq: int
    next_at: float
    pings: int = 0
    has_ack: bool = False
    stream: str | None = None  # why there was no answer, "" when there was one, None: still open

    @property
    def is_over(self) -> bool:
        return self.stream is not None and (self.has_ack or self.pings > PINGS)


@dataclass(frozen=True, slots=True)
class _Question:
    due: float
    seed: str
    address: Address


class Dialback:
    """Both halves: dials those who join here, and asks once whether this node was reached itself."""

    def __init__(
        self,
        *,
        config: SwimConfig,
        identity: Identity,
        table: MemberTable,
        outbox: Outbox,
        rng: random.Random,
    ) -> None:
        self._timeout_s = config.exchange_timeout_s
        self._identity = identity
        self._table = table
        self._outbox = outbox
        self._rng = rng
        self._dials: dict[NodeId, _Dial] = {}
        self._results: dict[NodeId, tuple[int, ReachedAnswer]] = {}
        self._question: _Question | None = None
        self._events: list[Event] = []

    # The seed's half.

    def dial(self, now: float, card: Card) -> None:
        """Begin to dial a node that was just let in, unless too many are dialled already."""
        if len(self._dials) >= DIALS_MAX and card.node_id not in self._dials:
            return
        seq = self._rng.getrandbits(32)
        self._results.pop(card.node_id, None)
        self._dials[card.node_id] = _Dial(card, seq, now + self._pause_s)
        ping = Ping(seq, low32(card.node_id), 0)
        tag = ("dial", card.node_id, seq)
        self._outbox.ask(card.address, ping, tag, self._timeout_s, may_be_foreign=True)

    def on_ack(self, sender: NodeId, message: Ack) -> None:
        """Take an ack that came by UDP."""
        dial = self._dials.get(sender)
        if dial is not None and message.seq == dial.seq and not message.subject:
            dial.has_ack = True
            self._conclude(dial)

    def on_reached(self, sender: NodeId, message: Reached) -> ReachedAnswer:
        """Answer a node that wants to know whether it was reached; empty texts: no reason to worry."""
        boot, answer = self._results.get(sender, (0, ReachedAnswer("", "")))
        return answer if boot == message.boot else ReachedAnswer("", "")

    # The joiner's half.

    def entered(self, now: float, seed: str, address: Address) -> None:
        """A seed has let this node in: ask it later what came of its dialling."""
        self._question = _Question(now + 1.25 * self._timeout_s, seed, address)

    # Both.

    def stop(self) -> None:
        """Dial and ask no more."""
        self._dials.clear()
        self._question = None

    def next_deadline(self) -> float | None:
        """Return when this machine wants to be called next."""
        dials = self._dials.values()
        deadlines = [d.next_at for d in dials if not d.has_ack and d.pings <= PINGS]
        if self._question is not None:
            deadlines.append(self._question.due)
        return min(deadlines, default=None)

    def handle_timeout(self, now: float) -> None:
        """Ping again who has not answered yet, and ask what is due."""
        for dial in list(self._dials.values()):
            if dial.has_ack or dial.pings > PINGS or now < dial.next_at:
                continue
            dial.pings += 1  # the last turn pings nobody: it ends the wait for the last answer
            dial.next_at = now + self._pause_s
            if dial.pings <= PINGS:
                ping = Ping(dial.seq, low32(dial.card.node_id), 0)
                self._outbox.send(dial.card.address, ping)
            self._conclude(dial)
        question = self._question
        if question is not None and now >= question.due:
            self._question = None
            boot = self._identity.card.boot
            tag = ("reached", question.seed)
            self._outbox.ask(question.address, Reached(boot), tag, self._timeout_s)

    def handle_reply(self, tag: tuple[Hashable, ...], reply: Packet | Exception) -> None:
        """Take the outcome of a ping on a stream, or of this node's own question."""
        message = reply if isinstance(reply, Exception) else reply.messages[0]
        if tag[0] == "reached":
            if isinstance(message, ReachedAnswer):
                self._hear(str(tag[1]), message)
            return
        node_id = NodeId(int(str(tag[1])))
        dial = self._dials.get(node_id)
        if dial is None or dial.seq != tag[2]:
            return
        if isinstance(message, Ack) and isinstance(reply, Packet):
            dial.stream = "" if reply.sender == node_id else "another node answers there"
        elif isinstance(message, TransportError):
            dial.stream = str(message)
        else:
            dial.stream = "what answers there is no node of this mesh"
        self._conclude(dial)

    def take_events(self) -> list[Event]:
        """Return and forget what is to be published."""
        events, self._events = self._events, []
        return events

    @property
    def _pause_s(self) -> float:
        return self._timeout_s / PINGS

    def _conclude(self, dial: _Dial) -> None:
        """Keep and say the result, once both ways have been tried, unless the session has ended by itself.

        One that is held dead meanwhile is told: to be out of reach looks like that.
        """
        card = dial.card
        if not dial.is_over or self._dials.pop(card.node_id, None) is None:
            return
        member = self._table.get(card.node_id)
        if member is None or member.state >= State.LEFT or member.boot != card.boot:
            return
        udp = "" if dial.has_ack else f"no answer to {PINGS} pings"
        answer = ReachedAnswer(udp, (dial.stream or "")[:REASON_CHARS_MAX])
        if len(self._results) >= RESULTS_MAX:
            del self._results[next(iter(self._results))]
        self._results[card.node_id] = (card.boot, answer)
        ways = _ways(answer)
        if ways:
            text = f"cannot reach {card.name} at {card.address} by {ways}; {ADVICE} there"
            self._warn(card, text)

    def _hear(self, seed: str, answer: ReachedAnswer) -> None:
        ways = _ways(answer)
        if ways:
            card = self._identity.card
            self._warn(card, f"{seed} cannot reach this node at {card.address} by {ways}; {ADVICE}")

    def _warn(self, card: Card, text: str) -> None:
        event = Event(kind=EventKind.WARN, member_id=card.node_id, member=card.name, detail=text)
        self._events.append(event)


def _ways(answer: ReachedAnswer) -> str:
    ways = [f"UDP: {answer.udp}"] if answer.udp else []
    ways += [f"TCP: {answer.tcp}"] if answer.tcp else []
    return ", and by ".join(ways)
