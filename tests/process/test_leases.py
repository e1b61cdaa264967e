"""Work lives as long as its lease: frozen when that is in doubt, thawed when it is sure again, killed when it is over."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mesh.fleet.fleet import Fleet, NodeProcess
from mesh.node.config import LEASES
from tests.process.guarded import is_alive, is_frozen, until
from tests.process.test_guarded_join import Job, wait_dead
from tests.process.voters import wait_voters

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the guardian is for Linux")

TIMES = LEASES["local"]()
LATE_S = 5.0
"""How late a busy host may be."""


@contextmanager
def stopped(*nodes: NodeProcess) -> Iterator[None]:
    """Stop these nodes, without their guardians, for as long as this lasts."""
    pids = [node.pid for node in nodes]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def count(node: NodeProcess, name: str) -> int:
    found: int = node.call("status")["counters"].get(name, 0)
    return found


def test_work_of_a_stopped_node_is_frozen_and_goes_on_when_the_node_does(fleet: Fleet) -> None:
    node = fleet.start("a")
    job = Job(fleet.home)
    node.call("submit", argv=job.argv, cwd="/")
    pids = job.pids()
    began = time.monotonic()
    with stopped(node):
        until(lambda: all(map(is_frozen, pids)), "leader and daemon are frozen")
    if time.monotonic() - began > TIMES.voter_s - TIMES.renew_s:
        pytest.skip("this host was too busy to let the node go on before its lease was over")
    until(lambda: not any(map(is_frozen, pids)), "both go on")
    assert all(map(is_alive, pids))
    assert count(node, "frozen_runs") == 1
    assert count(node, "thawed_runs") == 1
    assert count(node, "killed_runs") == 0


def test_work_of_a_node_that_stands_still_for_long_is_killed_and_begins_anew(fleet: Fleet) -> None:
    node = fleet.start("a")
    job = Job(fleet.home)
    task_id = node.call("submit", argv=job.argv, cwd="/")["id"]
    pids = job.pids()
    with stopped(node):
        wait_dead(pids, TIMES.owner_s + TIMES.doubt_s + LATE_S)
    again = job.pids(2)
    assert all(map(is_alive, again))
    assert node.call("task", id=task_id)["state"] == "leased"
    assert count(node, "killed_runs") == 1


@pytest.mark.parametrize("options", [(), ("--no-guardian",)])
def test_work_is_frozen_while_its_lease_is_in_doubt_and_killed_when_it_is_over(
    fleet: Fleet, options: tuple[str, ...]
) -> None:
    others = [fleet.start("b", slots=0), fleet.start("c", slots=0)]
    node = fleet.launch("a", *options, fleet.seed)
    node.wait_ready()
    wait_voters(fleet, 3)
    job = Job(fleet.home)
    node.call("submit", argv=job.argv, cwd="/")
    leader, daemon = job.pids()
    with stopped(*others):
        until(lambda: is_frozen(leader), "it is frozen")
        if not options:  # who has left its parents is found by a guardian alone
            until(lambda: is_frozen(daemon), "its daemon, too")
        wait_dead((leader,), TIMES.doubt_s + LATE_S)
        if not options:
            wait_dead((daemon,), LATE_S)
        assert count(node, "frozen_runs") == 1
