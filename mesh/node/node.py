"""The node: bytes and commands in, effects out.

Both drivers, production and simulator, hand it the same inputs and carry out the same effects. It
decodes packets, gives each message to the machine that owns it, and turns what machines ask for
(`Ask`, `Tell`) into exchanges and datagrams. It decides nothing itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from mesh.core.address import Address
from mesh.core.effects import Answer, Effect, OpenLifeline, SendDatagram, StartExchange, Stop
from mesh.core.ids import NodeId
from mesh.core.lines import LineEvent
from mesh.core.process import ProcessEvent
from mesh.core.requests import Ask, Dial, Outgoing, Tell
from mesh.errors import TransportError
from mesh.hooks.commands import TakeTurn
from mesh.membership.swim import Swim
from mesh.node.budget import RUMOUR_BYTES_MAX
from mesh.node.commands import (
    Command,
    ForgetMember,
    Leave,
    Look,
    SetFitness,
    SetLoad,
    SetRoom,
    TakeAddress,
    Why,
)
from mesh.node.exchanges import is_of_work
from mesh.node.machines import Machines
from mesh.node.story import tell_story
from mesh.node.work import Work
from mesh.queues.commands import SetQueue
from mesh.tasks.commands import Submit, SubmitMany, TaskCommand
from mesh.wire.packet import (
    Packet,
    encode_message,
)
from mesh.wire.parcel_messages import Taken
from mesh.wire.swim_messages import Lifeline, Refused

_AGAIN: Final = {Submit: "submit", SubmitMany: "submit", SetQueue: "set it", TakeTurn: "ask"}
"""What needs a majority, and what to do again once there may be one: a node that seeks refuses it at once."""


class Node(Machines):
    """One member of a mesh. `counters` says what was dropped, and why; `identity` who it is just now."""

    def start(self, now: float) -> list[Effect]:
        """Begin. Call once, before any other input."""
        self._started_at = now
        self._availability.begin(now)
        outputs = self._work.start(now)
        outputs += self._swim.start(now, is_founder=self.config.found)
        return self._settle(now, outputs)

    def handle_datagram(self, now: float, source: Address, data: bytes) -> list[Effect]:
        """Take a datagram. Bytes that are no packet of this mesh are counted and change nothing."""
        packet = self._mail.open_datagram(data)
        if packet is None or self._is_stopped:
            return []
        outputs = self._swim.handle_packet(now, source, packet)
        outputs += self._take_work(now, packet)
        return self._settle(now, outputs)

    def handle_request(
        self, now: float, source: Address, data: bytes
    ) -> tuple[bytes, list[Effect]]:
        """Answer a request that came on a stream.

        Returns:
            The reply's packet, and effects. An empty reply means: close that connection.
        """
        packet = self._mail.open_request(data)
        if isinstance(packet, Refused):
            return self._mail.close(packet), []
        if packet is None or self._is_stopped:
            return b"", []
        reply, outputs = self._answer(now, source, packet)
        return (self._mail.close(reply) if reply is not None else b""), self._settle(now, outputs)

    def handle_exchange(
        self, now: float, exchange_id: int, reply: bytes | TransportError
    ) -> list[Effect]:
        """Take the outcome of a `StartExchange`: the reply's bytes, or why there is none."""
        ask = self._exchanges.close(exchange_id)
        if ask is None or self._is_stopped:
            return []
        return self._settle(now, self._hear(now, ask, self._mail.open_reply(ask, reply)))

    def handle_resolved(
        self, now: float, seed: str, addresses: tuple[Address, ...]
    ) -> list[Effect]:
        """Take the addresses of a seed; none: it was not found."""
        if self._is_stopped:
            return []
        return self._settle(now, self._swim.handle_resolved(now, seed, addresses))

    def handle_line(self, now: float, event: LineEvent) -> list[Effect]:
        """Take what became of a stream that is kept open, or of a datagram that was refused."""
        if self._is_stopped:
            return []
        self._swim.lines.handle(now, event)
        return self._settle(now, self._swim.handle_timeout(now))

    def handle_process(self, now: float, event: ProcessEvent) -> list[Effect]:
        """Take output, or the end, of a run that this node started."""
        if self._is_stopped:
            return []
        return self._settle(now, self._work.handle_process(now, event))

    def handle_committed(self, now: float, number: int) -> list[Effect]:
        """Take that a `Commit`, and all before it, are stored."""
        if self._is_stopped:
            return []
        return self._settle(now, self._work.handle_committed(now, number))

    def handle_command(self, now: float, command: Command) -> list[Effect]:
        """Carry out what a client or the driver asks."""
        if self._is_stopped:
            return []
        if isinstance(command, SetLoad):
            average_pct, busy_pct = command.load_average_pct, command.busy_pct
            busy_pct = average_pct if busy_pct is None else busy_pct
            self.identity.vitals = replace(
                self.identity.vitals, load_average_pct=average_pct, busy_pct=busy_pct
            )
            self._lag_ms = command.lag_ms
            # Whoever wants to hear of it is told at once: to them silence means that nothing has changed.
            if not self._work.is_listened_to:
                return []
            return self._settle(now, self._work.handle_messages(now, self.identity.node_id, ()))
        if isinstance(command, SetRoom):
            self._work.set_room(has_room=command.has_room, lacks=command.lacks)
            return []
        if isinstance(command, Leave):
            outputs = self._departure.begin(now, command.reason, command.within_s, self._work)
            if command.within_s > 0:  # else all hear of it in a moment: by its farewell
                self._availability.leave()
                self._declare(now)
                outputs += self._swim.handle_timeout(now)
            return self._settle(now, outputs)
        if isinstance(command, ForgetMember):
            outputs = self._swim.forgetting.answer(now, command.command_id, command.whom)
            return self._settle(now, [*outputs, *self._swim.handle_timeout(now)])
        if isinstance(command, Why):
            offset_s = self.config.unix_offset_s
            return [tell_story(now, command.command_id, self._swim, offset_s, command.whom)]
        if isinstance(command, SetFitness | Look | TakeAddress):
            self._heed(now, command)
            return self._settle(now, self._swim.handle_timeout(now))
        is_seeking = self._swim.phase == "seeking"
        if is_seeking and isinstance(command, Submit | SubmitMany | SetQueue | TakeTurn):
            again = _AGAIN[type(command)]
            text = f"this node belongs to no mesh yet: {again} again once it does (`mesh status` says so)"
            return [Answer(command.command_id, None, text)]
        task_command: TaskCommand = command
        return self._settle(now, self._work.handle_command(now, task_command))

    def handle_timeout(self, now: float) -> list[Effect]:
        """Do what is due. Early, repeated and late calls are harmless."""
        if self._is_stopped:
            return []
        self._declare(now)
        outputs = self._swim.handle_timeout(now)
        outputs += self._work.handle_timeout(now)
        return self._settle(now, outputs)

    # Inside.

    def _heed(self, now: float, command: SetFitness | Look | TakeAddress) -> None:
        """Carry out what is told of this host, or that somebody looks; membership says the rest."""
        match command:
            case SetFitness():
                self._availability.set_fitness(is_fit=command.is_fit, why=command.why)
                self._declare(now)
            case Look():
                self._swim.glances.look(now)
            case TakeAddress():
                self._swim.rumours.refutation.move(now, command.address)

    def _declare(self, now: float) -> None:
        """Tell everybody whether this node takes work, if that is another word than before."""
        if self._availability.is_due(now):
            self._swim.glances.look(now)
        meta = self.identity.card.meta
        declared = self._availability.step(now, meta, lambda: self.demand(now))
        if declared is not None:
            self._swim.rumours.refutation.declare(now, declared.on(meta), declared.sentence)

    def _answer(self, now: float, source: Address, packet: Packet) -> tuple[object, list[Outgoing]]:
        message = packet.messages[0]
        if isinstance(message, Lifeline):
            reply = self._swim.lines.evidence.on_lifeline(packet.sender, source, message)
            return reply, self._swim.handle_timeout(now)
        if type(message) in Swim.REQUESTS:
            return self._swim.handle_request(now, packet.sender, message, packet.mesh_id)
        if type(message) not in Work.MESSAGES:
            self.counters["dropped_misplaced"] += 1
            return None, []
        outputs = self._take_work(now, packet)
        return Taken(), outputs

    def _take_work(self, now: float, packet: Packet) -> list[Outgoing]:
        """Let the work have its messages of a packet."""
        messages = [one for one in packet.messages if type(one) in Work.MESSAGES]
        if not messages or not self._is_colleague(packet.sender):
            return []
        # The same packet may have said that this node's disk is old: then it is not to be answered by that.
        outputs = self._heed_age(now)
        return outputs + self._work.handle_messages(now, packet.sender, messages)

    def _heed_age(self, now: float) -> list[Outgoing]:
        """Mute the work if others remember later sessions than the data directory: it is a copy of long ago."""
        return self._work.mute(now) if self.identity.card.boot != self.config.boot else []

    def _is_colleague(self, sender: NodeId) -> bool:
        """Say whether work may come from `sender`: another member, as far as this node knows. Else it is counted.

        Suspects and the dead are heard: they may be neither, and their reports count.
        """
        if sender == self.identity.node_id:
            self.counters["dropped_own"] += 1
            return False
        if self._swim.table.get(sender) is None:
            self.counters["dropped_stranger"] += 1
            return False
        return True

    def _settle(self, now: float, outputs: list[Outgoing]) -> list[Effect]:
        """Let membership's changes reach the work, then turn outputs into effects."""
        outputs += self._heed_age(now)
        if self.identity.has_founded and not self._has_founded:
            self._has_founded = True
            outputs += self._work.found(now)
        changes, heard = self._swim.take_changes()
        for news in self._roll.apply(changes):
            if news.over_boot is not None:
                outputs += self._work.end(now, news.node_id, news.over_boot)
            outputs += self._work.handle_member(now, news.node_id)
        for node_id in self._roll.refresh_vitals(heard):
            outputs += self._work.handle_member(now, node_id)
        if self._roll.refresh_self(self.identity, self._work.free_slots):
            outputs += self._work.handle_member(now, self.identity.node_id)
        outputs += self._departure.step(now, self._work, self._swim)
        outputs += self._obituary.step(now)
        outputs += self._standstill.step(now, self._why_standing())
        free_slots = 0 if self._departure.is_under_way else self._work.free_slots
        self.identity.vitals = replace(self.identity.vitals, free_slots=free_slots)
        self._roll.refresh_self(self.identity, free_slots)
        return self._effects(now, outputs)

    def _why_standing(self) -> str:
        return "" if self._departure.is_under_way else self._work.standstill()

    def _effects(self, now: float, outputs: list[Outgoing]) -> list[Effect]:
        effects: list[Effect] = []
        refused: list[tuple[Ask, TransportError]] = []
        for output in outputs:
            if isinstance(output, Ask):
                exchange_id = self._exchanges.open(output)
                if exchange_id is None:
                    error = TransportError(
                        f"{len(self._exchanges)} exchanges are under way already"
                    )
                    refused.append((output, error))
                    continue
                data = self._mail.close(output.message)
                effects.append(StartExchange(exchange_id, output.to, data, output.timeout_s))
            elif isinstance(output, Dial):
                data = self._mail.close(output.message)
                effects.append(OpenLifeline(output.lifeline_id, output.to, data))
            elif isinstance(output, Tell):
                self._budget.add(output.to, _encoded(output.message))
            elif isinstance(output, Stop):
                self._is_stopped = True
                if not self._departure.is_told:  # it stops for another that runs under this id
                    effects += self._obituary.take_back()
                return [*effects, *self._told(now), output]
            else:
                effects.append(output)
        for ask, error in refused:
            effects += self._settle(now, self._hear(now, ask, error))
        effects += self._told(now)
        return effects

    def _told(self, now: float) -> list[SendDatagram]:
        """Return the datagrams that are not membership's, within their share; rumours ride along."""
        return [
            SendDatagram(to, self._mail.close_datagram(parts + self._swim.riders(RUMOUR_BYTES_MAX)))
            for to, parts in self._budget.take(now)
        ]

    def _hear(self, now: float, ask: Ask, outcome: Packet | Exception) -> list[Outgoing]:
        """Let whoever asked hear the outcome."""
        if is_of_work(ask):
            return []  # whoever sent it asks again where an answer is missing
        return self._swim.handle_reply(now, ask.tag, outcome)


def _encoded(message: object) -> bytes:
    return message if isinstance(message, bytes) else encode_message(message)
