"""Sealed meshes under the same faults: proofs, challenges and windows cost membership nothing."""

from __future__ import annotations

import pytest

from mesh.core.address import Address
from mesh.core.effects import Effect, SendDatagram
from mesh.core.stored import Kept
from mesh.node.config import NodeConfig
from mesh.sim.experiment import Settings, run_experiment
from mesh.sim.mixed import run_mixed
from tests.sim.sealed_node import SealedNode

SEEDS = range(1, 13)
SWEEP = range(1, 201)


@pytest.mark.parametrize("seed", SEEDS)
def test_invariants_hold_in_a_sealed_mesh(seed: int) -> None:
    result = run_mixed(seed, make_node=SealedNode)
    assert not result.violations, result.replay


@pytest.mark.sweep
@pytest.mark.parametrize("seed", SWEEP)
def test_invariants_hold_in_a_sealed_mesh_over_a_sweep(seed: int) -> None:
    test_invariants_hold_in_a_sealed_mesh(seed)


def test_sealed_mesh_joins_detects_and_idles_as_a_plain_one_does() -> None:
    settings = Settings(nodes=32, fault="crash", profile="lan")
    plain, sealed = run_experiment(3, settings), run_experiment(3, settings, make_node=SealedNode)
    assert not sealed.violations
    assert sealed.false_accusations == 0
    assert sealed.converged_s is not None
    assert plain.converged_s is not None
    assert sealed.converged_s <= plain.converged_s + 1.0
    assert sealed.packets_s is not None
    assert sealed.packets_s <= 2.2
    assert max(sealed.detection.seconds) <= 10.0


def test_datagrams_recorded_in_one_session_of_a_mesh_change_nothing_in_the_next() -> None:
    recorded: list[tuple[Address, bytes]] = []
    later: list[Later] = []

    class Recorded(SealedNode):
        def handle_datagram(self, now: float, source: Address, data: bytes) -> list[Effect]:
            recorded.append((source, data))
            return super().handle_datagram(now, source, data)

    class Later(SealedNode):
        session = "later"
        heard_at = 0.0

        def handle_datagram(self, now: float, source: Address, data: bytes) -> list[Effect]:
            self.heard_at = now
            return super().handle_datagram(now, source, data)

    def make_later(config: NodeConfig, seed: int, kept: Kept) -> SealedNode:
        later.append(Later(config, seed, kept))
        return later[-1]

    settings = Settings(nodes=5, fault="restart", profile="local")
    run_experiment(1, settings, make_node=Recorded)
    run_experiment(1, settings, make_node=make_later)
    node = later[0]
    now = node.heard_at + 1_000.0
    before, counters = node.view(now).members, dict(node.seal.counters)
    for source, data in recorded:
        for effect in node.handle_datagram(now, source, data):
            assert isinstance(effect, SendDatagram)
    assert node.view(now).members == before
    # It is the same mesh: what was meant for this node was opened, and kept back.
    assert node.seal.counters["dropped_unproven"] > counters["dropped_unproven"]
    assert node.seal.counters["proof_packets"] > counters["proof_packets"]
