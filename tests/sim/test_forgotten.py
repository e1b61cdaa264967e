"""A forgotten member stays away, through half an hour of whole nodes that compare notes, and whatever happens
to them meanwhile; one that was alive after all comes back."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from mesh.core.events import EventKind
from mesh.node.commands import ForgetMember, Leave
from mesh.node.config import profile
from mesh.node.node import Node
from mesh.sim.fleet import Fleet, FleetOptions
from mesh.sim.host import Host
from mesh.sim.network import Conditions, Network
from mesh.sim.world import World

HALF_AN_HOUR_S = 1_800.0
LOOK_S = 60.0
SWIM = profile("lan")


class Stage:
    """Whole nodes that have known each other for long, on a network that loses a little."""

    def __init__(self, count: int, seed: int) -> None:
        self.world = World(seed, Node, Network(seed, Conditions(loss_ratio=0.02)), check=True)
        self.fleet = Fleet(self.world, SWIM, FleetOptions())
        self.fleet.boot_acquainted(count)
        self.hosts = self.world.hosts
        self.world.run_for(5.0)

    def state(self, observer: Host, subject: Host) -> str:
        """What an observer's people see of a host: its state, or that it is not listed."""
        node = observer.node
        assert node is not None
        view = node.view(observer.clock.read(self.world.loop.now_s))
        name = subject.spec.name
        return next((row["state"] for row in view.members if row["name"] == name), "not listed")

    def states(self, observers: Iterable[Host], subject: Host) -> set[str]:
        return {self.state(observer, subject) for observer in observers}

    def wait(self, observers: list[Host], subject: Host, state: str, bound_s: float) -> None:
        end_s = self.world.loop.now_s + bound_s
        while self.states(observers, subject) != {state}:
            assert self.world.loop.now_s < end_s, (state, self.states(observers, subject))
            self.world.run_for(1.0)

    def forget(self, at: Host, subject: Host) -> None:
        self.world.command(at, ForgetMember(1, subject.spec.name))
        _, host, answer = self.world.answers[-1]
        assert (host, answer.error) == (at, None)
        assert answer.result["name"] == subject.spec.name

    def stays_away(self, subject: Host, duration_s: float = 600.0) -> None:
        """Let the time pass; nobody who runs ever lists the host again, or says that it returned."""
        began_s = self.world.loop.now_s
        while self.world.loop.now_s < began_s + duration_s:
            self.world.run_for(LOOK_S)
            running = [host for host in self.hosts if host.node is not None and not host.is_paused]
            assert self.states(running, subject) == {"not listed"}
        returns = [
            seen
            for seen in self.world.events
            if seen.at_s > began_s
            and seen.event.kind in {EventKind.RETURN, EventKind.JOIN, EventKind.DEAD}
            and seen.event.member == subject.spec.name
        ]
        assert returns == []


@pytest.fixture(params=[1, pytest.param(2, marks=pytest.mark.sweep)])
def stage(request: pytest.FixtureRequest) -> Stage:
    return Stage(6, request.param)


def lose(stage: Stage, victim: Host, observers: list[Host]) -> None:
    """A host loses its power for good, and everybody finds out."""
    stage.world.crash(victim, power=False)
    stage.wait(observers, victim, "dead", 60.0)


def test_a_forgotten_member_stays_away_for_half_an_hour(stage: Stage) -> None:
    *others, victim = stage.hosts
    lose(stage, victim, others)
    stage.forget(others[2], victim)
    stage.wait(others, victim, "not listed", 2 * SWIM.sync_interval_s)
    stage.stays_away(victim, HALF_AN_HOUR_S)
    heard = [seen for seen in stage.world.events if seen.event.kind is EventKind.FORGET]
    assert sorted(seen.observer.index for seen in heard) == list(range(5))
    assert {seen.event.evidence for seen in heard} == {("asked for at node-2",)}


@pytest.mark.parametrize(
    "slept_from",
    [pytest.param("before its death", marks=pytest.mark.sweep), "before the forgetting"],
)
def test_it_stays_away_though_one_slept_through_it(stage: Stage, slept_from: str) -> None:
    *others, sleeper, victim = stage.hosts
    if slept_from == "before its death":
        stage.world.pause(sleeper)
        lose(stage, victim, others)
    else:
        lose(stage, victim, [*others, sleeper])
        stage.world.pause(sleeper)
    stage.forget(others[0], victim)
    stage.world.run_for(300.0)
    assert stage.states(others, victim) == {"not listed"}
    stage.world.resume(sleeper)
    stage.wait([sleeper], victim, "not listed", 3 * SWIM.sync_interval_s)
    stage.stays_away(victim)


def test_it_stays_away_though_a_side_was_cut_off(stage: Stage) -> None:
    *others, victim = stage.hosts
    lose(stage, victim, others)
    inside, outside = range(3), range(3, 6)
    cuts = [stage.world.network.cut(inside, outside), stage.world.network.cut(outside, inside)]
    stage.world.run_for(60.0)
    stage.forget(others[0], victim)
    stage.world.run_for(120.0)
    assert stage.states(others[3:], victim) == {"dead"}
    for cut in cuts:
        stage.world.network.mend(cut)
    stage.wait(others, victim, "not listed", 3 * SWIM.sync_interval_s)
    stage.stays_away(victim)


def test_it_stays_away_though_everybody_restarts_one_after_the_other(stage: Stage) -> None:
    *others, victim = stage.hosts
    lose(stage, victim, others)
    stage.forget(others[0], victim)
    stage.wait(others, victim, "not listed", 2 * SWIM.sync_interval_s)
    for host in others:
        stage.world.crash(host)
        stage.world.run_for(30.0)
        stage.fleet.boot(host)
        stage.wait(others, host, "alive", 60.0)
    stage.stays_away(victim)


def test_it_stays_away_though_one_was_down_while_it_died_and_was_forgotten(stage: Stage) -> None:
    *others, down, victim = stage.hosts
    stage.world.crash(down)
    lose(stage, victim, others)
    stage.forget(others[0], victim)
    stage.world.run_for(60.0)
    stage.fleet.boot(down)
    stage.wait([*others, down], down, "alive", 60.0)
    stage.stays_away(victim)


def test_a_member_that_left_stays_away_too(stage: Stage) -> None:
    *others, victim = stage.hosts
    stage.world.command(victim, Leave("enough"))
    stage.wait(others, victim, "left", 30.0)
    stage.forget(others[3], victim)
    stage.wait(others, victim, "not listed", 2 * SWIM.sync_interval_s)
    stage.stays_away(victim)


def test_one_that_was_alive_behind_a_cut_returns_by_its_refutation(stage: Stage) -> None:
    *others, victim = stage.hosts
    inside, outside = [victim.index], [host.index for host in others]
    cuts = [stage.world.network.cut(inside, outside), stage.world.network.cut(outside, inside)]
    stage.wait(others, victim, "dead", 60.0)
    stage.forget(others[0], victim)
    stage.wait(others, victim, "not listed", 2 * SWIM.sync_interval_s)
    stage.world.run_for(300.0)
    for cut in cuts:
        stage.world.network.mend(cut)
    stage.wait(others, victim, "alive", 60.0)
    stage.wait([victim], others[0], "alive", 60.0)
    refuted = [
        seen.event.detail
        for seen in stage.world.events
        if seen.observer is victim and seen.event.kind is EventKind.REFUTE
    ]
    assert any("'forget'" in text for text in refuted)


def test_one_that_was_stopped_returns_by_its_refutation(stage: Stage) -> None:
    *others, victim = stage.hosts
    stage.world.pause(victim)
    stage.wait(others, victim, "dead", 60.0)
    stage.forget(others[0], victim)
    stage.world.run_for(300.0)
    stage.world.resume(victim)
    stage.wait(others, victim, "alive", 60.0)


def test_a_new_disk_under_the_name_of_a_forgotten_member_is_a_new_member(stage: Stage) -> None:
    *others, victim = stage.hosts
    lose(stage, victim, others)
    old_id = victim.node_id
    stage.forget(others[0], victim)
    stage.wait(others, victim, "not listed", 2 * SWIM.sync_interval_s)
    victim.lose_disk()
    stage.fleet.boot(victim)
    stage.wait(others, victim, "alive", 60.0)
    assert victim.node_id != old_id
    stage.world.run_for(300.0)
    assert stage.states(others, victim) == {"alive"}
