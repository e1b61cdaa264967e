"""Invariant 10: whatever bytes arrive, a node neither raises nor changes state, and counts what it dropped.

Bytes that a node counts as dropped must leave its view as it was and cause no effect. Bytes that
happen to decode are somebody's valid message; what they do is judged by the other checkers. So each
injection goes to a deep copy of the node first: only what the copy drops is given to the node itself,
and the copy is thrown away when it took the bytes for a message.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mesh.core.address import Address
from mesh.node.view import View
from mesh.sim.checkers import Violation
from mesh.sim.host import Host, SimNode
from mesh.sim.trace import Kind
from mesh.sim.world import World

_STRANGER: Final = Address("192.0.2.66", 6666)
_CAPTURED_KINDS: Final = frozenset({int(Kind.SEND), int(Kind.ASK)})
_BYTES_MAX: Final = 1400

# What a node counts when it drops a packet as a whole; other counts are of single messages.
_WHOLE_PACKET_DROPS: Final = (
    "dropped_garbage",
    "dropped_version",
    "dropped_foreign_mesh",
    "dropped_own",
)


def captured(world: World) -> list[bytes]:
    """Return packets that were really sent of late, datagrams and requests."""
    return [record.data for record in world.trace.recent(_CAPTURED_KINDS)]


@dataclass(frozen=True, slots=True)
class Piece:
    """Some garbage. What can in no way be taken for a message must be counted as dropped."""

    data: bytes
    is_noise: bool = False
    is_foreign: bool = False

    def must_be_dropped(self, *, as_request: bool) -> bool:
        """Say whether there is no way to take it for a message.

        Whether a request of another mesh may be answered depends on what it asks: a node that seeks
        says to a ping that it is there.
        """
        is_stray = self.is_foreign or len(self.data) > _BYTES_MAX
        return self.is_noise or (is_stray and not as_request)


def mangle(rng: random.Random, real: Sequence[bytes], foreign: Sequence[bytes]) -> Iterator[Piece]:
    """Yield garbage for ever: noise, real packets changed, cut or swollen, and another mesh's packets."""
    while True:
        packet = rng.choice(real) if real else rng.randbytes(60)
        kind = rng.randrange(7)
        if kind == 0:
            yield Piece(
                rng.randbytes(rng.choice((0, 1, 17, 18, 19, 100, _BYTES_MAX))), is_noise=True
            )
        elif kind == 1:
            yield Piece(packet[:18] + rng.randbytes(rng.randint(0, 200)))
        elif kind == 2:
            changed = bytearray(packet)
            for _ in range(rng.randint(1, 4)):
                changed[rng.randrange(len(changed))] = rng.randrange(256)
            yield Piece(bytes(changed))
        elif kind == 3:
            yield Piece(packet[: rng.randrange(len(packet))])
        elif kind == 4:
            yield Piece(packet + rng.randbytes(rng.choice((1, 30, _BYTES_MAX, 70_000))))
        elif kind == 5:
            yield Piece(packet * (1 + _BYTES_MAX // len(packet)))
        elif foreign:
            yield Piece(rng.choice(foreign), is_foreign=True)


class Garbage:
    """Injects garbage and judges what it did."""

    def __init__(self, world: World, rng: random.Random, foreign: Sequence[bytes] = ()) -> None:
        self.violations: list[Violation] = []
        self.dropped = 0
        self.decoded = 0
        self._world = world
        self._rng = rng
        self._foreign = foreign

    def inject(self, host: Host, count: int) -> None:
        """Give `count` pieces of garbage to a running node, half of them as requests."""
        source = mangle(self._rng, captured(self._world), self._foreign)
        double: SimNode | None = None
        for _ in range(count):
            if host.node is None or host.is_paused:
                return
            double = double or copy.deepcopy(host.node)
            as_request = self._rng.random() < 0.5
            if not self.offer(host, double, next(source), as_request=as_request):
                double = None
        self._answer(host, next(source).data)

    def offer(self, host: Host, double: SimNode, piece: Piece, *, as_request: bool) -> bool:
        """Give garbage to a running node's double, and if it is dropped to the node; say whether it was."""
        node, data = host.node, piece.data
        assert node is not None
        before = _fingerprint(node, self._now(host))
        is_dropped = self._judge(host, double, data, as_request)
        if _fingerprint(node, self._now(host)) != before:
            self._report(host, "a copy of the node shares state with it", data)
        if not is_dropped:
            self.decoded += 1
            if piece.must_be_dropped(as_request=as_request):
                self._report(host, "garbage was not counted as dropped", data)
            return False
        self.dropped += 1
        self._world.inject(host, _STRANGER, data, as_request=as_request)
        if host.node is not node or _fingerprint(node, self._now(host)) != before:
            self._report(host, "dropped bytes changed what the node shows", data)
        return True

    def _answer(self, host: Host, data: bytes) -> None:
        """Answer an open exchange of a double with garbage: it must take that for a failure."""
        if host.node is None or host.is_paused or not host.exchanges:
            return
        double = copy.deepcopy(host.node)
        double.handle_exchange(self._now(host), min(host.exchanges), data)
        double.check_invariants()

    def _judge(self, host: Host, node: SimNode, data: bytes, as_request: bool) -> bool:
        """Say whether the node dropped the bytes, after checking that it did so rightly."""
        now = self._now(host)
        before = _fingerprint(node, now)
        drops = _drops(node, now)
        if as_request:
            _, effects = node.handle_request(now, _STRANGER, data)
        else:
            effects = node.handle_datagram(now, _STRANGER, data)
        node.check_invariants()
        if _drops(node, now) == drops:
            return False
        if _fingerprint(node, now) != before:
            self._report(host, "dropped bytes changed what the node shows", data)
        sends = [effect for effect in effects if type(effect).__name__ != "Emit"]
        if sends:
            self._report(host, f"dropped bytes caused {sends[0]}"[:200], data)
        return True

    def _now(self, host: Host) -> float:
        return host.clock.read(self._world.loop.now_s)

    def _report(self, host: Host, text: str, data: bytes) -> None:
        shown = f"{text} ({len(data)} bytes: {data[:40].hex()})"
        at_s = self._world.loop.now_s
        self.violations.append(Violation("10", at_s, host.spec.name, "", shown))


def _drops(node: SimNode, now: float) -> int:
    counters = node.view(now).node["counters"]
    return sum(counters.get(name, 0) for name in _WHOLE_PACKET_DROPS)


def _fingerprint(node: SimNode, now: float) -> tuple[Any, ...]:
    """Return all that is visible of a node but its counters."""
    view: View = node.view(now)
    own = {key: value for key, value in view.node.items() if key != "counters"}
    return (own, view.members, view.tasks, view.task_counts, view.running, node.next_timeout())
