"""Eight real nodes, each killed once with SIGKILL: who noticed, how soon, and was anybody else accused."""

from __future__ import annotations

import socket
import statistics
import time

import pytest

from mesh.core.address import split_host_port
from mesh.demo.witness import Witness
from mesh.fleet.clearing import wait_until
from mesh.fleet.fleet import Fleet, NodeProcess
from mesh.membership.profile import profile

NAMES = tuple(f"n{number}" for number in range(1, 9))
NOTICE_TIMEOUT_S = {"local": 10.0, "lan": 30.0}


def start_all(fleet: Fleet) -> list[NodeProcess]:
    first, *others = NAMES
    fleet.start(first)
    for name in others:
        fleet.launch(name)
    for node in fleet.nodes.values():
        node.wait_ready()
    fleet.wait_whole()
    return list(fleet.nodes.values())


def kill_and_time(fleet: Fleet, victim: NodeProcess) -> list[float]:
    """Kill one node; return how long each survivor took, in ms. Missing and false reports fail."""
    witnesses = [Witness(node) for node in fleet.nodes.values() if node is not victim]
    killed_ns = victim.kill()
    took_ms, missing = [], []
    for witness in witnesses:
        event = witness.wait_event("dead", victim.name, killed_ns, NOTICE_TIMEOUT_S[fleet.profile])
        if event is None:
            missing.append(witness.name)
        else:
            took_ms.append((event["at_ns"] - killed_ns) / 1e6)
    accused = [
        (witness.name, event["member"])
        for witness in witnesses
        for event in witness.events(killed_ns)
        if event["kind"] == "dead" and event["member"] != victim.name
    ]
    assert missing == [], f"{victim.name} was killed and never reported by {missing}"
    assert accused == [], f"{victim.name} was killed, and others held to be dead"
    return took_ms


def return_and_time(fleet: Fleet, victim: NodeProcess, address: str) -> list[float]:
    """Start a killed node again; return how long after its bind each survivor saw it alive, in ms."""
    survivors = [node for node in fleet.nodes.values() if node is not victim]
    seed = survivors[0].call("status")["address"]
    witnesses = [Witness(node) for node in survivors]
    fleet.launch(victim.name, seed, bind=address)
    bound_ns = wait_bound_ns(address)
    took_ms = []
    for witness in witnesses:
        event = witness.wait_event("return", victim.name, bound_ns - 10**9, 20.0)
        assert event is not None, f"{witness.name} did not see {victim.name} return"
        took_ms.append((event["at_ns"] - bound_ns) / 1e6)
    victim.wait_ready()
    return took_ms


def wait_bound_ns(address: str) -> int:
    """Wait until somebody listens at `address` and return the Unix time in ns."""

    def bound_ns() -> int | None:
        try:
            with socket.create_connection(split_host_port(address), timeout=1.0):
                return time.time_ns()
        except OSError:
            return None

    return wait_until(bound_ns, 20.0, lambda: AssertionError(f"nobody listens at {address}"))


def kill_each_once(fleet: Fleet) -> None:
    nodes = start_all(fleet)
    period_ms = profile(fleet.profile).probe_interval_s * 1000
    for victim in nodes:
        address = victim.call("status")["address"]
        noticed = kill_and_time(fleet, victim)
        returned = return_and_time(fleet, victim, address)
        fleet.wait_whole()
        print(
            f"{victim.name} killed: first {min(noticed):.0f}, median {statistics.median(noticed):.0f}, "
            f"last {max(noticed):.0f} ms; returned: last {max(returned):.0f} ms after its bind"
        )
        assert max(returned) <= 2 * period_ms


def test_each_of_eight_nodes_is_killed_once_noticed_by_all_and_returns(fleet: Fleet) -> None:
    kill_each_once(fleet)


@pytest.mark.sweep
def test_each_of_eight_nodes_is_killed_once_on_a_lan(lan_fleet: Fleet) -> None:
    kill_each_once(lan_fleet)


@pytest.mark.parametrize("how", ["command", "SIGTERM"])
def test_leave_is_known_to_all_within_a_second(fleet: Fleet, how: str) -> None:
    for name in ("a", "b", "c", "d"):
        fleet.start(name)
    fleet.wait_whole()
    leaver = fleet.nodes["d"]
    witnesses = [Witness(fleet.nodes[name]) for name in ("a", "b", "c")]
    left_ns = time.time_ns()
    if how == "command":
        leaver.call("leave", reason="test")
        assert leaver.wait_ended() == 0
    else:
        assert leaver.stop() == 0
    for witness in witnesses:
        event = witness.wait_event("leave", "d", left_ns, 5.0)
        assert event is not None, f"{witness.name} did not see the leave"
        assert event["at_ns"] - left_ns < 10**9
        assert [e for e in witness.events(left_ns) if e["kind"] in {"dead", "suspect"}] == []
