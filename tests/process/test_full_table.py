"""A node at its limit of open files is accused by nobody and accuses nobody; and it still knows a crash."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from mesh.core.address import split_host_port
from mesh.fleet.clearing import MARK, wait_until
from mesh.fleet.fleet import Fleet, NodeProcess

FEW_DESCRIPTORS = ("sh", "-c", 'ulimit -n 40; exec "$@"', "sh")
HELD = 60
HELD_S = 4.0
"""Longer than a silent member has in this profile."""

NOTICE_S = 10.0


@pytest.fixture
def sick(fleet: Fleet) -> NodeProcess:
    """The one of four members that may open few files."""
    fleet.start("well")
    fleet.nodes["sick"] = NodeProcess("sick", fleet.home, {MARK: fleet.mark}, FEW_DESCRIPTORS)
    node = fleet.start("sick")
    fleet.start("gone")
    fleet.start("other")
    fleet.wait_whole()
    return node


@pytest.fixture
def crowd(sick: NodeProcess) -> Iterator[None]:
    """Strangers who hold more connections to it than it can take."""
    to = split_host_port(sick.call("status")["address"])
    with ExitStack() as stack:
        for _ in range(HELD):
            stack.enter_context(socket.create_connection(to, timeout=5))
        wait_until(
            lambda: "no new connection can be taken" in sick.log_text() or None,
            NOTICE_S,
            lambda: AssertionError(f"it has descriptors left: {sick.log_text()}"),
        )
        yield


def deaths(fleet: Fleet, since_ns: int) -> list[tuple[str, str, str]]:
    found = []
    for node in fleet.running():
        with node.client() as client:
            events = list(client.stream("events", follow=False, last=500))
        found += [
            (node.name, event["member"], event["cause"])
            for event in events
            if event["kind"] == "dead" and event["at_ns"] >= since_ns
        ]
    return sorted(found)


@pytest.mark.usefixtures("crowd")
def test_a_node_without_descriptors_is_accused_by_nobody_and_accuses_only_the_dead(
    fleet: Fleet,
) -> None:
    since_ns = time.time_ns()
    time.sleep(HELD_S)
    assert deaths(fleet, since_ns) == []
    fleet.nodes["gone"].kill(guardian=True)
    expected = [(name, "gone", "crashed") for name in ("other", "sick", "well")]
    wait_until(
        lambda: deaths(fleet, since_ns) == expected or None,
        NOTICE_S,
        lambda: AssertionError(f"{deaths(fleet, since_ns)}"),
    )
