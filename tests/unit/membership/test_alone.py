"""A node that hears nobody says so, ever more rarely, and says when it is over."""

from __future__ import annotations

import itertools

import pytest

from mesh.core.events import EventKind
from mesh.membership.alone import AGAIN_S, AGAIN_S_MAX, Alone
from tests.unit.membership.pump import Host, Pump

DELAY_S = 1.0


def said(host: Host) -> list[str]:
    return [event.detail for event in host.events if event.kind is EventKind.SEEK]


def test_it_is_said_after_a_moment_and_then_after_twice_as_long_each_time() -> None:
    alone, now, times = Alone(DELAY_S), 0.0, []
    alone.look(now, is_alone=True)
    for _ in range(8):
        due = alone.next_deadline()
        assert due is not None
        assert alone.handle_timeout(due - 0.01) == ""
        assert alone.handle_timeout(due).startswith("alone for")
        times.append(due)
    waits = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert times[0] == DELAY_S
    assert waits == [AGAIN_S, 60.0, 120.0, 240.0, 480.0, AGAIN_S_MAX, AGAIN_S_MAX]


def test_the_end_is_said_if_the_beginning_was() -> None:
    alone = Alone(DELAY_S)
    alone.look(0.0, is_alone=True)
    assert alone.look(0.5, is_alone=False) == ""
    assert alone.next_deadline() is None
    alone.look(1.0, is_alone=True)
    alone.handle_timeout(2.0)
    assert alone.look(43.0, is_alone=False) == "no longer alone, after 42 s"
    assert alone.look(44.0, is_alone=False) == ""


def test_a_node_that_lost_everybody_says_whom_it_tries_and_when_it_is_over() -> None:
    pump = Pump()
    hosts = pump.mesh(4)
    pump.partition(hosts[0])
    assert pump.run_until(lambda: bool(said(hosts[0])), 30.0)
    pump.run(60.0)
    first = said(hosts[0])[0]
    assert "alone" in first
    assert "3 known from before" in first
    assert len(said(hosts[0])) == 2
    pump.heal()
    pump.run(10.0)
    assert len(said(hosts[0])) == 3
    assert said(hosts[0])[-1].startswith("no longer alone")
    assert not any(said(host) for host in hosts[1:])


def test_whoever_has_nobody_to_look_for_is_not_alone() -> None:
    pump = Pump()
    founder = pump.add(1)
    other = pump.add(2, 1)
    pump.run(2.0)
    pump.leave(other)
    pump.run(120.0)
    assert said(founder) == []


@pytest.mark.parametrize("seeds", [(), (8, 9)])
def test_a_node_that_returns_and_finds_nobody_says_whom_it_asks(seeds: tuple[int, ...]) -> None:
    pump = Pump()
    hosts = pump.mesh(3)
    for host in hosts:
        pump.kill(host)
    snapshot = hosts[1].snapshots[-1]
    old = hosts[1].swim.identity
    back = pump.add(2, *seeds, boot=2, mesh_id=old.mesh_id, remembered=snapshot.members)
    pump.run(20.0)
    assert len(said(back)) == 1
    assert "tries 2 known from before" in said(back)[0]
    assert "2 were asked in vain" in said(back)[0]
    assert "connection refused" in said(back)[0]
