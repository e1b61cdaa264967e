"""Invariant 10, and that its checker sees each way of breaking it."""

from __future__ import annotations

from itertools import islice

import pytest

from mesh.core.address import Address
from mesh.core.effects import Effect, SendDatagram
from mesh.core.rng import stream
from mesh.node.commands import SetLoad
from mesh.node.config import profile
from mesh.node.node import Node
from mesh.sim.fleet import Fleet, FleetOptions
from mesh.sim.garbage import Garbage, captured, mangle
from mesh.sim.host import NodeFactory
from mesh.sim.mixed import foreign_packets
from mesh.sim.network import Conditions, Network
from mesh.sim.world import World
from mesh.wire.packet import decode_packet


def mesh_of(make_node: NodeFactory) -> World:
    world = World(9, make_node, Network(9, Conditions()), check=True)
    fleet = Fleet(world, profile("local"), FleetOptions())
    for _ in range(4):
        fleet.boot(fleet.add())
    world.run_for(3.0)
    return world


def throw(make_node: NodeFactory, rounds: int, seed: int = 1) -> Garbage:
    world = mesh_of(make_node)
    garbage = Garbage(world, stream(seed, "garbage"), foreign_packets("local"))
    for n in range(rounds):
        garbage.inject(world.hosts[n % 4], 20)
        world.run_for(0.2)
    return garbage


@pytest.mark.parametrize("seed", range(5))
def test_garbage_neither_disturbs_nor_changes_a_node(seed: int) -> None:
    garbage = throw(Node, 20, seed)
    assert garbage.violations == []
    assert garbage.dropped > 200


def test_captured_packets_are_real_and_foreign_ones_are_of_another_mesh() -> None:
    ours = {decode_packet(data).mesh_id for data in captured(mesh_of(Node))[-50:]}
    theirs = {decode_packet(data).mesh_id for data in foreign_packets("local")}
    assert len(ours) == len(theirs) == 1
    assert ours.isdisjoint(theirs)


def test_garbage_is_drawn_from_its_seed_alone() -> None:
    real, foreign = [b"\x4dabcdefghijklmnopqrstuvwxyz"], [b"foreign"]

    def drawn(seed: int) -> list[bytes]:
        pieces = islice(mangle(stream(seed, "g"), real, foreign), 200)
        return [piece.data for piece in pieces]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
    assert {b"", b"foreign"} <= set(drawn(1))
    assert max(map(len, drawn(1))) > 65_535


class Touched(Node):
    """Lets garbage change what it shows."""

    def handle_datagram(self, now: float, source: Address, data: bytes) -> list[Effect]:
        before = self.counters["dropped_garbage"]
        effects = super().handle_datagram(now, source, data)
        if self.counters["dropped_garbage"] > before:
            self.handle_command(now, SetLoad(self.counters["dropped_garbage"] % 256))
        return effects


class Echo(Node):
    """Answers garbage with a packet: an amplifier for whoever forges source addresses."""

    def handle_datagram(self, now: float, source: Address, data: bytes) -> list[Effect]:
        before = self.counters["dropped_garbage"]
        effects = super().handle_datagram(now, source, data)
        if self.counters["dropped_garbage"] > before:
            effects.append(SendDatagram(source, b"what?"))
        return effects


class Shaken(Node):
    """Lets one kind of garbage raise."""

    def handle_datagram(self, now: float, source: Address, data: bytes) -> list[Effect]:
        if not data:
            raise IndexError("planted")
        return super().handle_datagram(now, source, data)


@pytest.mark.parametrize(
    ("make_node", "words"), [(Touched, "changed what the node shows"), (Echo, "caused")]
)
def test_a_node_that_minds_garbage_is_found_out(make_node: type[Node], words: str) -> None:
    garbage = throw(make_node, 4)
    assert garbage.violations
    assert all(violation.invariant == "10" for violation in garbage.violations)
    assert any(words in violation.text for violation in garbage.violations)


def test_a_node_that_raises_at_garbage_is_found_out() -> None:
    with pytest.raises(IndexError, match="planted"):
        throw(Shaken, 20)


class Uncounted(Node):
    """Drops garbage silently."""

    def handle_datagram(self, now: float, source: Address, data: bytes) -> list[Effect]:
        counters = self.counters.copy()
        effects = super().handle_datagram(now, source, data)
        self.counters = counters
        return effects


def test_garbage_that_is_dropped_without_being_counted_is_found_out() -> None:
    garbage = throw(Uncounted, 4)
    assert garbage.violations
    assert all("not counted" in violation.text for violation in garbage.violations)
