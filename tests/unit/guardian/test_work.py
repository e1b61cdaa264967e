"""Whose work an orphan is, on a host that is made up: /proc and signals are a table."""

from __future__ import annotations

import itertools

import pytest

from mesh.guardian import link, work
from mesh.guardian.company import Company
from mesh.guardian.link import Leader
from mesh.guardian.process import SIGCONT, SIGKILL, SIGSTOP, Process
from mesh.guardian.work import Run, Work

GUARDIAN, NODE = 100, 101
NEVER = float("inf")


class Host:
    """A guardian, its node, and what that has started."""

    def __init__(self) -> None:
        self.processes: dict[int, Process] = {}
        self.said: list[tuple[int, int]] = []
        self.sent: list[tuple[int, int]] = []
        self.is_readable = True
        self.is_stuck = False
        self.bomb: itertools.count[int] | None = None
        self.start(1, 0, start=1)
        self.start(GUARDIAN, 1, start=2)
        self.start(NODE, GUARDIAN, start=3)
        company = Company(GUARDIAN, "MARK=1")
        company.is_shared = False  # the children of this test are not among the table's
        self.work = Work(company, {GUARDIAN}, self._say)
        self.work.node = NODE

    def _say(self, kind: int, run: Run) -> None:
        self.said.append((kind, run.run_id))

    def start(self, pid: int, parent: int, *, start: int, group: int = 0, state: str = "S") -> None:
        group = group or pid
        fields = [state, parent, group, group, *[0] * 13, 1, 0, start]
        self.processes[pid] = Process(pid, f"{pid} (a ) b) {' '.join(map(str, fields))}".encode())

    def survey(self) -> dict[int, Process]:
        if not self.is_readable:
            raise OSError(23, "too many open files")
        if self.bomb is not None:
            pid = next(self.bomb)
            self.start(pid, NODE, start=pid, group=200)
        return dict(self.processes)

    def send(self, key: tuple[int, int], number: int) -> bool:
        process = self.processes.get(key[0])
        if process is None or process.key != key or self.is_stuck:
            return False
        self.sent.append((key[0], number))
        if number == SIGKILL:
            for child in self.processes.values():
                if child.parent == process.pid:
                    child.parent = GUARDIAN
            del self.processes[key[0]]
        else:
            process.is_stopped = number == SIGSTOP
        return True

    def run(self, run_id: int, pid: int, start: int, *, keeps_orphans: bool = False) -> None:
        self.start(pid, NODE, start=start)
        leader = Leader(pid, start, keeps_orphans=keeps_orphans)
        assert self.work.watch(run_id, leader, NEVER, NEVER)

    def pass_time(self, now: float) -> None:
        """Do what is due, and look again where that is wanted soon."""
        for _ in range(20):
            if self.work.next_deadline() > now + 0.05:
                break
            now = max(now, self.work.next_deadline())
            self.work.freeze_due(now)
            self.work.settle(now)

    def stopped(self) -> list[int]:
        return [pid for pid, process in self.processes.items() if process.is_stopped]


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    host = Host()
    monkeypatch.setattr(work, "survey", host.survey)
    monkeypatch.setattr(work, "send", host.send)
    return host


def test_group_session_and_descendants_are_frozen_and_nobody_else(host: Host) -> None:
    host.run(1, 200, 10)
    host.run(2, 300, 11)
    host.start(201, 200, start=12, group=200)
    host.start(202, 201, start=13)  # another group, still a descendant
    host.start(900, 1, start=14, group=200)  # not below the guardian
    host.work.move(1, 5.0, NEVER)
    host.pass_time(4.9)
    assert host.stopped() == []
    host.pass_time(5.0)
    assert host.stopped() == [200, 201, 202]
    assert host.said == [(link.FROZEN, 1)]


def test_an_orphan_is_frozen_with_the_first_that_may_have_started_it_and_thawed_with_the_last(
    host: Host,
) -> None:
    host.run(1, 200, 10)
    host.run(2, 300, 11)
    host.run(3, 400, 30)
    host.start(500, GUARDIAN, start=20)
    host.work.move(3, 0, NEVER)  # younger than the orphan
    host.pass_time(1)
    assert 500 not in host.stopped()
    host.work.move(1, 0, NEVER)
    host.pass_time(2)
    host.work.move(2, 0, NEVER)
    host.pass_time(3)
    assert 500 in host.stopped()
    for run_id, is_stopped in ((1, True), (2, False)):
        host.work.move(run_id, NEVER, NEVER)
        host.work.settle(4)
        assert (500 in host.stopped()) == is_stopped


def test_an_orphan_is_killed_with_the_first_that_lost_its_lease(host: Host) -> None:
    host.run(1, 200, 10)
    host.run(2, 300, 11)
    host.start(500, GUARDIAN, start=20)
    host.work.move(1, NEVER, 0)
    host.pass_time(1)
    assert 500 not in host.processes
    assert 300 in host.processes
    assert host.said[-1] == (link.KILLED, 1)


def test_an_orphan_goes_with_the_last_that_ended(host: Host) -> None:
    host.run(1, 200, 10)
    host.run(2, 300, 11)
    host.start(500, GUARDIAN, start=20)
    for run_id, pid, now in ((1, 200, 1.0), (2, 300, 5.0)):
        assert 500 in host.processes
        del host.processes[pid]
        host.work.done(run_id, now)
        host.pass_time(now + 0.5)
        assert 500 in host.processes  # its last words
        host.pass_time(now + 3)
    assert 500 not in host.processes
    assert host.work.next_deadline() == NEVER


def test_an_orphan_that_a_child_which_is_no_run_may_have_started_outlives_the_runs(
    host: Host,
) -> None:
    host.start(150, NODE, start=5)
    host.run(1, 200, 10)
    host.start(500, GUARDIAN, start=20)
    del host.processes[200]
    host.work.done(1, 1.0)
    host.pass_time(9)
    assert 500 in host.processes


def test_the_screen_in_the_guardians_own_group_may_have_started_no_orphan(host: Host) -> None:
    host.start(150, NODE, start=5, group=GUARDIAN)
    host.run(1, 200, 10)
    host.start(500, GUARDIAN, start=20)
    del host.processes[200]
    host.work.done(1, 1.0)
    host.pass_time(9)
    assert 500 not in host.processes
    assert 150 in host.processes


def test_a_living_leader_that_keeps_its_orphans_has_none_at_the_guardian(host: Host) -> None:
    host.run(1, 200, 10, keeps_orphans=True)
    host.start(500, GUARDIAN, start=20)
    host.start(501, 200, start=21)
    host.work.move(1, NEVER, 0)
    host.pass_time(1)
    assert sorted(host.processes) == [1, GUARDIAN, NODE, 500]


def test_an_orphan_of_a_leader_that_has_died_is_its_work(host: Host) -> None:
    host.run(1, 200, 10, keeps_orphans=True)
    host.start(500, GUARDIAN, start=20)
    host.start(200, NODE, start=10, state="Z")
    host.work.move(1, 0, NEVER)
    host.pass_time(1)
    assert host.stopped() == [500]


def test_what_was_held_for_an_ended_run_and_may_be_anothers_goes_on(host: Host) -> None:
    host.run(1, 200, 10)
    host.run(2, 300, 11)
    host.start(500, GUARDIAN, start=20)
    host.work.move(1, 0, NEVER)
    host.pass_time(1)
    assert 500 in host.stopped()
    del host.processes[200]
    host.work.done(1, 1.0)
    host.pass_time(5)
    assert 500 in host.processes
    assert host.stopped() == []


def test_a_pid_that_was_given_anew_leads_no_run(host: Host) -> None:
    host.run(1, 200, 10)
    host.start(200, NODE, start=50)
    host.start(201, 200, start=51, group=200)
    host.work.move(1, 0, 0)
    host.pass_time(1)
    assert host.sent == []
    assert host.said[-1] == (link.KILLED, 1)


def test_a_group_whose_leader_has_ended_is_still_the_runs(host: Host) -> None:
    host.run(1, 200, 10)
    host.start(201, GUARDIAN, start=12, group=200)
    del host.processes[200]
    host.work.move(1, 0, NEVER)
    host.pass_time(1)
    assert host.stopped() == [201]


def test_children_are_killed_before_their_parents(host: Host) -> None:
    host.run(1, 200, 10)
    host.start(201, 200, start=11)
    host.start(202, 201, start=12)
    host.work.move(1, NEVER, 0)
    host.pass_time(1)
    assert [pid for pid, number in host.sent if number == SIGKILL] == [202, 201, 200]


def test_a_zombie_counts_as_dead_but_not_while_another_of_its_threads_runs(host: Host) -> None:
    host.run(1, 200, 10)
    host.start(200, NODE, start=10, state="Z")
    host.work.move(1, 0, 0)
    host.pass_time(1)
    assert host.said[-1] == (link.KILLED, 1)
    fields = ["Z", NODE, 300, 300, *[0] * 13, 2, 0, 10]
    assert not Process(300, f"300 (x) {' '.join(map(str, fields))}".encode()).is_dead


def test_what_cannot_be_killed_is_not_reported_as_killed(host: Host) -> None:
    host.run(1, 200, 10)
    host.work.move(1, 0, 0)
    host.is_stuck = True
    for now in range(1, 100):
        host.work.freeze_due(now)
        host.work.settle(now)
    assert (link.KILLED, 1) not in host.said
    assert 99 < host.work.next_deadline() <= 100  # looked at once a second, and no more


def test_while_proc_cannot_be_read_runs_stay_due(host: Host) -> None:
    host.run(1, 200, 10)
    host.work.move(1, 0, NEVER)
    host.is_readable = False
    host.work.freeze_due(1)
    assert host.said == []
    assert 1 < host.work.next_deadline() < 1.1
    host.is_readable = True
    host.work.freeze_due(host.work.next_deadline())
    assert host.stopped() == [200]


def test_forking_faster_than_one_looks_does_not_hold_up_the_guardian(host: Host) -> None:
    host.run(1, 200, 10)
    host.bomb = itertools.count(1000)
    host.work.move(1, 0, NEVER)
    host.work.freeze_due(1)  # comes to an end
    assert host.said == []  # but is not done
    host.bomb = None
    host.work.freeze_due(1)
    assert host.said == [(link.FROZEN, 1)]


def test_a_run_half_frozen_and_revived_is_thawed_in_silence(host: Host) -> None:
    host.run(1, 200, 10)
    host.bomb = itertools.count(1000)
    host.work.move(1, 0, NEVER)
    host.work.freeze_due(1)
    host.work.move(1, NEVER, NEVER)
    host.work.settle(1)
    assert host.stopped() == []
    assert host.said == []


def test_more_runs_than_can_be_guarded_are_refused(host: Host) -> None:
    for run_id in range(work.RUNS_MAX):
        assert host.work.watch(run_id, Leader(10_000 + run_id, 1), NEVER, NEVER)
    assert not host.work.watch(work.RUNS_MAX, Leader(9_000, 1), NEVER, NEVER)
    assert host.said == [(link.REFUSED, work.RUNS_MAX)]


def test_a_run_that_is_told_twice_takes_the_later_deadlines(host: Host) -> None:
    host.run(1, 200, 10)
    assert host.work.watch(1, Leader(200, 10), 3.0, 4.0)
    assert host.work.next_deadline() == 3.0
    assert not host.work.watch(1, Leader(201, 11), 1.0, 1.0)


def test_a_thaw_continues_what_was_stopped_and_only_that(host: Host) -> None:
    host.run(1, 200, 10)
    host.start(201, 200, start=11, state="T")
    host.work.move(1, 0, NEVER)
    host.pass_time(1)
    host.work.move(1, NEVER, NEVER)
    host.work.settle(2)
    assert [pid for pid, number in host.sent if number == SIGCONT] == [200]
    assert host.stopped() == [201]
