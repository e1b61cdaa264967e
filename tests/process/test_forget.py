"""`mesh forget` on real nodes: one of three is killed and forgotten, and gone on all; others are refused."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from typing import TypeAlias

from mesh.demo.witness import Witness
from mesh.fleet.clearing import MARK, wait_until
from mesh.fleet.fleet import Fleet, NodeProcess

Mesh: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]

TIMEOUT_S = 20.0


def at(node: NodeProcess) -> tuple[str, str]:
    return "--data", str(node.data)


def states(node: NodeProcess) -> dict[str, str]:
    """By name and by id."""
    rows = node.call("members")
    return {row[key]: row["state"] for key in ("name", "node_id") for row in rows}


def wait_for(node: NodeProcess, member: str, state: str | None) -> None:
    def is_so() -> bool | None:
        return states(node).get(member) == state or None

    wait_until(
        is_so, TIMEOUT_S, lambda: AssertionError(f"{node.name} sees {states(node)}, not {state}")
    )


def test_a_killed_member_is_forgotten_and_gone_on_all_and_back_when_it_starts_again(
    fleet: Fleet, mesh: Mesh
) -> None:
    first, second, third = (fleet.start(name) for name in ("one", "two", "three"))
    fleet.wait_whole()
    third_id = third.call("status")["node_id"]

    refused = mesh("forget", "three", *at(first))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "three is alive: only a member that is dead or has left is forgotten" in refused.stderr

    third.kill()
    for node in (first, second):
        wait_for(node, "three", "dead")
    began_ns = time.time_ns()
    done = mesh("forget", "three", *at(second))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"three ({third_id}) is forgotten; it was dead\n"
    for node in (first, second):
        wait_for(node, "three", None)
        event = Witness(node).wait_event("forget", "three", began_ns, TIMEOUT_S)
        assert event is not None
        assert (event["state"], event["evidence"]) == ("forgotten", ["asked for at two"])
    assert "one forgot three: asked for at two" in mesh("events", *at(first)).stdout

    again = mesh("forget", third_id, "--json", *at(first))
    assert again.returncode == 0
    assert json.loads(again.stdout) == {"node_id": third_id, "name": "three", "was": "forgotten"}

    fleet.launch("three")
    fleet.wait_whole()


def test_of_two_dead_members_of_one_name_the_id_says_which(fleet: Fleet, mesh: Mesh) -> None:
    first = fleet.start("one")
    ids: list[str] = []
    for number in (1, 2):
        home = fleet.home / f"place-{number}"
        home.mkdir()
        spare = NodeProcess("spare", home, {MARK: fleet.mark}, ())
        spare.start(("--bind", "127.0.0.1:0", "--profile", "local", fleet.seed))
        ids.append(spare.wait_ready()["node_id"])
        wait_for(first, ids[-1], "alive")
        spare.kill()
        wait_for(first, ids[-1], "dead")
    refused = mesh("forget", "spare", *at(first))
    assert refused.returncode == 1
    assert all(f"{node_id} (dead for " in refused.stderr for node_id in ids)
    assert mesh("forget", ids[0], *at(first)).returncode == 0
    wait_for(first, ids[0], None)
    assert states(first)[ids[1]] == "dead"
    assert mesh("forget", "spare", *at(first)).returncode == 0
    wait_for(first, ids[1], None)


def test_wrong_usage_an_unknown_member_and_no_node_have_their_exit_codes(
    fleet: Fleet, mesh: Mesh
) -> None:
    node = fleet.start("one")
    unknown = mesh("forget", "nobody", *at(node))
    assert unknown.returncode == 1
    assert "no member is known here by the name or id 'nobody'" in unknown.stderr
    own = mesh("forget", "one", *at(node))
    assert own.returncode == 1
    assert "one is this node itself: `mesh leave` lets it go" in own.stderr
    for wrong in ((), ("",), ("one", "two")):
        assert mesh("forget", *wrong, *at(node)).returncode == 2
    assert mesh("forget", "one", "--data", str(fleet.home / "nowhere")).returncode == 3
