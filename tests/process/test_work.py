"""Work over real nodes, one of them killed at a random moment: every task ends and its story is on record."""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest

from mesh.fleet.clearing import wait_until
from mesh.fleet.fleet import Fleet, NodeProcess

TASKS = 200
TERMINAL = {"done", "failed", "cancelled"}
ROUND_TIMEOUT_S = 90.0


def start_three(fleet: Fleet) -> list[NodeProcess]:
    for name in ("a", "b", "c"):
        fleet.start(name, slots=4)
    fleet.wait_whole()
    return list(fleet.nodes.values())


def run_round(fleet: Fleet, number: int) -> int:
    """Submit 200 commands to two nodes and kill the third meanwhile; return how many ran again."""
    rng = random.Random(number)
    keepers, victim = [fleet.nodes["a"], fleet.nodes["b"]], fleet.nodes["c"]
    address = victim.call("status")["address"]
    killer = threading.Timer(rng.uniform(0.0, 1.2), victim.kill)
    killer.start()
    kept: dict[str, NodeProcess] = {}
    for index in range(TASKS):
        keeper = keepers[index % 2]
        command = f"echo {index}; sleep {rng.uniform(0.0, 0.1):.3f}"
        task_id = keeper.call("submit", id=f"r{number}-{index}", argv=["/bin/sh", "-c", command])
        kept[task_id["id"]] = keeper
    killer.join()

    def ended() -> dict[str, dict[str, Any]] | None:
        found = keepers[0].call("tasks")["tasks"]
        mine = {task["id"]: task for task in found if task["id"] in kept}
        is_over = len(mine) == TASKS and all(t["state"] in TERMINAL for t in mine.values())
        return mine if is_over else None

    tasks = wait_until(ended, ROUND_TIMEOUT_S, lambda: AssertionError(unfinished(fleet)))
    reruns = 0
    for index in range(TASKS):
        task = tasks[f"r{number}-{index}"]
        assert task["state"] == "done", task
        assert task["result"]["exit_code"] == 0
        assert task["result"]["stdout_tail"] == f"{index}\n"
        assert task["keeper"] == kept[task["id"]].name
        assert task["attempt"] == len(task["attempts"]) >= 1
        assert {attempt["node"] for attempt in task["attempts"]} <= {"a", "b", "c"}
        for before, after in zip(task["attempts"], task["attempts"][1:], strict=False):
            assert before["node"] == "c"
            assert after["cause"] in {"crash", "lapse"}
        reruns += len(task["attempts"]) - 1
    fleet.launch("c", keepers[0].call("status")["address"], slots=4, bind=address)
    victim.wait_ready()
    fleet.wait_whole()
    return reruns


def unfinished(fleet: Fleet) -> str:
    tasks = fleet.nodes["a"].call("tasks")["tasks"]
    return f"not every task ended: {[t for t in tasks if t['state'] not in TERMINAL][:5]}"


@pytest.mark.parametrize("rounds", [2, pytest.param(10, marks=pytest.mark.sweep)])
def test_every_one_of_200_commands_ends_though_a_node_is_killed(fleet: Fleet, rounds: int) -> None:
    start_three(fleet)
    for number in range(rounds):
        print(f"round {number}: {run_round(fleet, number)} commands ran again")


def test_submitting_one_id_twice_runs_it_once(fleet: Fleet) -> None:
    node = fleet.start("a")
    marker = fleet.home / "ran"
    command = ["/bin/sh", "-c", f"echo x >> {marker}"]
    first = node.call("submit", id="same", argv=command)
    second = node.call("submit", id="same", argv=command)
    assert first == {"id": "same"}
    assert second == {"id": "same", "known": True}
    with node.client() as client:
        stream = client.stream("wait", id="same")
        assert list(stream) == []
        assert stream.result["state"] == "done"
    assert marker.read_text() == "x\n"


def test_task_that_nobody_can_run_says_what_it_waits_for_and_can_be_cancelled(
    fleet: Fleet,
) -> None:
    node = fleet.start("a")
    task_id = node.call("submit", argv=["true"], labels={"gpu": "yes"})["id"]
    task = node.call("task", id=task_id)
    assert task["state"] == "ready"
    assert "gpu" in task["waits_for"]
    assert node.call("cancel", id=task_id)["state"] == "cancelled"
