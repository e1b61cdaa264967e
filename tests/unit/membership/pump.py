"""A few `Swim` machines and a network between them: virtual time, encoded packets, chosen faults.

Small on purpose: it stands in for the node (decoding, mesh ids) and for a driver (delivery, timers),
so that membership is tested alone. `mesh.sim` simulates whole nodes.
"""

# ruff: noqa: ANN401 - hosts take what cards and machines take

from __future__ import annotations

import errno
import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from mesh.core.address import Address, split_host_port
from mesh.core.effects import CloseLifeline, Emit, Persist, Remember, Resolve, SendDatagram, Stop
from mesh.core.events import Event, EventKind
from mesh.core.ids import NO_MESH, MeshId, NodeId
from mesh.core.requests import Ask, Dial, Outgoing
from mesh.core.rng import stream
from mesh.errors import DecodeError, TransportError
from mesh.membership.identity import Identity
from mesh.membership.member import Member
from mesh.membership.profile import SwimConfig, local
from mesh.membership.swim import Swim
from mesh.wire.packet import (
    FRAME_BYTES_MAX,
    PACKET_BYTES_MAX,
    Packet,
    decode_packet,
    encode_message,
    encode_packet,
)
from mesh.wire.records import Card, Metadata, State, encode_card
from mesh.wire.swim_messages import Join, Ping, Refused


def node_id(number: int) -> NodeId:
    """The id of host `number` (1 to 300): ordered like the numbers, spread over the buckets."""
    return NodeId(number * 0x00D3_7B97_F4A7_C15F)


def address(number: int) -> Address:
    return Address(f"10.0.{number // 250}.{number % 250 + 1}", 7946)


def card(number: int, *, boot: int = 1, incarnation: int = 0, **changed: Any) -> Card:
    parts: dict[str, Any] = {
        "node_id": node_id(number),
        "boot": boot,
        "incarnation": incarnation,
        "name": f"host-{number}",
        "address": address(number),
        "meta": Metadata(),
    }
    return Card(**{**parts, **changed})


def card_bytes(number: int, *, boot: int = 1, incarnation: int = 0, **changed: Any) -> bytes:
    return encode_card(card(number, boot=boot, incarnation=incarnation, **changed))


@dataclass
class Host:
    """One machine, and everything it did."""

    swim: Swim
    address: Address
    events: list[Event] = field(default_factory=list)
    persisted: list[dict[str, int]] = field(default_factory=list)
    snapshots: list[Remember] = field(default_factory=list)
    stop: Stop | None = None
    is_up: bool = True
    is_paused: bool = False
    sent: list[SendDatagram] = field(default_factory=list)
    asked: list[Ask] = field(default_factory=list)
    inbox: list[tuple[Address, bytes]] = field(default_factory=list)  # what came while paused
    waiting: dict[int, tuple[Address, bytes]] = field(default_factory=dict)
    due: float | None = None

    @property
    def node_id(self) -> NodeId:
        return self.swim.identity.node_id

    def state_of(self, other: Host) -> State | None:
        member = self.swim.table.get(other.node_id)
        return None if member is None else member.state

    def knows(self, other: Host) -> Member:
        """What this host knows of another, which it has met."""
        member = self.swim.table.get(other.node_id)
        assert member is not None
        return member

    def kinds(self, about: Host | None = None) -> list[EventKind]:
        return [e.kind for e in self.events if about is None or e.member_id == about.node_id]


class Pump:
    """The hosts and the network. `loss_ratio` is of datagrams; `cut` says which links are down."""

    def __init__(self, seed: int = 0, config: SwimConfig | None = None) -> None:
        self.config = config or local()
        self.now = 100.0
        self.rng = random.Random(seed)
        self.seed = seed
        self.delay_s = 0.002
        self.loss_ratio = 0.0
        self.cut: Callable[[Address, Address], bool] = lambda _a, _b: False
        self.dropped_kind: type | None = None
        self.hosts: list[Host] = []
        self.names: dict[str, tuple[Address, ...]] = {}
        self.garbage: dict[Address, bytes] = {}  # what an address answers that is no mesh node
        self.bytes_on_streams = 0
        self.flight: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def add(self, number: int, *seeds: int | str, found: bool = False, **settings: Any) -> Host:
        """Start a host. Seeds are numbers of hosts, or text; without seeds it founds a mesh."""
        written = tuple(s if isinstance(s, str) else str(address(s)) for s in seeds)
        mesh_id = settings.pop("mesh_id", NO_MESH)
        parts = {
            key: settings.pop(key)
            for key in ("boot", "name", "address", "meta", "node_id")
            if key in settings
        }
        identity = Identity(card(number, **parts), mesh_id)
        swim = Swim(
            config=settings.pop("config", self.config),
            identity=identity,
            rng=stream(self.seed, f"host {number} {identity.card.boot}"),
            seeds=written,
            **settings,
        )
        host = Host(swim, identity.address)
        self.hosts.append(host)
        self._carry_out(host, swim.start(self.now, is_founder=found))
        return host

    def mesh(self, count: int, settle_s: float = 5.0) -> list[Host]:
        """Start a mesh of `count` hosts: the first founds, the others join through it."""
        hosts = [self.add(1)]
        hosts += [self.add(number, 1) for number in range(2, count + 1)]
        self.run(settle_s)
        return hosts

    def restart(self, host: Host, *, boot: int = 0, seeds: tuple[int, ...] = ()) -> Host:
        """End a host's process, if it still runs, and start the next one on the same disk."""
        self.kill(host)
        old = host.swim.identity
        number = next(n for n in range(1, 301) if node_id(n) == old.node_id)
        return self.add(
            number, *seeds, boot=boot or old.card.boot + 1, mesh_id=old.mesh_id, name=old.card.name
        )

    def kill(self, host: Host) -> None:
        host.is_up = False
        host.due = None

    def pause(self, host: Host) -> None:
        host.is_paused = True

    def resume(self, host: Host) -> None:
        host.is_paused = False
        inbox, host.inbox = host.inbox, []
        for source, data in inbox:
            self._deliver(host, source, data)

    def leave(self, host: Host) -> None:
        self._carry_out(host, host.swim.leave(self.now, "asked to"))

    def partition(self, *side: Host) -> None:
        """Cut these hosts off from all others, both ways."""
        inside = {host.address for host in side}
        self.cut = lambda a, b: (a in inside) != (b in inside)

    def deafen(self, host: Host) -> None:
        """Let nothing reach this host; what it says goes out."""
        self.cut = lambda _a, b: b == host.address

    def drop_kind(self, kind: type) -> None:
        """Lose every datagram that begins with such a message."""
        self.dropped_kind = kind

    def heal(self) -> None:
        self.cut = lambda _a, _b: False

    @property
    def running(self) -> list[Host]:
        return [host for host in self.hosts if host.is_up and host.stop is None]

    # Time.

    def run(self, seconds: float) -> None:
        """Let `seconds` pass."""
        self.run_until(lambda: False, seconds)

    def run_until(self, is_done: Callable[[], bool], seconds: float) -> bool:
        """Let time pass until `is_done`, at most `seconds`; say whether it was."""
        end = self.now + seconds
        while not is_done():
            if not self._step(end):
                self.now = end
                return is_done()
        return True

    def at_host(self, host: Host, source: Host, *messages: object) -> None:
        """Hand a host a packet from `source`, as it came from the network."""
        identity = source.swim.identity
        data = encode_packet(
            identity.mesh_id, identity.node_id, [encode_message(m) for m in messages]
        )
        self._deliver(host, source.address, data)

    def _step(self, end: float) -> bool:
        timer = min(
            (h for h in self.hosts if h.is_up and not h.is_paused and h.due is not None),
            key=lambda h: h.due or 0.0,
            default=None,
        )
        due = timer.due if timer is not None and timer.due is not None else float("inf")
        arrival = self.flight[0][0] if self.flight else float("inf")
        if min(due, arrival) > end:
            return False
        self.now = max(self.now, min(due, arrival))
        if arrival <= due:
            heapq.heappop(self.flight)[2]()
        elif timer is not None:
            self._carry_out(timer, timer.swim.handle_timeout(self.now))
        return True

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        heapq.heappush(self.flight, (self.now + seconds, next(self._order), action))

    # The network.

    def _find(self, at: Address) -> Host | None:
        return next((h for h in reversed(self.hosts) if h.is_up and h.address == at), None)

    def _carry_out(self, host: Host, outputs: list[Outgoing]) -> None:
        host.swim.take_changes()
        host.swim.check_invariants()
        for output in outputs:
            if isinstance(output, SendDatagram):
                assert len(output.data) <= PACKET_BYTES_MAX
                host.sent.append(output)
                if self.rng.random() >= self.loss_ratio:
                    self._send(host.address, output)
            elif isinstance(output, Ask):
                host.asked.append(output)
                self._exchange(host, output)
            elif isinstance(output, Dial | CloseLifeline):
                pass  # no kernel here closes a stream when its process ends: lifelines stay unanswered
            elif isinstance(output, Resolve):
                self._look_up(host, output.seed)
            elif isinstance(output, Persist):
                host.persisted.append(dict(output.values))
            elif isinstance(output, Remember):
                host.snapshots.append(output)
            elif isinstance(output, Emit):
                host.events.append(output.event)
            elif isinstance(output, Stop):
                host.stop = output
                self.kill(host)
                return
            else:
                pytest.fail(f"membership asks for {output}")
        host.due = host.swim.next_timeout() if host.is_up else None

    def _look_up(self, host: Host, seed: str) -> None:
        found = self._resolve(seed)
        self.later(self.delay_s, lambda: self._resolved(host, seed, found))

    def _resolve(self, seed: str) -> tuple[Address, ...]:
        return self.names[seed] if seed in self.names else (Address(*split_host_port(seed)),)

    def _resolved(self, host: Host, seed: str, found: tuple[Address, ...]) -> None:
        if host.is_up:
            self._carry_out(host, host.swim.handle_resolved(self.now, seed, found))

    def _send(self, source: Address, effect: SendDatagram) -> None:
        def arrive() -> None:
            target = self._find(effect.to)
            if target is None or self.cut(source, effect.to):
                return
            if self.dropped_kind is type(decode_packet(effect.data).messages[0]):
                return
            if target.is_paused:
                target.inbox.append((source, effect.data))
            else:
                self._deliver(target, source, effect.data)

        self.later(self.delay_s * (0.5 + self.rng.random()), arrive)

    def _deliver(self, host: Host, source: Address, data: bytes) -> None:
        packet = decode_packet(data)
        identity = host.swim.identity
        if packet.mesh_id != identity.mesh_id or packet.sender == identity.node_id:
            return
        self._carry_out(host, host.swim.handle_packet(self.now, source, packet))

    def _exchange(self, host: Host, ask: Ask) -> None:
        identity = host.swim.identity
        data = encode_packet(identity.mesh_id, identity.node_id, [encode_message(ask.message)])

        def finish(reply: Packet | Exception) -> None:
            if host.is_up:
                self._carry_out(host, host.swim.handle_reply(self.now, ask.tag, reply))

        def arrive() -> None:
            target = self._find(ask.to)
            is_cut = self.cut(host.address, ask.to) or self.cut(ask.to, host.address)
            if is_cut or (target is not None and target.is_paused):
                self.later(
                    ask.timeout_s, lambda: finish(TransportError("timed out", errno.ETIMEDOUT))
                )
            elif ask.to in self.garbage:
                reply = self.garbage[ask.to]
                self.later(self.delay_s, lambda: finish(_decoded(reply)))
            elif target is None:
                self.later(
                    self.delay_s,
                    lambda: finish(TransportError("connection refused", errno.ECONNREFUSED)),
                )
            else:
                answer = self._answer(target, data)
                self.bytes_on_streams += len(data) + len(answer)
                self.later(self.delay_s, lambda: finish(_decoded(answer)))

        self.later(self.delay_s, arrive)

    def _answer(self, host: Host, data: bytes) -> bytes:
        packet = decode_packet(data, FRAME_BYTES_MAX)
        message = packet.messages[0]
        identity = host.swim.identity
        reply: object
        ids = {packet.mesh_id, identity.mesh_id}
        is_open = isinstance(message, Join | Ping) and NO_MESH in ids
        if len(ids) == 1 or is_open:
            reply, outputs = host.swim.handle_request(
                self.now, packet.sender, message, packet.mesh_id
            )
            self._carry_out(host, outputs)
        else:
            reply = Refused("foreign_mesh", "another mesh")
        if reply is None:
            return b""
        return encode_packet(identity.mesh_id, identity.node_id, [encode_message(reply)])


def _decoded(data: bytes) -> Packet | Exception:
    if not data:
        return TransportError("connection closed", errno.ECONNRESET)
    try:
        return decode_packet(data, FRAME_BYTES_MAX)
    except DecodeError as error:
        return error


def packet(source: Host, *messages: object, mesh_id: MeshId | None = None) -> Packet:
    identity = source.swim.identity
    return Packet(mesh_id or identity.mesh_id, identity.node_id, messages)


def view_of(host: Host) -> dict[NodeId, tuple[int, int, State]]:
    """What a host thinks of the living."""
    return {m.node_id: (m.boot, m.incarnation, m.state) for m in host.swim.table if m.is_living}


def are_equal(hosts: list[Host]) -> bool:
    """Say whether all hosts know the same living members, and nobody suspects anybody."""
    views = [view_of(host) for host in hosts]
    are_alive = all(state is State.ALIVE for view in views for _, _, state in view.values())
    return are_alive and all(view == views[0] for view in views)
