"""`mesh why` on real nodes: one is killed, one leaves, and a survivor tells both stories."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any, TypeAlias

from mesh.fleet.clearing import wait_until
from mesh.fleet.fleet import Fleet, NodeProcess

Mesh: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]

TIMEOUT_S = 20.0
KEYS = {
    "observer", "observer_id", "at", "self", "name", "node_id", "address", "state", "cause", "is_proof",
    "since", "boot", "incarnation", "rtt_ms", "heard", "suspicion", "history", "story", "otherwise",
}  # fmt: skip


def at(node: NodeProcess) -> tuple[str, str]:
    return "--data", str(node.data)


def wait_for(node: NodeProcess, member: str, state: str) -> None:
    def row() -> dict[str, Any]:
        found: dict[str, Any] = next(m for m in node.call("members") if m["name"] == member)
        return found

    wait_until(
        lambda: row()["state"] == state or None,
        TIMEOUT_S,
        lambda: AssertionError(f"{node.name} sees {row()}, not {state}"),
    )


def told(mesh: Mesh, node: NodeProcess, whom: str) -> dict[str, Any]:
    done = mesh("why", whom, "--json", *at(node))
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    assert found.keys() >= KEYS
    return found


def test_a_survivor_tells_of_a_crash_who_saw_it_and_of_a_leave_that_it_is_proof(
    fleet: Fleet, mesh: Mesh
) -> None:
    first, second, third = (fleet.start(name) for name in ("one", "two", "three"))
    fourth = fleet.start("four")
    fleet.wait_whole()
    well = mesh("why", "three", *at(first))
    assert (well.returncode, well.stderr) == (0, "")
    assert "is alive, as one sees it" in well.stdout
    assert "nothing against it" in well.stdout

    third.kill(guardian=True)
    for node in (first, second, fourth):
        wait_for(node, "three", "dead")
    story = told(mesh, first, "three")
    assert (story["state"], story["cause"], story["is_proof"]) == ("dead", "crashed", False)
    assert (story["observer"], story["self"]) == ("one", False)
    assert story["heard"] <= story["since"] <= story["at"]
    verdict = story["history"][-1]
    assert verdict["kind"] == "dead"
    assert verdict["accuser"] in {"one", "two", "four"}
    kinds = {kind for entry in story["history"] for kind in entry["evidence_kinds"]}
    assert kinds & {"lifeline_closed", "connection_refused", "declared"}
    assert "Crashed is a hint, and no proof" in story["otherwise"][0]
    text = mesh("why", story["node_id"][:8], *at(first)).stdout
    assert f"three ({story['node_id']}) is dead (crashed), as one sees it" in text
    assert "what would have changed it" in text

    assert mesh("leave", *at(fourth)).returncode == 0
    wait_for(first, "four", "left")
    story = told(mesh, first, "four")
    assert (story["state"], story["is_proof"]) == ("left", True)
    assert [entry["evidence_kinds"] for entry in story["history"]] == [["farewell"]]
    assert "Nothing: four said goodbye itself. That is proof" in story["otherwise"][0]

    last = [json.loads(line) for line in mesh("events", "--json", *at(first)).stdout.splitlines()]
    death = next(event for event in last if event["kind"] == "dead")
    assert death["evidence"]
    assert death["evidence_kinds"]
    assert death["accuser"] in {"one", "two", "four"}
    assert isinstance(death["confirmed_by"], list)


def test_wrong_usage_an_unknown_member_and_no_node_have_their_exit_codes(
    fleet: Fleet, mesh: Mesh
) -> None:
    node = fleet.start("backup-east")
    unknown = mesh("why", "backup-esat", *at(node))
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "no member is known here by the name or id 'backup-esat'" in unknown.stderr
    assert "did you mean backup-east?" in unknown.stderr
    assert "it is this node itself" in mesh("why", "backup-east", *at(node)).stdout
    for wrong in ((), ("",), ("one", "two")):
        assert mesh("why", *wrong, *at(node)).returncode == 2
    assert mesh("why", "one", "--data", str(fleet.home / "nowhere")).returncode == 3


def test_why_of_a_task_tells_what_it_waits_for_and_each_attempt(fleet: Fleet, mesh: Mesh) -> None:
    node = fleet.start("one", slots=1)
    node.call("submit", id="picky", argv=["true"], labels={"gpu": "yes"})
    waiting = mesh("why", "picky", *at(node))
    assert (waiting.returncode, waiting.stderr) == (0, "")
    assert waiting.stdout.startswith("task picky is ready\n")
    assert "what it waits for" in waiting.stdout
    assert (
        "A member that can run it: no member that takes tasks has label gpu=yes." in waiting.stdout
    )
    node.call("cancel", id="picky")

    node.call("submit", id="odd-1", argv=["sh", "-c", "exit 3"])
    wait_until(
        lambda: node.call("task", id="odd-1")["state"] == "failed" or None,
        TIMEOUT_S,
        lambda: AssertionError(node.call("task", id="odd-1")),
    )
    text = mesh("why", "odd", *at(node)).stdout
    assert text.startswith("task odd-1 is failed on one\n")
    assert "one took it in" in text
    assert "attempt 1 began on one: first run" in text
    assert "· one is its home\n" in text
    assert "attempt 1 ended with exit code 3" in text
    assert "mesh retry odd-1 submits it anew" in text
    told = json.loads(mesh("why", "odd-1", "--json", *at(node)).stdout)
    (attempt,) = told["task"]["attempts"]
    assert attempt["exit_code"] == 3
    assert attempt["placed"] == {"by": "rank", "home": "one", "passed": None}
    assert len(told["story"]) == 4
    assert mesh("why", "one", *at(node)).stdout.startswith("one (")
