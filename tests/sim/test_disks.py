"""Simulated disks: order, groups, crashes in the middle, pauses, copies."""

from __future__ import annotations

from functools import partial

from mesh.core.effects import Commit, Effect
from mesh.core.stored import StoredRecord
from tests.sim.scripted_node import Stage

LONG_S = 5.0


def commit(number: int) -> Commit:
    record = StoredRecord(b"key %d" % number, None, None, 0, None)
    return Commit(number, (record,), {"n": number})


def _again(commits: list[Commit], _now: float, _value: object) -> list[Effect]:
    return list(commits)


def told(stage: Stage) -> list[object]:
    return [value for _, value in stage.nodes[0].of_kind("committed")]


def test_commits_end_in_order_and_those_that_waited_end_together() -> None:
    stage = Stage(1)
    stage.act(0, *(commit(number) for number in range(1, 6)))
    assert told(stage) == []
    stage.world.run_for(LONG_S)
    assert told(stage) == [1, 5]
    host = stage.world.hosts[0]
    assert sorted(host.records) == [b"key %d" % number for number in range(1, 6)]
    assert host.numbers == {"n": 5}


def test_what_is_forgotten_is_gone() -> None:
    stage = Stage(1)
    stage.act(0, commit(1), Commit(2, forget=(b"key 1",)))
    stage.world.run_for(LONG_S)
    assert stage.world.hosts[0].records == {}


def test_a_crash_leaves_a_commit_or_nothing_and_tells_nobody() -> None:
    stage = Stage(1)
    host = stage.world.hosts[0]
    left = set()
    for number in range(1, 40):
        host.records.clear()
        commits = [commit(number), commit(-number)]
        stage.nodes[-1].answers["timeout"] = partial(_again, commits)
        stage.world.poke(host)
        stage.world.crash(host)
        stage.world.run_for(LONG_S)
        left.add(len(host.records))
        stage.world.boot(host)
        assert stage.nodes[-1].of_kind("committed") == []
    assert left == {0, 1}, "the first is there or not; what waited behind it never is"


def test_a_paused_node_hears_of_its_commit_when_it_goes_on() -> None:
    stage = Stage(1)
    host = stage.world.hosts[0]
    stage.act(0, commit(1))
    stage.world.pause(host)
    stage.world.run_for(LONG_S)
    assert list(host.records) == [b"key 1"], "the disk does not stop with the process"
    assert told(stage) == []
    stage.world.resume(host)
    assert told(stage) == [1]


def test_a_disk_that_is_rolled_back_or_lost_takes_its_records_with_it() -> None:
    stage = Stage(1)
    host = stage.world.hosts[0]
    stage.act(0, commit(1))
    stage.world.run_for(LONG_S)
    host.copy_disk()
    host.copy_disk()
    stage.act(0, commit(2))
    stage.world.run_for(LONG_S)
    assert len(host.records) == 2
    host.roll_back(0.0)
    assert (list(host.records), host.numbers) == ([b"key 1"], {"n": 1})
    host.lose_disk()
    assert (host.records, host.numbers) == ({}, {})
