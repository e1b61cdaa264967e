"""Work over real nodes, one of them killed at a random moment: every task ends and its story is on record."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import pytest

from mesh.fleet.clearing import wait_until
from mesh.fleet.fleet import Fleet, NodeProcess
from tests.process.voters import wait_voters

TASKS = 200
TERMINAL = {"done", "failed", "cancelled"}
ROUND_TIMEOUT_S = 90.0


def start_three(fleet: Fleet) -> list[NodeProcess]:
    for name in ("a", "b", "c"):
        fleet.start(name, slots=4)
    fleet.wait_whole()
    wait_voters(fleet, 3)
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
            assert before["end"] == "lost"
            assert after["cause"] in {"crash", "lapse"}
            assert int(before["token"] or 0) < int(after["token"])
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
    assert second.keys() == {"id", "known", "state", "same"}
    assert (second["id"], second["known"], second["same"]) == ("same", True, True)
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


def ended(node: NodeProcess, task_id: str) -> dict[str, Any]:
    def task() -> dict[str, Any] | None:
        found: dict[str, Any] = node.call("task", id=task_id)
        return found if found["state"] in TERMINAL else None

    return wait_until(task, ROUND_TIMEOUT_S, lambda: AssertionError(node.call("task", id=task_id)))


def test_failure_is_retried_after_a_pause_and_a_dead_letter_can_be_retried(fleet: Fleet) -> None:
    node = fleet.start("a", slots=2)
    argv = ["/bin/sh", "-c", "echo $MESH_ATTEMPT; exit 3"]
    node.call("submit", id="bad", argv=argv, retries=2, retry_delay_s=0.1)
    task = ended(node, "bad")
    assert (task["state"], task["result"]["exit_code"], task["retries_left"]) == ("failed", 3, 0)
    assert [attempt["cause"] for attempt in task["attempts"]] == ["first", "retry", "retry"]
    again = node.call("retry", id="bad")
    assert (again["id"], again["retry_of"]) == ("bad~1", "bad")
    assert node.call("retry", id="bad")["id"] == "bad~1"
    assert len(ended(node, "bad~1")["attempts"]) == 3


def test_task_for_later_is_scheduled_until_then(fleet: Fleet) -> None:
    node = fleet.start("a")
    begin = time.time()
    node.call("submit", id="later", argv=["true"], not_before=begin + 1.5)
    task = node.call("task", id="later")
    assert (task["state"], task["not_before"]) == (
        "scheduled",
        pytest.approx(begin + 1.5, abs=0.01),
    )
    assert ended(node, "later")["started"] >= begin + 1.5


def test_many_are_submitted_in_one_request_and_answered_in_order(fleet: Fleet) -> None:
    node = fleet.start("a", slots=4)
    tasks: list[dict[str, Any]] = [{"id": f"m{n}", "argv": ["true"]} for n in range(150)]
    tasks[7] = {"id": "wrong", "argv": []}
    found = node.call("submit_many", tasks=tasks)["tasks"]
    assert [one["id"] for one in found] == [task["id"] for task in tasks]
    assert [one["id"] for one in found if "error" in one] == ["wrong"]
    for n in (0, 149):
        assert ended(node, f"m{n}")["state"] == "done"


def running_on(node: NodeProcess) -> int:
    with node.client() as client:
        return next(len(one["view"]["running"]) for one in client.stream("views") if "view" in one)


def test_draining_node_lets_its_run_end_and_takes_no_other(fleet: Fleet) -> None:
    asked, drained = start_three(fleet)[:2]
    marker = fleet.home / "go"
    wait_for_marker = f"until [ -e {marker} ]; do sleep 0.05; done"
    for n in range(12):  # every slot is taken
        asked.call("submit", id=f"d{n}", argv=["/bin/sh", "-c", wait_for_marker])
    wait_until(
        lambda: running_on(drained) == 4 or None,
        ROUND_TIMEOUT_S,
        lambda: AssertionError("it is not full"),
    )
    drained.call("leave", reason="test", within_s=60.0)
    wait_until(
        lambda: drained.call("status")["phase"] == "leaving" or None,
        ROUND_TIMEOUT_S,
        lambda: AssertionError("it does not drain"),
    )
    marker.touch()
    assert drained.wait_ended() == 0
    for n in range(12):
        task = ended(asked, f"d{n}")
        assert (task["state"], len(task["attempts"])) == ("done", 1)
