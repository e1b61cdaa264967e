"""Simulated processes: they say, rest and end as real ones do under a guardian that outlives the node."""

from __future__ import annotations

import pytest

from mesh.core.effects import (
    Effect,
    FreezeProcess,
    GuardProcess,
    ReadOutput,
    StartProcess,
    StopProcess,
    ThawProcess,
)
from mesh.core.process import ProcessExit, ProcessOutput
from mesh.sim.runs import Act, Behaviour, Run
from tests.sim.scripted_node import Stage

START = StartProcess(9, ("x",), {}, "")
LONG_S = 2.0


class Watched(Stage):
    """One scripted node, whose commands take two seconds, and what is seen of them."""

    def __init__(self, behaviour: Behaviour | None = None) -> None:
        super().__init__(1)
        self.seen: list[tuple[float, Act]] = []
        self.host = self.world.hosts[0]
        self.world.runs._workload = lambda _host, _command: behaviour or Behaviour(LONG_S)
        self.world.runs.watchers.append(self._see)

    def _see(self, _run: Run, act: Act) -> None:
        self.seen.append((round(self.world.loop.now_s, 3), act))

    def told(self) -> list[object]:
        """Return what the sessions of the node heard of processes."""
        return [event for node in self.nodes for _, event in node.of_kind("process")]

    def wait(self, duration_s: float, *effects: Effect) -> None:
        """Let time pass, and then let the node ask for this."""
        self.world.run_for(duration_s)
        self.act(0, *effects)


def test_a_run_says_its_pieces_as_they_are_read_and_then_ends() -> None:
    stage = Watched(Behaviour(1.0, 5, ((1, b"a"), (1, b"b"))))
    stage.act(0, START)
    stage.world.run_for(5.0)
    assert stage.told() == [ProcessOutput(9, 1, b"a")]
    for _ in range(2):
        stage.act(0, ReadOutput(9, 1))
        stage.world.run_for(1.0)
    assert stage.told()[1:] == [ProcessOutput(9, 1, b"b"), ProcessExit(9, 5)]


@pytest.mark.parametrize(("grace_s", "exit_code"), [(2.0, 143), (0.0, 137)])
def test_a_run_that_is_stopped_ends_once_by_its_signal(grace_s: float, exit_code: int) -> None:
    stage = Watched()
    stage.act(0, START)
    stage.act(0, StopProcess(9, grace_s), StopProcess(9, grace_s))
    stage.world.run_for(5.0)
    assert stage.told() == [ProcessExit(9, exit_code)]


@pytest.mark.parametrize(("term_s", "exit_code", "at_s"), [(0.3, 143, 0.8), (9.0, 0, 2.0)])
def test_a_run_that_takes_its_time_to_end_has_its_grace(
    term_s: float, exit_code: int, at_s: float
) -> None:
    stage = Watched(Behaviour(LONG_S, term_s=term_s))
    stage.act(0, START)
    stage.wait(0.5, StopProcess(9, 5.0))
    stage.world.run_for(9.0)
    assert stage.told() == [ProcessExit(9, exit_code)]
    assert stage.seen == [(0.0, Act.START), (at_s, Act.END)]


def test_a_run_that_does_not_end_in_its_grace_is_killed() -> None:
    stage = Watched(Behaviour(60.0, term_s=30.0))
    stage.act(0, START)
    stage.wait(0.5, StopProcess(9, 5.0))
    stage.world.run_for(9.0)
    assert stage.told() == [ProcessExit(9, 137)]
    assert stage.seen[-1] == (5.5, Act.END)


def test_a_command_that_cannot_start_is_never_seen_and_says_why() -> None:
    stage = Watched(Behaviour(0.0, 126, error="no process could be had", is_host_fault=True))
    stage.act(0, START)
    stage.world.run_for(1.0)
    end = ProcessExit(9, 126, "no process could be had", is_host_fault=True)
    assert (stage.told(), stage.seen) == ([end], [])


def test_a_frozen_run_has_left_what_it_had() -> None:
    stage = Watched()
    stage.act(0, START)
    stage.wait(0.5, FreezeProcess(9), FreezeProcess(9))
    stage.wait(10.0, ThawProcess(9), ThawProcess(9))
    stage.world.run_for(LONG_S)
    acts = [(0.0, Act.START), (0.5, Act.REST), (10.5, Act.GO_ON), (12.0, Act.END)]
    assert (stage.seen, stage.told()) == (acts, [ProcessExit(9, 0)])


@pytest.mark.parametrize("is_paused", [False, True])
def test_a_guardian_freezes_and_kills_on_time_though_the_node_be_stopped(is_paused: bool) -> None:
    stage = Watched()
    stage.act(0, GuardProcess(9, 1.0, 4.0), START)
    if is_paused:
        stage.world.pause(stage.host)
    stage.world.run_for(6.0)
    assert stage.seen == [(0.0, Act.START), (1.0, Act.REST), (4.0, Act.END)]
    assert stage.told() == ([] if is_paused else [ProcessExit(9, 137)])
    stage.world.resume(stage.host)
    assert stage.told() == [ProcessExit(9, 137)]


def test_a_guardian_reads_the_hosts_own_clock_though_its_rate_change() -> None:
    stage = Watched(Behaviour(60.0))
    stage.world.set_clock_rate(stage.host, 2.0)
    stage.act(0, GuardProcess(9, 10.0, 20.0), START)
    stage.world.run_for(1.0)
    stage.world.set_clock_rate(stage.host, 4.0)
    stage.world.run_for(9.0)
    assert stage.seen == [(0.0, Act.START), (3.0, Act.REST), (5.5, Act.END)]


def test_deadlines_that_move_thaw_what_they_froze() -> None:
    stage = Watched()
    stage.act(0, GuardProcess(9, 1.0, 4.0), START)
    stage.wait(3.0, GuardProcess(9, 2.9, 5.0))
    stage.wait(1.5, GuardProcess(9, 6.0, 8.0))
    stage.world.run_for(9.0)
    acts = [(0.0, Act.START), (1.0, Act.REST), (4.5, Act.GO_ON), (5.5, Act.END)]
    assert (stage.seen, stage.told()) == (acts, [ProcessExit(9, 0)])


def test_what_is_thawed_too_late_is_frozen_again_at_once() -> None:
    stage = Watched()
    stage.act(0, GuardProcess(9, 1.0, 9.0), START)
    stage.wait(3.0, ThawProcess(9))
    stage.world.run_for(1.0)
    assert [act for _, act in stage.seen] == [Act.START, Act.REST, Act.GO_ON, Act.REST]
    assert stage.seen[2][0] == stage.seen[3][0]


def test_a_host_that_stands_still_looks_at_its_deadlines_before_anything_goes_on() -> None:
    stage = Watched()
    other = StartProcess(8, ("y",), {}, "")
    stage.act(0, GuardProcess(9, 1.0, 9.0), START, GuardProcess(8, 7.5, 9.0), other)
    stage.world.run_for(0.5)
    stage.world.pause(stage.host, is_whole=True)
    stage.world.run_for(5.0)
    stage.world.resume(stage.host)
    assert stage.seen == [
        *[(0.0, Act.START)] * 2,
        *[(0.5, Act.REST)] * 2,
        (5.5, Act.GO_ON),  # the other one alone
    ]
    stage.world.run_for(1.0)
    assert stage.told() == []
    stage.world.run_for(2.5)
    assert stage.told() == [ProcessExit(8, 0), ProcessExit(9, 137)]


def test_a_crash_takes_the_runs_along_at_once() -> None:
    stage = Watched()
    stage.act(0, GuardProcess(9, 1.0, 9.0), START)
    stage.world.run_for(0.5)
    stage.world.crash(stage.host)
    stage.world.boot(stage.host)
    stage.world.run_for(5.0)
    assert stage.told() == []
    assert stage.seen == [(0.0, Act.START), (0.5, Act.END)]
    assert stage.world.runs._runs == {}
    assert stage.world.runs._deadlines == {}
