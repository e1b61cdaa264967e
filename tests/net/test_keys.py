"""One network, several keys: whoever has another key is no member and hears of none."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from mesh.fleet.clearing import wait_until
from mesh.fleet.fleet import NodeProcess
from tests.net.ground import Ground
from tests.net.site import key_arguments

ONE, OTHER, STRANGER = ("a1", "a2"), ("b1", "b2"), "c"
HOSTS = (*ONE, *OTHER, STRANGER)
WATCHED_S = 4.0
TIMEOUT_S = 30.0

pytestmark = pytest.mark.usefixtures("has_ground")


@pytest.fixture
def ground() -> Iterator[Ground]:
    with Ground(HOSTS) as ground:
        yield ground


@pytest.fixture
def nodes(ground: Ground) -> Iterator[dict[str, NodeProcess]]:
    """One node for each host, to be started."""
    nodes = {host: NodeProcess(host, ground.home, {}, ground.inside(host)) for host in HOSTS}
    yield nodes
    for node in nodes.values():
        node.stop()


def seed(ground: Ground, host: str) -> str:
    return f"{ground.addresses[host]}:7946"


def alive(node: NodeProcess) -> set[str]:
    return {row["name"] for row in node.call("members") if row["state"] == "alive"}


def heard_of(node: NodeProcess) -> set[str]:
    """Return every name that a node's events or members tell of."""
    with node.client() as client:
        events = list(client.stream("events", follow=False, last=1000))
    rows = node.call("members")
    return ({event["member"] for event in events} | {row["name"] for row in rows}) - {""}


def test_two_meshes_with_two_keys_on_one_network_never_exchange_a_member(
    ground: Ground, nodes: dict[str, NodeProcess]
) -> None:
    def start(host: str, *arguments: str) -> None:
        profile = ("--profile", "local", "--slots", "1")
        nodes[host].start(("--bind", seed(ground, host), *profile, *arguments))

    keys = {}
    for host in (ONE[0], OTHER[0], STRANGER):
        (ground.home / f"of-{host}").mkdir()
        keys[host] = key_arguments(ground.home / f"of-{host}")
    both = (seed(ground, ONE[0]), seed(ground, OTHER[0]))
    for founder, joiner in (ONE, OTHER):
        start(founder, *keys[founder])
        nodes[founder].wait_ready()
        start(joiner, *keys[founder], *both)
    start(STRANGER, *keys[STRANGER], *both)

    def are_met() -> bool | None:
        return (
            all(alive(nodes[host]) == set(mesh) for mesh in (ONE, OTHER) for host in mesh) or None
        )

    for host in (*ONE, *OTHER):
        nodes[host].wait_ready()
    wait_until(are_met, TIMEOUT_S, lambda: AssertionError("the two meshes did not form"))
    time.sleep(WATCHED_S)
    assert are_met()
    for mesh in (ONE, OTHER):
        for host in mesh:
            assert heard_of(nodes[host]) <= set(mesh)
    assert heard_of(nodes[STRANGER]) <= {STRANGER}
    assert nodes[STRANGER].call("status")["phase"] == "seeking"
    log = nodes[STRANGER].log_text()
    assert "key" in log.split("no seed has let this node in yet", 1)[1].splitlines()[0], log
