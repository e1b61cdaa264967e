"""A suspect may well live: its words about work are heard, and it is told what it has to know."""

from __future__ import annotations

from typing import Any

from mesh.core.effects import StopProcess
from mesh.node.config import Metadata
from mesh.tasks.commands import Submit
from mesh.wire.swim_messages import Suspect
from tests.unit.membership.pump import address, node_id
from tests.unit.node.neighbours import Neighbours
from tests.unit.node.talk import config, from_host, job


def with_a_run_at_host_2() -> tuple[Neighbours, int]:
    """Host 1 votes, host 2 runs a task, host 3 has no slot."""
    wire = Neighbours()
    wire.begin(1, meta=Metadata(slots=0))
    wire.begin(2, meta=Metadata(slots=1))
    wire.begin(3, meta=Metadata(slots=0))
    wire.run(1.0)
    wire.give(1, lambda command: Submit(command, job()))
    ((_, (start,)),) = wire.started().items()
    return wire, start.run_id


def member(wire: Neighbours, at: int, whom: int) -> dict[str, Any]:
    """Return what a host shows of another."""
    members = wire.nodes[at].view(wire.now).members
    return next(one for one in members if one["name"] == f"host-{whom}")


def suspect(wire: Neighbours, at: int, whom: int) -> None:
    """Let a host hear that another is suspected, and let nobody refute it."""
    incarnation = member(wire, at, whom)["incarnation"]
    rumour = from_host(3, Suspect(node_id(whom), 1, incarnation, node_id(3)))
    wire.loses = lambda _from, _to, _data: True
    wire.do(at, lambda node, now: node.handle_datagram(now, address(3), rumour))
    wire.loses = lambda _from, _to, _data: False
    assert member(wire, at, whom)["state"] == "suspect"


def test_verdict_of_an_owner_that_is_suspect_is_taken() -> None:
    wire, run = with_a_run_at_host_2()
    suspect(wire, at=1, whom=2)
    wire.exit(2, run)
    assert [task["state"] for task in wire.nodes[1].view(wire.now).tasks] == ["done"]


def test_verdict_is_sent_to_a_voter_that_is_suspect() -> None:
    wire, run = with_a_run_at_host_2()
    suspect(wire, at=2, whom=1)
    wire.exit(2, run, 3)
    assert [task["state"] for task in wire.nodes[1].view(wire.now).tasks] == ["failed"]
    assert wire.nodes[2].view(wire.now).node["used"] == 0


def test_lease_of_a_suspect_goes_on_as_long_as_it_renews() -> None:
    wire, run = with_a_run_at_host_2()
    until = wire.now + 2 * config().leases.doubt_s
    while wire.now < until:
        wire.run(0.5)
        suspect(wire, at=1, whom=2)
    assert wire.heard(2, StopProcess) == []
    (task,) = wire.nodes[1].view(wire.now).tasks
    assert [one["end"] for one in task["attempts"]] == ["open"]
    assert [one["is_frozen"] for one in wire.nodes[2].view(wire.now).running] == [False]
    wire.exit(2, run)
