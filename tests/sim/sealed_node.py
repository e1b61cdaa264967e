"""A node whose datagrams are sealed, behind the face of a plain one: what the runtime does at the socket."""

from __future__ import annotations

import copy
import random
from dataclasses import replace
from typing import Any, Final

from mesh.core.address import Address
from mesh.core.effects import Effect, SendDatagram, WriteObituary
from mesh.core.lines import LineEvent
from mesh.core.process import ProcessEvent
from mesh.core.stored import Kept
from mesh.errors import TransportError
from mesh.node.commands import Command, TakeAddress
from mesh.node.config import NodeConfig
from mesh.node.node import Node
from mesh.runtime.keyed import is_lone_ping
from mesh.seal.datagrams import DatagramSeal
from mesh.seal.key import Key
from mesh.seal.ring import ring_of

KEY: Final = Key(b"simulated".ljust(32, b"."))


class SealedNode(Node):
    """Seals every `SendDatagram` on its way out, opens every datagram on its way in."""

    session = ""
    """Sets one process of a node apart from another with the same seed: its seal draws other numbers."""

    def __init__(self, config: NodeConfig, seed: int, kept: Kept) -> None:
        super().__init__(config, seed, kept)
        self._asked_at = 0.0
        self._asked: list[Effect] = []
        self.seal = DatagramSeal(
            ring=ring_of([KEY]),
            node_id=config.node_id,
            mesh_id=lambda: self.identity.mesh_id,
            entropy=random.Random(f"{seed}/{config.node_id}/{config.boot}{self.session}").randbytes,
            answer=self._answer_ping,
        )

    def start(self, now: float) -> list[Effect]:
        return self._sealed(now, super().start(now))

    def handle_datagram(self, now: float, source: Address, data: bytes) -> list[Effect]:
        before = self._unread()
        self._asked_at, self._asked = now, []
        packets, replies = self.seal.open(now, source, data)
        self.counters["dropped_garbage"] += self._unread() - before
        effects: list[Effect] = [SendDatagram(to, reply) for to, reply in replies]
        effects += self._sealed(now, self._asked)
        for packet in packets:
            effects += self._sealed(now, super().handle_datagram(now, source, packet))
        return effects

    def handle_request(
        self, now: float, source: Address, data: bytes
    ) -> tuple[bytes, list[Effect]]:
        reply, effects = super().handle_request(now, source, data)
        return reply, self._sealed(now, effects)

    def handle_exchange(
        self, now: float, exchange_id: int, reply: bytes | TransportError
    ) -> list[Effect]:
        return self._sealed(now, super().handle_exchange(now, exchange_id, reply))

    def handle_line(self, now: float, event: LineEvent) -> list[Effect]:
        return self._sealed(now, super().handle_line(now, event))

    def handle_resolved(
        self, now: float, seed: str, addresses: tuple[Address, ...]
    ) -> list[Effect]:
        return self._sealed(now, super().handle_resolved(now, seed, addresses))

    def handle_process(self, now: float, event: ProcessEvent) -> list[Effect]:
        return self._sealed(now, super().handle_process(now, event))

    def handle_committed(self, now: float, number: int) -> list[Effect]:
        return self._sealed(now, super().handle_committed(now, number))

    def handle_command(self, now: float, command: Command) -> list[Effect]:
        if isinstance(command, TakeAddress):
            self.seal.begin_anew()
        return self._sealed(now, super().handle_command(now, command))

    def handle_timeout(self, now: float) -> list[Effect]:
        return self._sealed(now, super().handle_timeout(now))

    def _answer_ping(self, source: Address, packet: bytes) -> bytes:
        """Answer a ping that may be recorded, as the runtime does."""
        if not is_lone_ping(packet):
            return b""
        reply, self._asked = super().handle_request(self._asked_at, source, packet)
        return reply

    def _unread(self) -> int:
        """Return how many datagrams were dropped before they were read."""
        names = ("dropped_unsealed", "dropped_unopened", "dropped_replayed", "dropped_reflected")
        return sum(self.seal.counters[name] for name in names)

    def __deepcopy__(self, memo: dict[int, Any]) -> SealedNode:
        """Copy everything but the ciphers, which have no state."""
        seal = self.seal
        memo |= {id(cipher): cipher for cipher in (seal._sealer, *seal._openers.values())}
        double = memo[id(self)] = object.__new__(type(self))
        double.__dict__ |= {name: copy.deepcopy(part, memo) for name, part in vars(self).items()}
        return double

    def _sealed(self, now: float, effects: list[Effect]) -> list[Effect]:
        return [self._seal(now, effect) for effect in effects]

    def _seal(self, now: float, effect: Effect) -> Effect:
        if isinstance(effect, SendDatagram):
            return SendDatagram(effect.to, self.seal.seal(now, effect.to, effect.data))
        if isinstance(effect, WriteObituary):
            letters = effect.letters
            sealed = [self.seal.seal_ahead(letter.reader, letter.data) for letter in letters]
            return WriteObituary(
                tuple(replace(one, data=data) for one, data in zip(letters, sealed, strict=True))
            )
        return effect
