"""Nodes of the simulator with a seal round them, and a recorder of all that they send."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from mesh.core import effects as fx
from mesh.core.address import Address
from mesh.core.stored import Kept
from mesh.errors import TransportError
from mesh.node.commands import Command
from mesh.node.config import NodeConfig, profile
from mesh.node.node import Node
from mesh.runtime.keyed import is_lone_ping
from mesh.seal.datagrams import DatagramSeal
from mesh.seal.key import Key
from mesh.seal.ring import KeyRing, ring_of
from mesh.sim.fleet import Fleet, FleetOptions
from mesh.sim.host import Host
from mesh.sim.network import Conditions, Network
from mesh.sim.world import World

KEY, OTHER = Key(b"k" * 32), Key(b"o" * 32)


class Sent(NamedTuple):
    """A datagram as somebody on the wire sees it."""

    source: Address
    to: Address
    data: bytes


class SealedNode(Node):
    """A node whose datagrams are sealed as the runtime seals them."""

    def __init__(
        self, config: NodeConfig, seed: int, kept: Kept, *, ring: KeyRing, tape: list[Sent]
    ) -> None:
        super().__init__(config, seed, kept)
        self.lets_in = 0
        self._seal_now = 0.0
        self._tape = tape
        self._ping_effects: list[fx.Effect] = []
        self.seal = DatagramSeal(
            ring=ring,
            node_id=config.node_id,
            mesh_id=lambda: self.identity.mesh_id,
            entropy=random.Random(f"{seed}").randbytes,
            answer=self._answer_ping,
        )

    def _answer_ping(self, source: Address, packet: bytes) -> bytes:
        if not is_lone_ping(packet):
            return b""
        reply, effects = super().handle_request(self._seal_now, source, packet)
        self._ping_effects += effects
        return reply

    def _sealed(self, now: float, effects: list[fx.Effect]) -> list[fx.Effect]:
        return [
            self._taped(effect.to, self.seal.seal(now, effect.to, effect.data))
            if isinstance(effect, fx.SendDatagram)
            else effect
            for effect in effects
        ]

    def _taped(self, to: Address, data: bytes) -> fx.SendDatagram:
        self._tape.append(Sent(self.config.address, to, data))
        return fx.SendDatagram(to, data)

    def handle_datagram(self, now: float, source: Address, data: bytes) -> list[fx.Effect]:
        self._seal_now = now
        packets, replies = self.seal.open(now, source, data)
        effects = [self._taped(to, reply) for to, reply in replies]
        self.lets_in += len(packets)
        taken = self._sealed(now, self._ping_effects)
        self._ping_effects = []
        for packet in packets:
            taken += self._sealed(now, super().handle_datagram(now, source, packet))
        return [*effects, *taken]

    def start(self, now: float) -> list[fx.Effect]:
        return self._sealed(now, super().start(now))

    def handle_request(
        self, now: float, source: Address, data: bytes
    ) -> tuple[bytes, list[fx.Effect]]:
        reply, effects = super().handle_request(now, source, data)
        return reply, self._sealed(now, effects)

    def handle_exchange(
        self, now: float, exchange_id: int, reply: bytes | TransportError
    ) -> list[fx.Effect]:
        return self._sealed(now, super().handle_exchange(now, exchange_id, reply))

    def handle_timeout(self, now: float) -> list[fx.Effect]:
        return self._sealed(now, super().handle_timeout(now))

    def handle_resolved(
        self, now: float, seed: str, addresses: tuple[Address, ...]
    ) -> list[fx.Effect]:
        return self._sealed(now, super().handle_resolved(now, seed, addresses))

    def handle_command(self, now: float, command: Command) -> list[fx.Effect]:
        return self._sealed(now, super().handle_command(now, command))


class SealedWorld:
    """A simulated mesh with a key. `tape` is what a recorder has of it."""

    def __init__(self, seed: int, key: Key = KEY) -> None:
        self.tape: list[Sent] = []
        self.rings: dict[str, KeyRing] = {}
        self.key = key
        self.world = World(seed, self._make, Network(seed, Conditions()), check=False)
        self.fleet = Fleet(self.world, profile("lan"), FleetOptions())

    def _make(self, config: NodeConfig, seed: int, kept: Kept) -> SealedNode:
        ring = self.rings.setdefault(config.name, ring_of([self.key]))
        return SealedNode(config, seed, kept, ring=ring, tape=self.tape)

    def start(self, count: int) -> list[Host]:
        """Start members and let them meet."""
        hosts = [self.fleet.add() for _ in range(count)]
        for host in hosts:
            self.fleet.boot(host)
        self.world.run_for(10.0)
        return hosts

    def running(self) -> list[Host]:
        return [host for host in self.world.hosts if host.node is not None]

    def shown(self) -> dict[str, Any]:
        """Return all that is visible of each running node but its counters, and when it wakes next."""
        return {host.spec.name: shown(self.world, host) for host in self.running()}

    def states(self, host: Host) -> dict[str, str]:
        rows = node_of(host).view(now_of(self.world, host)).members
        return {row["name"]: row["state"] for row in map(_row, rows)}


def _row(member: Any) -> dict[str, Any]:  # noqa: ANN401 - a view's rows are JSON
    row: dict[str, Any] = member if isinstance(member, dict) else member.to_json()
    return row


def node_of(host: Host) -> SealedNode:
    assert isinstance(host.node, SealedNode)
    return host.node


def now_of(world: World, host: Host) -> float:
    return host.clock.read(world.loop.now_s)


def shown(world: World, host: Host) -> tuple[Any, ...]:
    view = node_of(host).view(now_of(world, host))
    own = {key: value for key, value in view.node.items() if key != "counters"}
    return (
        own,
        view.members,
        view.tasks,
        view.task_counts,
        view.running,
        node_of(host).next_timeout(),
    )


def mangled(rng: random.Random, tape: list[Sent]) -> Iterator[Sent]:
    """Yield for ever: noise, recordings changed, cut, swollen or sent elsewhere, and recordings as they are."""
    stranger = Address("10.9.9.9", 7946)
    while True:
        real = rng.choice(tape)
        kind = rng.randrange(8)
        if kind == 0:
            size = rng.choice((0, 1, 21, 22, 37, 38, 39, 100, 1_400))
            yield real._replace(data=rng.randbytes(size))
        elif kind == 1:
            yield real._replace(data=b"S" + rng.randbytes(rng.randint(37, 200)))
        elif kind == 2:
            changed = bytearray(real.data)
            for _ in range(rng.randint(1, 4)):
                changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
            yield real._replace(data=bytes(changed))
        elif kind == 3:
            yield real._replace(data=real.data[: rng.randrange(len(real.data))])
        elif kind == 4:
            yield real._replace(data=real.data + rng.randbytes(rng.choice((1, 30, 600))))
        elif kind == 5:
            yield real._replace(source=stranger._replace(port=rng.randint(1, 65_535)))
        elif kind == 6:
            yield real._replace(to=rng.choice(tape).to)
        else:
            yield real
