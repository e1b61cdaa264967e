"""What the guardian says of a node that has ended, for real: proof at every survivor within moments, and never a lie."""

from __future__ import annotations

import os
import signal
import socket
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mesh.core.address import Address
from mesh.core.ids import MeshId, NodeId
from mesh.fleet.clearing import wait_until
from mesh.fleet.fleet import Fleet, NodeProcess
from mesh.guardian.process import look
from mesh.membership.identity import INCARNATION_MAX
from mesh.wire.packet import encode_message, encode_packet
from mesh.wire.records import Cause
from mesh.wire.swim_messages import Dead
from tests.process.sealed_fleet import keys_of, mesh_key, write_key

NOTICE_S = 20.0
KNOWN_S = 1.0
"""Far longer than it takes, and far shorter than the leases last."""

SIZE = 4


def keeps_lifelines(node: NodeProcess) -> bool | None:
    return node.call("status")["lifelines"]["kept"] == SIZE - 1 or None


def seals_with(node: NodeProcess, key: str) -> bool | None:
    return keys_of(node)[0] == key or None


def start_fleet(fleet: Fleet, *words: str) -> list[NodeProcess]:
    """Start a few nodes and wait until each keeps a lifeline of each other."""
    nodes = []
    for number in range(SIZE):
        seeds = (fleet.seed,) if fleet.seed and words else ()
        nodes.append(fleet.start(f"n{number + 1}", *words, *seeds))
    fleet.wait_whole(60.0)
    for node in nodes:
        wait_until(
            partial(keeps_lifelines, node),
            NOTICE_S,
            lambda: AssertionError("each keeps a lifeline of each other"),
        )
    return nodes


def start_sealed(fleet: Fleet, home: Path) -> list[NodeProcess]:
    write_key(home / "mesh.key")
    return start_fleet(fleet, "--key", str(home / "mesh.key"))


def occupy(nodes: list[NodeProcess], home: Path) -> dict[str, int]:
    """Have each node run a command that does not end; return their processes, by the nodes' names."""
    script = f"echo $$ > {home}/$MESH_TASK_ID.new; mv {home}/$MESH_TASK_ID.new {home}/$MESH_TASK_ID.pid; exec sleep 600"
    for _ in nodes:
        nodes[0].call("submit", argv=["/bin/sh", "-c", script])
    names = {node.pid: node.name for node in nodes}

    def runs() -> dict[str, int] | None:
        pids = [int(path.read_text()) for path in home.glob("*.pid")]
        found = {names.get(getattr(look(pid), "parent", 0), ""): pid for pid in pids}
        return found if len(found) == len(nodes) else None

    return wait_until(runs, NOTICE_S, lambda: AssertionError("each node runs one of them"))


def is_alive(pid: int) -> bool:
    found = look(pid)
    return found is not None and not found.is_dead


def row_of(node: NodeProcess, name: str) -> dict[str, Any]:
    (found,) = [row for row in node.call("members") if row["name"] == name]
    row: dict[str, Any] = found
    return row


def wait_known(node: NodeProcess, name: str, state: str, *causes: str) -> dict[str, Any]:
    """Wait until a node says this of another."""

    def row() -> dict[str, Any] | None:
        found = row_of(node, name)
        return found if found["state"] == state and found["cause"] in (causes or ("",)) else None

    return wait_until(
        row, NOTICE_S, lambda: AssertionError(f"{row_of(node, name)}, not {state} {causes}")
    )


def seen_of(node: NodeProcess, name: str, kind: str) -> list[dict[str, Any]]:
    """Return the events of a kind that a node has seen of another, the earliest first."""
    with node.client() as client:
        events = list(client.stream("events", follow=False, last=1000))
    return [one for one in events if (one["kind"], one["member"]) == (kind, name)]


def kill_node(node: NodeProcess, *others: int) -> int:
    """End a node's own process, and others with it, and wait for nothing; return the time."""
    pid = node.pid
    at_ns = time.time_ns()
    for one in (*others, pid):
        os.kill(one, signal.SIGKILL)
    return at_ns


@pytest.mark.parametrize("kind", ["plain", "sealed"])
def test_survivors_know_within_moments_that_a_killed_node_has_ended(
    fleet: Fleet, tmp_path: Path, kind: str
) -> None:
    nodes = start_fleet(fleet) if kind == "plain" else start_sealed(fleet, tmp_path)
    work = occupy(nodes, tmp_path)
    victim, *others = reversed(nodes)
    at_ns = kill_node(victim)
    for node in others:
        wait_known(node, victim.name, "dead", "ended")
        assert not is_alive(work[victim.name])
        dead = seen_of(node, victim.name, "dead")
        assert [one["cause"] for one in dead] in (["ended"], ["crashed", "ended"])
        assert "obituary" in dead[-1]["evidence_kinds"] or "learned" in dead[-1]["evidence_kinds"]
        assert dead[-1]["at_ns"] - at_ns < KNOWN_S * 1e9
    victim.wait_ended()


def test_when_its_guardian_is_killed_too_nobody_says_that_a_node_has_ended(
    fleet: Fleet, tmp_path: Path
) -> None:
    nodes = start_fleet(fleet)
    victim, *others = reversed(nodes)
    kill_node(victim, victim.outer_pid)
    for node in others:
        wait_known(node, victim.name, "dead", "crashed", "silent")
    victim.wait_ended()
    for node in others:
        assert seen_of(node, victim.name, "dead")[-1]["cause"] != "ended"


def test_of_a_stopped_node_nobody_says_that_it_has_ended(fleet: Fleet) -> None:
    nodes = start_fleet(fleet)
    victim, *others = reversed(nodes)
    os.kill(victim.pid, signal.SIGSTOP)
    for node in others:
        wait_known(node, victim.name, "dead", "silent")
    os.kill(victim.pid, signal.SIGCONT)
    for node in others:
        wait_known(node, victim.name, "alive")
        causes = [one["cause"] for one in seen_of(node, victim.name, "dead")]
        assert causes == ["silent"]


def test_a_node_that_says_farewell_has_left_and_nothing_else(fleet: Fleet) -> None:
    nodes = start_fleet(fleet)
    victim, *others = reversed(nodes)
    assert victim.stop() == 0  # its guardian has ended as well
    for node in others:
        wait_known(node, victim.name, "left")
        assert seen_of(node, victim.name, "dead") == []


def test_a_stale_obituary_says_nothing_of_the_next_session(fleet: Fleet) -> None:
    nodes = start_fleet(fleet)
    victim, witness, *_ = reversed(nodes)
    before = row_of(witness, victim.name)
    victim.kill()
    wait_known(witness, victim.name, "dead", "ended")
    victim = fleet.start(victim.name, fleet.seed)
    after = wait_known(witness, victim.name, "alive")
    assert after["boot"] > before["boot"]
    status = witness.call("status")
    node_id = NodeId(int(before["node_id"], 16))
    stale = Dead(node_id, before["boot"], INCARNATION_MAX, Cause.ENDED, node_id)
    packet = encode_packet(MeshId(int(status["mesh_id"], 16)), node_id, [encode_message(stale)])
    refuted = victim.call("status")["incarnation"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as guardian:
        for node in nodes:
            host, port = node.call("status")["address"].rsplit(":", 1)
            guardian.sendto(packet, tuple(Address(host, int(port))))
    witness.call("status")  # it has been read: datagrams come first
    assert row_of(witness, victim.name) == {**after, **_moving(row_of(witness, victim.name))}
    assert victim.call("status")["incarnation"] == refuted
    assert len(seen_of(witness, victim.name, "dead")) <= 2


def _moving(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("rtt_ms", "load", "used", "since")}


def test_after_a_change_of_keys_the_obituary_opens_still(fleet: Fleet, tmp_path: Path) -> None:
    nodes = start_sealed(fleet, tmp_path)
    victim, *others = reversed(nodes)
    assert mesh_key(nodes[0], "add").returncode == 0
    old, new = keys_of(nodes[0])
    assert old != new
    assert mesh_key(nodes[0], "use", new).returncode == 0
    for node in nodes:
        wait_until(
            partial(seals_with, node, new),
            NOTICE_S,
            lambda: AssertionError("all seal with the new key"),
        )
    kill_node(victim)
    for node in others:
        wait_known(node, victim.name, "dead", "ended")
    victim.wait_ended()
