"""Each checker sees what it is for: planted violations, in a view, in a history and in a node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mesh.core.address import Address
from mesh.core.effects import Effect, SendDatagram
from mesh.core.events import Event, EventKind
from mesh.membership.identity import Identity
from mesh.node.config import profile
from mesh.node.node import Node
from mesh.node.view import View
from mesh.sim.checkers import (
    Accusations,
    Convergence,
    Safety,
    settle_bound_s,
    verdict_window_s,
)
from mesh.sim.experiment import Settings, run_experiment
from mesh.sim.fleet import Fleet, FleetOptions
from mesh.sim.network import Conditions, Network
from mesh.sim.world import Observed, World

SWIM = profile("local")


class Stage:
    """Four members that know each other, under the eyes of the checkers."""

    def __init__(self) -> None:
        self.world = World(5, Node, Network(5, Conditions()))
        fleet = Fleet(self.world, SWIM, FleetOptions())
        self.accusations = Accusations(self.world, SWIM)
        for _ in range(4):
            fleet.boot(fleet.add())
        self.world.run_for(5.0)
        self.convergence = Convergence(self.world.census)

    def views(self) -> dict[str, View]:
        now_s = self.world.loop.now_s
        return {
            host.spec.name: host.node.view(host.clock.read(now_s))
            for host in self.world.hosts
            if host.node is not None
        }

    def rules(self, views: dict[str, View]) -> list[tuple[str, str]]:
        return [(v.invariant, v.observer) for v in self.convergence.differences(5.0, views)]


def member(view: View, name: str) -> dict[str, Any]:
    return next(entry for entry in view.members if entry["name"] == name)


def test_equal_and_true_views_are_converged() -> None:
    stage = Stage()
    assert stage.rules(stage.views()) == []


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("state", "dead", "9b"),
        ("state", "suspect", "9a"),
        ("boot", 1, "9a"),
        ("incarnation", 99, "9a"),
        ("address", "10.9.9.9:1", "9a"),
    ],
)
def test_a_wrong_entry_is_no_convergence(field: str, value: object, rule: str) -> None:
    stage = Stage()
    views = stage.views()
    member(views["node-1"], "node-2")[field] = value
    assert stage.rules(views) == [(rule, "node-1")]


def test_a_missing_member_is_no_convergence() -> None:
    stage = Stage()
    views = stage.views()
    views["node-1"].members.remove(member(views["node-1"], "node-2"))
    assert stage.rules(views) == [("9a", "node-1")]


def test_a_crashed_member_must_not_be_alive_anywhere() -> None:
    stage = Stage()
    stage.world.crash(stage.world.hosts[3])
    assert stage.rules(stage.views()) == [("9a", f"node-{index}") for index in range(3)]
    stage.world.run_for(10.0)
    assert stage.rules(stage.views()) == []


def test_two_meshes_are_no_convergence() -> None:
    stage = Stage()
    views = stage.views()
    views["node-1"].node["mesh_id"] = "f" * 16
    assert stage.rules(views) == [("9a", "everybody")]


def test_who_still_seeks_has_not_converged() -> None:
    stage = Stage()
    views = stage.views()
    views["node-1"].node["phase"] = "seeking"
    assert stage.rules(views) == [("9a", "node-1")]


def observe(stage: Stage, change: Callable[[dict[str, Any]], None]) -> list[str]:
    """Show the safety checker a true view and then one with a changed entry."""
    safety = Safety(stage.world.census)
    host = stage.world.hosts[0]
    assert safety.observe(5.0, host, stage.views()["node-0"]) == []
    later = stage.views()["node-0"]
    change(member(later, "node-2"))
    return [violation.text for violation in safety.observe(6.0, host, later)]


def test_nothing_new_is_safe() -> None:
    assert observe(Stage(), lambda entry: None) == []


def test_a_member_that_never_was_is_unsafe() -> None:
    (text,) = observe(Stage(), lambda entry: entry.update(node_id="0123456789abcdef"))
    assert "never existed" in text


def test_a_boot_that_never_was_is_unsafe() -> None:
    (text,) = observe(Stage(), lambda entry: entry.update(boot=entry["boot"] + 7))
    assert "never existed" in text


@pytest.mark.parametrize("later", [(5, "alive"), (4, "dead"), (4, "suspect"), (5, "suspect")])
def test_going_back_within_a_session_is_unsafe(later: tuple[int, str]) -> None:
    stage = Stage()
    safety = Safety(stage.world.census)
    host = stage.world.hosts[0]
    first, second = stage.views()["node-0"], stage.views()["node-0"]
    member(first, "node-2").update(incarnation=5, state="dead")
    member(second, "node-2").update(incarnation=later[0], state=later[1])
    assert safety.observe(5.0, host, first) == []
    (violation,) = safety.observe(6.0, host, second)
    assert "went back" in violation.text


def test_a_new_session_may_know_less() -> None:
    stage = Stage()
    safety = Safety(stage.world.census)
    host = stage.world.hosts[0]
    first = stage.views()["node-0"]
    member(first, "node-2").update(incarnation=5)
    safety.observe(5.0, host, first)
    host.session += 1
    assert safety.observe(6.0, host, stage.views()["node-0"]) == []


def accuse(stage: Stage, subject: int) -> None:
    event = Event(kind=EventKind.DEAD, member_id=stage.world.hosts[subject].node_id)
    stage.accusations.observe(Observed(stage.world.loop.now_s, stage.world.hosts[0], event))


def test_a_verdict_on_a_healthy_member_in_a_calm_mesh_is_a_violation() -> None:
    stage = Stage()
    accuse(stage, 2)
    assert stage.accusations.count == 1
    assert [violation.invariant for violation in stage.accusations.violations] == ["9b"]


def test_a_verdict_soon_after_a_fault_is_excused() -> None:
    stage = Stage()
    stage.world.hosts[2].begin_trouble()
    accuse(stage, 2)
    stage.world.hosts[2].end_trouble(stage.world.loop.now_s)
    stage.world.run_for(0.5)
    accuse(stage, 2)
    assert stage.accusations.count == 0
    stage.world.run_for(verdict_window_s(SWIM, 4))
    accuse(stage, 2)
    assert stage.accusations.count == 1


def test_a_false_verdict_under_loss_is_counted_only() -> None:
    stage = Stage()
    stage.world.network.conditions = Conditions(loss_ratio=0.3)
    accuse(stage, 2)
    assert (stage.accusations.count, stage.accusations.violations) == (1, [])


def test_a_verdict_on_one_who_is_gone_is_true() -> None:
    stage = Stage()
    stage.world.crash(stage.world.hosts[2])
    accuse(stage, 2)
    assert stage.accusations.count == 0


def test_bounds_grow_with_the_mesh_and_slowly() -> None:
    bounds = [settle_bound_s(SWIM, members, 3) for members in (5, 30, 300)]
    assert bounds == sorted(bounds)
    assert bounds[-1] < 2 * bounds[0]
    assert SWIM.suspicion_s(2) == SWIM.pause_tolerance_s


# Wrong nodes, driven by the real experiment.


class Blind(Node):
    """Shows one member less than it knows."""

    def view(self, now: float) -> View:
        view = super().view(now)
        return replace(view, members=view.members[:-1])


class Mute(Node):
    """The node of host 3: takes everything and, three seconds on, sends and answers nothing."""

    def _is_mute(self, now: float) -> bool:
        return self.config.name == "node-3" and now - self._started_at >= 3.0

    def handle_datagram(self, now: float, source: Address, data: bytes) -> list[Effect]:
        effects = super().handle_datagram(now, source, data)
        return [] if self._is_mute(now) else effects

    def handle_timeout(self, now: float) -> list[Effect]:
        effects = super().handle_timeout(now)
        if not self._is_mute(now):
            return effects
        return [effect for effect in effects if not isinstance(effect, SendDatagram)]

    def handle_request(
        self, now: float, source: Address, data: bytes
    ) -> tuple[bytes, list[Effect]]:
        return (b"", []) if self._is_mute(now) else super().handle_request(now, source, data)


class Fragile(Node):
    """Cannot bear a timeout after two seconds."""

    def handle_timeout(self, now: float) -> list[Effect]:
        if now - self._started_at > 2.0:
            raise ZeroDivisionError("planted")
        return super().handle_timeout(now)


CALM = Settings(nodes=6, fault="none", profile="local", idle_s=8.0)


def test_a_node_whose_view_hides_a_member_is_found_out() -> None:
    result = run_experiment(1, CALM, make_node=Blind)
    assert {violation.invariant for violation in result.violations} == {"9a"}
    assert "found no such member" in result.to_text()


def test_a_node_that_answers_no_ping_makes_its_mesh_fail() -> None:
    result = run_experiment(1, CALM, make_node=Mute)
    assert {violation.invariant for violation in result.violations} == {"9b"}
    assert "node-3" in {violation.member for violation in result.violations}
    assert "node-3" in result.story


def test_a_node_that_does_not_refute_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Identity, "refute", lambda self, incarnation: False)
    settings = Settings(nodes=6, fault="pause", profile="local", idle_s=1.0)
    result = run_experiment(1, settings)
    assert {violation.invariant for violation in result.violations} == {"9d"}
    assert len({violation.member for violation in result.violations}) == 1


def test_a_node_that_raises_is_found_out_with_the_place() -> None:
    result = run_experiment(1, CALM, make_node=Fragile)
    assert [violation.invariant for violation in result.violations] == ["crash"]
    assert "planted" in result.violations[0].text
    assert "handle_timeout" in result.violations[0].text


def test_a_failure_says_how_to_replay_it() -> None:
    text = run_experiment(1, CALM, make_node=Fragile).to_text()
    assert "replay: mesh sim --nodes 6 --fault none --seed 1 --profile local" in text
    assert "what happened:" in text
