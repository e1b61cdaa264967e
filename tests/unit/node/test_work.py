"""A node's tasks and registers: who votes from when on, what runs, what is durable before it is said."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from mesh.core.address import Address
from mesh.core.ballot import BALLOT_BYTES, Ballot
from mesh.core.effects import Answer, Commit, Effect, Emit, GuardProcess, ReadOutput, StartProcess
from mesh.core.events import EventKind
from mesh.core.ids import NO_MESH
from mesh.core.process import ProcessExit, ProcessOutput
from mesh.core.stored import Kept, StoredRecord
from mesh.errors import DecodeError
from mesh.node.config import Metadata
from mesh.node.node import Node
from mesh.registers.hearsay import ANSWER_S
from mesh.registers.roster import proposing
from mesh.registers.upkeep import UpkeepTimes
from mesh.tasks.commands import GetTask, Submit, WaitFor
from mesh.wire.records import Cause
from mesh.wire.register_messages import Accept, Standing, Value
from mesh.wire.roster_messages import Roster
from mesh.wire.swim_messages import Alive, Dead, Left
from tests.unit.membership.pump import address, card_bytes, node_id
from tests.unit.node.neighbours import Neighbours
from tests.unit.node.talk import (
    NOW,
    Disk,
    carry_out,
    config,
    founder,
    from_host,
    job,
    started,
    submit,
    tell,
)

NOBODY_RUNS = Metadata(slots=0)


def registers(node: Node) -> dict[str, Any]:
    found: dict[str, Any] = node.view(NOW).node["registers"]
    return found


def task(wire: Neighbours, number: int, task_id: str) -> dict[str, Any]:
    """Return what a majority holds of a task, as a host finds it."""
    answer = wire.answer(wire.give(number, lambda command: GetTask(command, task_id)))
    assert answer is not None
    assert answer.error is None, answer
    found: dict[str, Any] = answer.result
    return found


# What is durable before it is said.


def test_a_task_is_acknowledged_once_it_is_durable_and_not_before() -> None:
    node = founder()
    effects = node.handle_command(NOW, Submit(7, job()))
    (commit,) = effects
    assert isinstance(commit, Commit)
    assert [record.key for record in commit.records] == [b"task/job"]
    later = carry_out(node, node.handle_committed(NOW, commit.number))
    answers = [effect for effect in later if isinstance(effect, Answer)]
    assert answers == [Answer(7, {"id": "job"})]


def test_a_run_is_guarded_before_it_is_started() -> None:
    effects = submit(founder())
    run = [effect for effect in effects if isinstance(effect, GuardProcess | StartProcess)]
    guard, start = run
    assert isinstance(guard, GuardProcess)
    assert isinstance(start, StartProcess)
    assert guard.run_id == start.run_id
    assert NOW < guard.freeze_at < guard.kill_at


def test_a_verdict_is_told_to_whoever_waits_once_it_is_durable() -> None:
    node = founder()
    (run,) = [effect.run_id for effect in submit(node) if isinstance(effect, StartProcess)]
    carry_out(node, node.handle_command(NOW, WaitFor(2, "job")))
    effects = node.handle_process(NOW, ProcessExit(run, 3))
    assert not any(isinstance(effect, Answer) for effect in effects)
    (answer,) = [e for e in carry_out(node, effects) if isinstance(e, Answer)]
    assert (answer.command_id, answer.result["state"]) == (2, "failed")
    assert node.view(NOW).running == []


# Who votes.


def test_whoever_has_founded_a_mesh_votes_once_its_roster_is_durable() -> None:
    node = Node(config(mesh_id=NO_MESH), seed=1)
    effects = node.start(NOW)
    numbers, roster = [effect for effect in effects if isinstance(effect, Commit)]
    assert "ballot_numbers" in numbers.numbers, "set aside while the disk has room"
    assert roster.numbers["installed"] == 1
    carry_out(node, effects)
    assert registers(node) == {
        "epoch": 1,
        "voters": ["host-1"],
        "voters_alive": 1,
        "voters_away": [],
        "standstill": "",
        "parting": "",
        "votes": True,
        "records": 1,
    }
    assert any(isinstance(effect, StartProcess) for effect in submit(node))


def test_founder_that_crashed_before_its_roster_was_durable_founds_its_registers_again() -> None:
    first = Node(config(mesh_id=NO_MESH), seed=1)
    first.start(NOW)  # and its Commit is lost
    mesh_id = first.identity.mesh_id
    again = Node(config(boot=2, mesh_id=mesh_id, is_founder=True), seed=2, kept=Kept())
    carry_out(again, again.start(NOW))
    assert registers(again)["voters"] == ["host-1"]
    assert any(isinstance(effect, StartProcess) for effect in submit(again))


def test_founder_whose_roster_was_kept_goes_on_with_its_tasks_and_founds_nothing() -> None:
    disk, first = Disk(), Node(config(is_founder=True), seed=1)
    carry_out(first, first.start(NOW), disk=disk)
    carry_out(first, first.handle_command(NOW, Submit(1, job())), disk=disk)
    again = Node(config(boot=2, is_founder=True), seed=2, kept=disk.kept())
    effects = carry_out(again, again.start(NOW), disk=disk)
    assert not any("installed" in e.numbers for e in effects if isinstance(e, Commit))
    assert registers(again)["epoch"] == 1
    assert len([effect for effect in effects if isinstance(effect, StartProcess)]) == 1
    (shown,) = again.view(NOW).tasks
    assert [(one["number"], one["cause"], one["end"]) for one in shown["attempts"]] == [
        (1, "first", "lost"),
        (2, "crash", "open"),
    ]


def test_founder_that_has_sealed_its_epoch_does_not_found_again() -> None:
    """Others vote since: what it kept of its own epoch is over."""
    node = Node(config(boot=2, is_founder=True), seed=1, kept=Kept((), {"sealed": 1}))
    carry_out(node, node.start(NOW))
    assert registers(node) == {
        "epoch": 0,
        "voters": [],
        "voters_alive": 0,
        "voters_away": [],
        "standstill": "",
        "parting": "",
        "votes": False,
        "records": 0,
    }


def test_record_that_cannot_be_read_ends_the_session_before_it_begins() -> None:
    broken = StoredRecord(b"task/job", None, b"\x01" * BALLOT_BYTES, 0, b"\xc1")
    with pytest.raises(DecodeError, match="may be of a newer Mesh"):
        Node(config(), seed=1, kept=Kept((broken,))).start(NOW)


def test_node_that_knows_no_roster_learns_it_from_any_member_and_then_takes_tasks() -> None:
    wire = Neighbours()
    wire.begin(2, mesh_id=founder().identity.mesh_id)
    assert registers(wire.nodes[2])["epoch"] == 0
    early = wire.give(2, lambda command: Submit(command, job("early"), timeout_s=1.0))
    wire.run(2.0)
    refused = wire.answer(early)
    assert refused is not None
    assert refused.error is not None, "nobody could hold it"
    wire.begin(1, meta=NOBODY_RUNS)
    wire.run(3.0, until=lambda: registers(wire.nodes[2])["epoch"])
    assert registers(wire.nodes[2])["voters"] == ["host-1"]
    wire.give(2, lambda command: Submit(command, job("late")))
    assert list(wire.started()) == [2], "the founder keeps it, and has no slot for it"


def test_with_three_members_three_vote_and_each_has_the_tasks_of_before() -> None:
    wire = Neighbours()
    wire.begin(1, meta=NOBODY_RUNS)
    wire.give(1, lambda command: Submit(command, job()))
    for number in (2, 3):
        wire.begin(number, meta=NOBODY_RUNS)
    nodes = wire.nodes.values()
    wire.run(10.0, until=lambda: all(registers(node)["epoch"] == 2 for node in nodes))
    for node in nodes:
        assert registers(node)["voters"] == ["host-1", "host-2", "host-3"]
        assert [shown["id"] for shown in node.view(wire.now).tasks] == ["job"]
    wire.away = {1}
    assert task(wire, 2, "job")["state"] == "ready", "it outlives the node that took it in"


def test_roster_in_a_message_is_followed_once_a_voter_says_so_when_asked() -> None:
    node = started()
    tell(node, 2, *(Alive(card_bytes(number)) for number in (2, 3, 4)))
    three = Roster(4, (node_id(2), node_id(3), node_id(4)))
    tell(node, 2, three)
    assert registers(node)["epoch"] == 0
    for number in (2, 3, 4):
        tell(node, number, three)
    assert registers(node)["epoch"] == 4
    tell(node, 2, Roster(3, (node_id(4),)))
    tell(node, 2, Roster(3, (node_id(4),)))
    assert registers(node)["epoch"] == 4
    assert registers(node)["voters"] == ["host-2", "host-3", "host-4"]


def _hear(node: Node, now: float, source: Address, data: bytes) -> list[Effect]:
    return node.handle_datagram(now, source, data)


def test_far_roster_in_one_datagram_of_a_member_stops_no_work() -> None:
    wire = Neighbours()
    for number in (1, 2, 3, 4):
        wire.begin(number)
        wire.run(0.0)
    wire.run(10.0, until=lambda: all(registers(one)["epoch"] == 2 for one in wire.nodes.values()))
    wire.run(2 * ANSWER_S)
    far = Roster(999, tuple(sorted((node_id(4), node_id(9)))))
    for sender in (2, 4):
        data, source = from_host(sender, far), address(sender)
        for number in (1, 2, 3, 4):
            wire.do(number, partial(_hear, source=source, data=data))
        wire.run(90.0)
    assert [registers(one)["epoch"] for one in wire.nodes.values()] == [2, 2, 2, 2]
    wire.give(4, lambda command: Submit(command, job("after")))
    assert wire.started()


@pytest.mark.parametrize("key", [b"\0roster/0", b"\0roster/1"])
@pytest.mark.parametrize(
    "value",
    [
        Value(Standing.FINAL, b"no roster"),
        Value(Standing.OPEN, b""),
        proposing(Roster(7, (node_id(2),)))(None),
    ],
)
def test_what_a_member_writes_where_rosters_are_kept_bars_no_later_session(
    key: bytes, value: Value
) -> None:
    node, disk = Node(config(is_founder=True), seed=1), Disk()
    carry_out(node, node.start(NOW), NOW, disk)
    accept = Accept(key, 1, Ballot(0, 1, 5, node_id(2)), 0, value)
    said = from_host(2, Alive(card_bytes(2)), accept)
    carry_out(node, node.handle_datagram(NOW, address(2), said), NOW, disk)
    again = Node(config(is_founder=True, boot=2), seed=1, kept=disk.kept())
    carry_out(again, again.start(NOW))
    assert registers(again)["voters"] == ["host-1"]
    assert (registers(again)["epoch"], registers(again)["votes"]) == (1, True)


# How leases end.


def with_a_run_elsewhere() -> tuple[Neighbours, int, int]:
    """Host 1 votes alone and runs nothing; of hosts 2 and 3 one runs a task. Return which, and the other."""
    wire = Neighbours()
    wire.begin(1, meta=NOBODY_RUNS)
    for number in (2, 3):
        wire.begin(number, meta=Metadata(slots=1))
    wire.run(1.0)
    wire.give(1, lambda command: Submit(command, job()))
    (runs,) = wire.started()
    return wire, runs, 5 - runs


def ends(kind: str, number: int) -> object:
    """Return what proves, or only says, that the first session of a host is over."""
    return {
        "left": Left(node_id(number), 1, 0),
        "ended": Dead(node_id(number), 1, 0, Cause.ENDED, node_id(1)),
        "restarted": Alive(card_bytes(number, boot=2, meta=NOBODY_RUNS)),
        "silent": Dead(node_id(number), 1, 0, Cause.SILENT, node_id(1)),
        "crashed": Dead(node_id(number), 1, 0, Cause.CRASHED, node_id(1)),
    }[kind]


@pytest.mark.parametrize("kind", ["left", "ended", "restarted"])
def test_proof_that_a_session_is_over_ends_its_leases_at_once(kind: str) -> None:
    wire, runs, heir = with_a_run_elsewhere()
    wire.away = {runs}
    data = from_host(heir, ends(kind, runs))
    wire.do(1, lambda node, now: node.handle_datagram(now, address(heir), data))
    wire.run(0.1, until=lambda: wire.nodes[heir].view(wire.now).running)
    assert list(wire.started()) == [heir]
    lost, running = task(wire, 1, "job")["attempts"]
    assert (lost["end"], running["cause"], running["node"]) == ("lost", "crash", f"host-{heir}")


@pytest.mark.parametrize("kind", ["silent", "crashed"])
def test_death_without_proof_ends_no_lease_before_its_time(kind: str) -> None:
    wire, runs, heir = with_a_run_elsewhere()
    wire.away = {runs}
    data = from_host(heir, ends(kind, runs))
    wire.do(1, lambda node, now: node.handle_datagram(now, address(heir), data))
    times = config().leases
    wire.run(times.voter_s - times.renew_s)
    assert wire.started() == {}
    assert task(wire, 1, "job")["state"] == "leased"
    wire.run(2 * times.doubt_s, until=lambda: wire.nodes[heir].view(wire.now).running)
    assert list(wire.started()) == [heir]
    assert task(wire, 1, "job")["cause"] == "lapse"


def test_owner_that_is_cut_off_freezes_its_run_before_anybody_else_may_start_it() -> None:
    wire, runs, heir = with_a_run_elsewhere()
    (guard, *_) = reversed(wire.heard(runs, GuardProcess))
    began = wire.now
    wire.loses = lambda sender, to, _: runs in {sender, to}
    wire.run(20.0, until=lambda: wire.nodes[heir].view(wire.now).running)
    assert guard.freeze_at < wire.now
    assert wire.now <= began + 3 * config().leases.doubt_s
    assert wire.nodes[runs].view(wire.now).running[0]["is_frozen"]


# What is lost.


def test_output_that_nobody_could_take_is_counted() -> None:
    wire = Neighbours()
    wire.begin(1)
    wire.give(1, lambda command: Submit(command, job()))
    ((_, (start,)),) = wire.started().items()
    piece = ProcessOutput(start.run_id, 1, bytes(60_000))
    for _ in range(40):
        wire.do(1, lambda node, now: node.handle_process(now, piece))
        wire.run(5.0, until=lambda: wire.heard(1, ReadOutput))
    assert wire.nodes[1].view(wire.now).node["counters"]["dropped_output_bytes"] > 1_000_000


def counter(wire: Neighbours, name: str) -> int:
    """Return the sum of what each node has counted."""
    nodes = [node.view(wire.now).node for node in wire.nodes.values()]
    return sum(node["counters"].get(name, 0) for node in nodes)


@pytest.mark.parametrize("count", [1, 3], ids=["alone", "of three"])
def test_tasks_that_went_before_their_day_are_counted_by_one_of_their_voters(count: int) -> None:
    wire = Neighbours()
    times = UpkeepTimes(compare_s=5, settle_s=1, message_life_s=30, finals_max=2)
    for number in range(1, count + 1):
        wire.begin(number, upkeep=times)
    voters = [node_id(number) for number in wire.nodes]
    wire.run(30.0, until=lambda: len(registers(wire.nodes[1])["voters"]) == len(voters))
    for task_id in "abcde":
        wire.give(1, partial(Submit, new=job(task_id)))
        wire.run(5.0)
        ((runs, (start,)),) = wire.started().items()
        wire.exit(runs, start.run_id)
        wire.run(5.0)
    wire.run(120.0)
    left = wire.nodes[1].view(wire.now).task_counts["done"]
    assert 1 <= left <= 2
    assert counter(wire, "purged_early") == 5 - left


def test_node_with_more_slots_than_leases_fit_into_a_renewal_says_how_many_it_uses() -> None:
    node = Node(config(is_founder=True, meta=Metadata(slots=10_001)), seed=1)
    effects = carry_out(node, node.start(NOW))
    (text,) = [
        one.event.detail
        for one in effects
        if isinstance(one, Emit) and one.event.kind is EventKind.WARN
    ]
    assert "10000 slots at most are used" in text
    assert node.identity.vitals.free_slots == 10_000
