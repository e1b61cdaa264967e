"""Work floods the mesh while a member dies: the death is noticed as soon as without the flood."""

from __future__ import annotations

import statistics

import pytest

from mesh.core.effects import Effect
from mesh.core.requests import Tell
from mesh.node.config import profile
from mesh.node.node import Node
from mesh.sim.checkers import verdict_window_s
from mesh.sim.experiment import Settings, run_experiment
from mesh.sim.host import NodeFactory
from mesh.wire.work_messages import SlotsFree

NODES = 10
SEEDS = range(1, 4)
FLOOD_S = 0.01
SWIM = profile("local")


class Flooding(Node):
    """A node whose work tells one member something all the time."""

    _flood_at = float("inf")

    def start(self, now: float) -> list[Effect]:
        self._flood_at = now
        return super().start(now)

    def next_timeout(self) -> float | None:
        due = super().next_timeout()
        return None if due is None else min(due, self._flood_at)

    def handle_timeout(self, now: float) -> list[Effect]:
        effects = super().handle_timeout(now)
        if now < self._flood_at or self._is_stopped:
            return effects
        self._flood_at = now + FLOOD_S
        others = sorted(self._swim.table.living)
        member = self._swim.table.get(others[0]) if others else None
        if member is not None:
            effects += self._settle(now, [Tell(member.address, SlotsFree(1))])
        return effects


def last_notice_s(seed: int, make_node: NodeFactory) -> tuple[float, float]:
    """When the last survivor knew of a crash, and the datagrams a member sends a second."""
    settings = Settings(nodes=NODES, fault="crash", profile="local", idle_s=2.0)
    result = run_experiment(seed, settings, make_node=make_node)
    assert result.has_held, result.to_text()
    assert not result.detection.missing
    assert result.false_accusations == 0
    assert result.packets_s is not None
    return max(result.detection.seconds), result.packets_s


@pytest.fixture(scope="module")
def calm() -> dict[int, tuple[float, float]]:
    return {seed: last_notice_s(seed, Node) for seed in SEEDS}


@pytest.fixture(scope="module")
def flooded() -> dict[int, tuple[float, float]]:
    return {seed: last_notice_s(seed, Flooding) for seed in SEEDS}


Runs = dict[int, tuple[float, float]]


def test_the_flood_is_one(calm: Runs, flooded: Runs) -> None:
    for seed in SEEDS:
        assert flooded[seed][1] > calm[seed][1] + 0.9 / FLOOD_S


def test_a_death_in_a_flood_is_noticed_as_soon(calm: Runs, flooded: Runs) -> None:
    by_calm = statistics.median(seconds for seconds, _ in calm.values())
    by_flooded = statistics.median(seconds for seconds, _ in flooded.values())
    assert by_flooded <= by_calm + SWIM.probe_interval_s
    bound_s = 10 * SWIM.probe_interval_s + verdict_window_s(SWIM, NODES)
    assert max(seconds for seconds, _ in flooded.values()) <= bound_s
