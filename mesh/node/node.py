"""The node: bytes and commands in, effects out.

Both drivers, production and simulator, hand it the same inputs and carry out the same effects. It
decodes packets, gives each message to the machine that owns it, and turns what machines ask for
(`Ask`, `Tell`) into exchanges and datagrams. It decides nothing itself.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Final

from mesh.core.address import Address
from mesh.core.effects import Answer, Effect, OpenLifeline, SendDatagram, StartExchange, Stop
from mesh.core.ids import NO_MESH, NodeId
from mesh.core.lines import LineEvent
from mesh.core.process import ProcessEvent
from mesh.core.requests import Ask, Dial, Outgoing, Tell
from mesh.core.rng import stream
from mesh.errors import (
    DecodeError,
    ForeignMeshError,
    LocalProtocolError,
    TransportError,
    VersionError,
)
from mesh.membership.identity import Identity
from mesh.membership.swim import Swim
from mesh.node.budget import RUMOUR_BYTES_MAX, Budget
from mesh.node.commands import Command, ForgetMember, Leave, SetLoad, TakeAddress, Why
from mesh.node.config import NodeConfig
from mesh.node.departure import Departure
from mesh.node.exchanges import Exchanges, is_of_work
from mesh.node.roll import Roll
from mesh.node.story import tell_story
from mesh.node.view import View, build_view
from mesh.placement.live_view import LiveView
from mesh.wire.packet import (
    FRAME_BYTES_MAX,
    Packet,
    decode_packet,
    encode_datagram,
    encode_message,
    encode_packet,
)
from mesh.wire.records import Card, Vitals
from mesh.wire.swim_messages import Join, Lifeline, Ping, Refused
from mesh.work.commands import Submit, WorkCommand
from mesh.work.config import WorkConfig
from mesh.work.work import Work

DATAGRAMS: Final = Swim.DATAGRAMS | Work.DATAGRAMS
OPEN_TO_STRANGERS: Final = (Join, Ping)
"""Requests that a node answers though the asker belongs to no mesh yet."""


class Node:
    """One member of a mesh. `counters` says what was dropped, and why; `identity` who it is just now."""

    def __init__(self, config: NodeConfig, seed: int) -> None:
        self.config = config
        self.counters: Counter[str] = Counter()
        self._started_at = 0.0
        self._is_stopped = False
        card = Card(
            node_id=config.node_id,
            boot=config.boot,
            incarnation=0,
            name=config.name,
            address=config.address,
            meta=config.meta,
        )
        self.identity = Identity(card, config.mesh_id)
        self._swim = Swim(
            config=config.swim,
            identity=self.identity,
            rng=stream(seed, "membership"),
            seeds=config.seeds,
            expect=config.expect,
            is_name_given=config.is_name_given,
            remembered=config.remembered,
        )
        self._live = LiveView()
        self._roll = Roll(self._swim.table, self._live)
        work_config = WorkConfig()
        self._work = Work(
            card=lambda: self.identity.card,
            view=self._live,
            rng=stream(seed, "work"),
            unix_offset_s=config.unix_offset_s,
            config=work_config,
        )
        self.take_watch = self._work.take_watch
        self._departure = Departure(work_config.stop_grace_s)
        self._boot = config.boot
        self._exchanges = Exchanges()
        self._budget = Budget()

    def start(self, now: float) -> list[Effect]:
        """Begin. Call once, before any other input."""
        self._started_at = now
        outputs = self._swim.start(now, is_founder=self.config.found)
        return self._settle(now, outputs)

    def handle_datagram(self, now: float, source: Address, data: bytes) -> list[Effect]:
        """Take a datagram. Bytes that are no packet of this mesh are counted and change nothing."""
        try:
            packet = decode_packet(data)
        except DecodeError as error:
            self._count(error)
            return []
        if packet.mesh_id != self.identity.mesh_id or packet.mesh_id == NO_MESH:
            self.counters["dropped_foreign_mesh"] += 1
            return []
        if packet.sender == self.identity.node_id:
            self.counters["dropped_own"] += 1
            return []
        if self._is_stopped:
            return []
        placed = tuple(m for m in packet.messages if type(m) in DATAGRAMS)
        self.counters["dropped_misplaced"] += len(packet.messages) - len(placed)
        if not placed:
            return []
        packet = replace(packet, messages=placed)
        outputs = self._swim.handle_packet(now, source, packet)
        for message in placed:
            if type(message) in Work.DATAGRAMS and self._is_colleague(packet.sender):
                outputs += self._work.handle_message(now, packet.sender, message)[1]
        return self._settle(now, outputs)

    def handle_request(
        self, now: float, source: Address, data: bytes
    ) -> tuple[bytes, list[Effect]]:
        """Answer a request that came on a stream.

        Returns:
            The reply's packet, and effects. An empty reply means: close that connection.
        """
        try:
            packet = self._decode_one(data)
            message = packet.messages[0]
            refusal = self._refusal(packet, message)
            if refusal is not None:
                return self._packet(refusal), []
            if self._is_stopped:
                return b"", []
            reply, outputs = self._answer(now, source, packet)
        except VersionError as error:
            self._count(error)
            return self._packet(Refused("version", str(error))), []
        except DecodeError as error:
            self._count(error)
            return b"", []
        return (self._packet(reply) if reply is not None else b""), self._settle(now, outputs)

    def handle_exchange(
        self, now: float, exchange_id: int, reply: bytes | TransportError
    ) -> list[Effect]:
        """Take the outcome of a `StartExchange`: the reply's bytes, or why there is none."""
        ask = self._exchanges.close(exchange_id)
        if ask is None or self._is_stopped:
            return []
        outcome: Packet | Exception
        try:
            outcome = self._decode_one(reply) if isinstance(reply, bytes) else reply
        except DecodeError as error:
            self._count(error)
            outcome = error
        return self._settle(now, self._hear(now, ask, outcome))

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
        """Take that a `Commit` is stored. This node keeps no registers yet, and asks for none."""
        raise LocalProtocolError(
            f"no commit was asked for, found the end of commit {number} at {now:g}"
        )

    def handle_command(self, now: float, command: Command) -> list[Effect]:
        """Carry out what a client or the driver asks."""
        if self._is_stopped:
            return []
        if isinstance(command, SetLoad):
            self.identity.vitals = Vitals(self.identity.vitals.free_slots, command.load_pct)
            return []
        if isinstance(command, Leave):
            return self._settle(now, self._departure.begin(now, command.reason, self._work))
        if isinstance(command, ForgetMember):
            outputs = self._swim.forgetting.answer(now, command.command_id, command.whom)
            return self._settle(now, [*outputs, *self._swim.handle_timeout(now)])
        if isinstance(command, Why):
            offset_s = self.config.unix_offset_s
            return [tell_story(now, command.command_id, self._swim, offset_s, command.whom)]
        if isinstance(command, TakeAddress):
            self._swim.rumours.refutation.move(now, command.address)
            return self._settle(now, self._swim.handle_timeout(now))
        if isinstance(command, Submit) and self._swim.phase == "seeking":
            text = "this node belongs to no mesh yet: submit again once it does (`mesh status` says so)"
            return [Answer(command.command_id, None, text)]
        work_command: WorkCommand = command
        return self._settle(now, self._work.handle_command(now, work_command))

    def handle_timeout(self, now: float) -> list[Effect]:
        """Do what is due. Early, repeated and late calls are harmless."""
        if self._is_stopped:
            return []
        outputs = self._swim.handle_timeout(now)
        outputs += self._work.handle_timeout(now)
        return self._settle(now, outputs)

    def next_timeout(self) -> float | None:
        """Return when `handle_timeout` is wanted next; None: not before another input."""
        if self._is_stopped:
            return None
        deadlines = (
            self._swim.next_timeout(),
            self._work.next_timeout(),
            self._departure.next_deadline(),
            self._budget.next_deadline(),
        )
        return min((at for at in deadlines if at is not None), default=None)

    def view(self, now: float) -> View:
        """Return what people and programs see of this node and its mesh."""
        counters = {
            **self.counters,
            **self._swim.counters,
            "dropped_tells": self._budget.dropped,
            "held_tells": self._budget.held,
            "refused_exchanges": self._exchanges.refused,
        }
        return build_view(
            now,
            config=self.config,
            swim=self._swim,
            work=self._work,
            counters=counters,
            started_at=self._started_at,
            is_departing=self._departure.is_under_way,
        )

    def check_invariants(self) -> None:
        """Raise AssertionError if the machines contradict themselves or each other."""
        self._swim.check_invariants()
        self._swim.rumours.history.check_invariants()
        self._work.check_invariants()
        self._roll.check_invariants()
        self._exchanges.check_invariants()
        self._budget.check_invariants()

    # Inside.

    def _answer(self, now: float, source: Address, packet: Packet) -> tuple[object, list[Outgoing]]:
        message = packet.messages[0]
        if isinstance(message, Lifeline):
            reply = self._swim.lines.evidence.on_lifeline(packet.sender, source, message)
            return reply, self._swim.handle_timeout(now)
        if type(message) in Swim.REQUESTS:
            return self._swim.handle_request(now, packet.sender, message, packet.mesh_id)
        if type(message) not in Work.REQUESTS:
            self.counters["dropped_misplaced"] += 1
            return None, []
        if not self._is_colleague(packet.sender):
            return None, []
        return self._work.handle_message(now, packet.sender, message)

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

    def _refusal(self, packet: Packet, message: object) -> Refused | None:
        """Return why a request of another mesh, or of none, is not answered."""
        mine = self.identity.mesh_id
        if packet.mesh_id == mine != NO_MESH:
            return None
        is_open = isinstance(message, OPEN_TO_STRANGERS)
        if is_open and NO_MESH in {packet.mesh_id, mine}:
            return None
        self.counters["dropped_foreign_mesh"] += 1
        return Refused("foreign_mesh", str(ForeignMeshError(packet.mesh_id, mine)))

    def _of_this_mesh(self, packet: Packet) -> Packet | ForeignMeshError:
        if packet.mesh_id == self.identity.mesh_id:
            return packet
        self.counters["dropped_foreign_mesh"] += 1
        return ForeignMeshError(packet.mesh_id, self.identity.mesh_id)

    def _decode_one(self, data: bytes) -> Packet:
        packet = decode_packet(data, FRAME_BYTES_MAX)
        if len(packet.messages) != 1:
            raise DecodeError(f"one message is expected on a stream, found {len(packet.messages)}")
        return packet

    def _count(self, error: DecodeError) -> None:
        kind = "version" if isinstance(error, VersionError) else "garbage"
        self.counters[f"dropped_{kind}"] += 1

    def _packet(self, message: object) -> bytes:
        mine = self.identity
        return encode_packet(mine.mesh_id, mine.node_id, (encode_message(message),))

    def _settle(self, now: float, outputs: list[Outgoing]) -> list[Effect]:
        """Let membership's changes reach the work, then turn outputs into effects."""
        outputs += self._end_own_session(now)
        changes, heard = self._swim.take_changes()
        for news in self._roll.apply(changes, self._swim.phase):
            if news.ended_boot is not None:
                outputs += self._work.handle_member_down(
                    now, news.node_id, news.ended_boot, news.reason
                )
            if news.is_up:
                outputs += self._work.handle_member_up(now, news.node_id)
        for node_id in self._roll.refresh_vitals(heard):
            outputs += self._work.handle_member_up(now, node_id)
        if self._roll.refresh_self(self.identity, self._work.free_slots):
            outputs += self._work.handle_member_up(now, self.identity.node_id)
        outputs += self._departure.step(now, self._work, self._swim)
        free_slots = 0 if self._departure.is_under_way else self._work.free_slots
        self.identity.vitals = Vitals(free_slots, self.identity.vitals.load_pct)
        self._roll.refresh_self(self.identity, free_slots)
        return self._effects(now, outputs)

    def _end_own_session(self, now: float) -> list[Outgoing]:
        """Let the work hear that this session got a higher number: under the old one nothing counts any more.

        That happens to a node whose data directory is older than what the mesh remembers of it.
        """
        own = self.identity.card
        if own.boot == self._boot:
            return []
        ended, self._boot = self._boot, own.boot
        return self._work.handle_member_down(now, own.node_id, ended, "restarted")

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
                data = self._packet(output.message)
                effects.append(StartExchange(exchange_id, output.to, data, output.timeout_s))
            elif isinstance(output, Dial):
                data = self._packet(output.message)
                effects.append(OpenLifeline(output.lifeline_id, output.to, data))
            elif isinstance(output, Tell):
                self._budget.add(output.to, encode_message(output.message))
            elif isinstance(output, Stop):
                self._is_stopped = True
                return [*effects, *self._told(now), output]
            else:
                effects.append(output)
        for ask, error in refused:
            effects += self._settle(now, self._hear(now, ask, error))
        effects += self._told(now)
        return effects

    def _told(self, now: float) -> list[SendDatagram]:
        """Return the datagrams that are not membership's, within their share; rumours ride along."""
        mine, riders = self.identity, self._swim.riders
        return [
            SendDatagram(
                to,
                encode_datagram(mine.mesh_id, mine.node_id, parts + riders(RUMOUR_BYTES_MAX)),
            )
            for to, parts in self._budget.take(now)
        ]

    def _hear(self, now: float, ask: Ask, outcome: Packet | Exception) -> list[Outgoing]:
        """Let whoever asked hear the outcome."""
        if isinstance(outcome, Packet) and not ask.may_be_foreign:
            outcome = self._of_this_mesh(outcome)
        if not is_of_work(ask):
            return self._swim.handle_reply(now, ask.tag, outcome)
        message = outcome.messages[0] if isinstance(outcome, Packet) else None
        return self._work.handle_reply(now, ask.tag, message)
