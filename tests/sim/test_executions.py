"""The checker of two owners: each thing that must not be of a task's runs is planted, and seen."""

from __future__ import annotations

import pytest

from mesh.core.effects import StartProcess
from mesh.core.ids import NodeId
from mesh.sim.executions import Execution, Executions, OwnersChecker
from mesh.sim.runs import Behaviour
from tests.sim.scripted_node import Stage


def execution(token: int, attempt: int, node: int = 1) -> Execution:
    return Execution("t", NodeId(node), token, attempt)


@pytest.mark.parametrize(
    ("second", "word"),
    [
        (execution(7, 2, node=2), "is not above"),
        (execution(9, 1, node=2), "started twice"),
    ],
)
def test_a_start_that_must_not_be_is_blamed(second: Execution, word: str) -> None:
    blamed: list[tuple[str, str]] = []
    seen = Executions(lambda *what: blamed.append(what))
    seen.started(execution(8, 1))
    assert not blamed
    seen.started(second)
    ((task_id, text),) = blamed
    assert task_id == "t"
    assert word in text


def test_two_that_run_at_once_are_blamed_and_one_after_the_other_are_not() -> None:
    blamed: list[tuple[str, str]] = []
    seen = Executions(lambda *what: blamed.append(what))
    first, second, third = execution(1, 1), execution(2, 2), execution(3, 3)
    for one in (first, second):
        seen.started(one)
        seen.executes(one)
        seen.rests(one)
    assert not blamed
    seen.executes(first)
    seen.started(third)
    seen.executes(third)
    assert [text[:15] for _, text in blamed] == ["two run at once"]


@pytest.mark.parametrize(("wait_s", "faults"), [(0.5, 1), (1.5, 0)])
def test_processes_of_a_world_are_watched(wait_s: float, faults: int) -> None:
    stage = Stage(2)
    stage.world.runs._workload = lambda _host, _command: Behaviour(1.0)
    checker = OwnersChecker(stage.world)
    for number in (1, 2):
        env = {"MESH_TASK_ID": "t", "MESH_TOKEN": str(number), "MESH_ATTEMPT": str(number)}
        stage.act(number - 1, StartProcess(9, ("work",), env, ""))
        stage.world.run_for(wait_s)
    assert len(checker.faults) == faults
    assert [one.token for one in checker.starts["t"]] == [1, 2]
