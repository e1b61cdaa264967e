"""A guardian that keeps deadlines: of work that is stopped, killed, forked away, lied about."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mesh.guardian import link
from mesh.guardian.process import send
from mesh.runtime.guardian import (
    Answer,
    start_time_of,
)
from tests.process.guarded import (
    DAEMON,
    NEVER,
    PATIENCE_S,
    Guarded,
    is_alive,
    is_frozen,
    now,
    until,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the guardian is for Linux")

SOON_S = 0.15
LATE_S = 2.0
PSS_KIB_MAX = 8 * 1024


@pytest.fixture
def guardian(tmp_path: Path) -> Iterator[Guarded]:
    with Guarded(tmp_path) as guardian:
        yield guardian
    assert guardian.work() == []


def test_work_of_a_stopped_node_is_frozen_on_time_and_then_killed(guardian: Guarded) -> None:
    pids = [guardian.spawn("sleep 7001 & exec sleep 7002"), guardian.sleeper(7001)]
    freeze_at = now() + SOON_S
    guardian.watch(1, pids[0], freeze_at)
    os.kill(guardian.node_pid, signal.SIGSTOP)
    guardian.hear_until(Answer(link.FROZEN, 1))
    assert freeze_at <= now() < freeze_at + LATE_S
    until(lambda: all(map(is_frozen, pids)), "all are frozen")
    kill_at = now() + SOON_S
    guardian.node.move(1, freeze_at, kill_at)
    guardian.hear_until(Answer(link.KILLED, 1))
    assert kill_at <= now() < kill_at + LATE_S
    assert not any(map(is_alive, pids))
    assert is_alive(guardian.node_pid)


def test_a_revived_run_is_thawed(guardian: Guarded) -> None:
    pids = [guardian.spawn("sleep 7001 & exec sleep 7002"), guardian.sleeper(7001)]
    guardian.watch(1, pids[0], 0)
    guardian.hear_until(Answer(link.FROZEN, 1))
    guardian.node.move(1, NEVER, NEVER)
    guardian.hear_until(Answer(link.THAWED, 1))
    assert not any(map(is_frozen, pids))
    assert all(map(is_alive, pids))


def test_what_stopped_itself_is_not_continued_by_a_thaw(guardian: Guarded) -> None:
    leader = guardian.spawn("sh -c 'kill -STOP $$; exec sleep 7001' & exec sleep 7002")
    until(lambda: any(map(is_frozen, guardian.work())), "one has stopped itself")
    (stopped,) = filter(is_frozen, guardian.work())
    guardian.watch(1, leader, 0)
    guardian.hear_until(Answer(link.FROZEN, 1))
    guardian.node.move(1, NEVER, NEVER)
    guardian.hear_until(Answer(link.THAWED, 1))
    assert is_frozen(stopped)


def test_a_daemon_that_fled_is_frozen_thawed_and_killed(guardian: Guarded) -> None:
    guardian.watch(1, guardian.spawn(DAEMON))
    daemon = guardian.orphan(7001)
    guardian.node.move(1, 0, NEVER)
    guardian.hear_until(Answer(link.FROZEN, 1))
    until(lambda: is_frozen(daemon), "the daemon is frozen")
    guardian.node.move(1, NEVER, NEVER)
    guardian.hear_until(Answer(link.THAWED, 1))
    assert not is_frozen(daemon)
    guardian.node.move(1, NEVER, 0)
    guardian.hear_until(Answer(link.KILLED, 1))
    assert not is_alive(daemon)


def test_work_that_forks_without_end_is_stopped_too(guardian: Guarded) -> None:
    # Each generation leaves group, session and parent; four at a time.
    bomb = (
        "a=0; while :; do (setsid sleep 7001 &) ; a=$((a+1)); [ $a = 60 ] && exec sleep 7002; done"
    )
    leader = guardian.spawn(bomb)
    guardian.watch(1, leader, kill_at=now() + 0.02)
    guardian.hear_until(Answer(link.KILLED, 1))
    assert guardian.work() == []


def test_what_an_ended_run_leaves_behind_is_killed(guardian: Guarded) -> None:
    other = guardian.spawn("sleep 7003")
    guardian.watch(2, other)
    leader = guardian.spawn("setsid sh -c 'sleep 7001 & exit'; exit 5")
    guardian.watch(1, leader)
    orphan = guardian.orphan(7001)
    guardian.tell("reap", str(leader))
    # Another that lives may have started it: not while that runs.
    guardian.node.done(1)
    guardian.node.done(2)
    until(lambda: not is_alive(orphan), "the orphan is killed")


def test_an_orphan_of_another_run_is_left_alone_where_leaders_keep_theirs(
    guardian: Guarded,
) -> None:
    living = guardian.spawn("sleep 7003")
    guardian.watch(2, living, keeps_orphans=True)
    leader = guardian.spawn("setsid sh -c 'sleep 7001 & exit'; exit 5")
    guardian.watch(1, leader)
    orphan = guardian.orphan(7001)
    guardian.node.move(2, NEVER, 0)
    guardian.hear_until(Answer(link.KILLED, 2))
    assert not is_alive(living)
    assert is_alive(orphan)


def test_a_guardian_that_was_stopped_keeps_its_deadlines_first(guardian: Guarded) -> None:
    renewed, frozen, lost = (guardian.spawn(f"exec sleep {7001 + n}") for n in range(3))
    guardian.watch(1, renewed)
    guardian.watch(2, frozen)
    guardian.watch(3, lost)
    guardian.settle()
    os.kill(guardian.pid, signal.SIGSTOP)
    until(lambda: is_frozen(guardian.pid), "the guardian is stopped")
    passed = now()
    # Orders that came while it was stopped: two runs have lost their time, one has been renewed since.
    for run_id in (1, 2, 3):
        guardian.node.move(run_id, passed, passed if run_id != 2 else NEVER)
    guardian.node.move(1, NEVER, NEVER)
    os.kill(guardian.pid, signal.SIGCONT)
    guardian.hear_until(Answer(link.KILLED, 3))
    until(lambda: is_frozen(frozen), "the second is frozen")
    assert not is_alive(lost)
    assert is_alive(renewed)
    assert not is_frozen(renewed)


def test_deadlines_that_passed_in_a_pause_need_no_order(guardian: Guarded) -> None:
    frozen, lost = guardian.spawn("exec sleep 7001"), guardian.spawn("exec sleep 7002")
    at = now() + SOON_S
    guardian.watch(1, frozen, at)
    guardian.watch(2, lost, at, at)
    guardian.settle()
    os.kill(guardian.pid, signal.SIGSTOP)
    until(lambda: now() > at, "the time is over")
    os.kill(guardian.pid, signal.SIGCONT)
    guardian.hear_until(Answer(link.KILLED, 2))
    until(lambda: is_frozen(frozen), "the first is frozen")


def test_a_run_renewed_during_the_pause_is_frozen_before_that_is_read(guardian: Guarded) -> None:
    leader = guardian.spawn("exec sleep 7001")
    at = now() + SOON_S
    guardian.watch(1, leader, at)
    guardian.settle()
    os.kill(guardian.pid, signal.SIGSTOP)
    until(lambda: now() > at, "the time is over")
    guardian.node.move(1, NEVER, NEVER)
    os.kill(guardian.pid, signal.SIGCONT)
    guardian.hear_until(Answer(link.THAWED, 1))  # only what was frozen is thawed
    assert not is_frozen(leader)


def test_ctrl_z_freezes_the_work_before_the_guardian_stops(guardian: Guarded) -> None:
    leader = guardian.spawn("exec sleep 7001")
    guardian.watch(1, leader)
    os.kill(guardian.pid, signal.SIGTSTP)
    until(lambda: is_frozen(guardian.pid), "the guardian is stopped")
    until(lambda: is_frozen(leader), "the work is frozen")
    os.kill(guardian.pid, signal.SIGCONT)
    until(lambda: not is_frozen(leader), "the work goes on")


def test_a_pid_with_another_start_time_is_left_alone(guardian: Guarded) -> None:
    stranger = guardian.spawn("exec sleep 7001")
    start = start_time_of(stranger)
    assert start is not None
    guardian.node.watch(1, stranger, start - 1, 0, 0)
    guardian.node.watch(2, stranger, start + 1, 0, 0)
    guardian.hear_until(Answer(link.KILLED, 1))  # nothing of it is there
    guardian.hear_until(Answer(link.KILLED, 2))
    assert is_alive(stranger)
    assert not is_frozen(stranger)


def test_a_signal_reaches_the_process_of_this_start_time_only() -> None:
    with subprocess.Popen(["sleep", "7001"]) as child:
        start = start_time_of(child.pid)
        assert start is not None
        assert not send((child.pid, start - 1), signal.SIGKILL)
        assert is_alive(child.pid)
        assert send((child.pid, start), signal.SIGKILL)
        assert child.wait(PATIENCE_S) == -signal.SIGKILL
        assert not send((child.pid, start), signal.SIGKILL)


def test_what_is_not_below_the_guardian_is_left_alone(guardian: Guarded) -> None:
    with subprocess.Popen(["sleep", "7001"], start_new_session=True) as stranger:
        guardian.watch(1, stranger.pid, 0, 0)
        guardian.hear_until(Answer(link.KILLED, 1))
        assert is_alive(stranger.pid)
        assert not is_frozen(stranger.pid)
        stranger.kill()


def test_a_run_that_is_the_node_itself_is_refused(guardian: Guarded) -> None:
    guardian.watch(1, guardian.node_pid, 0, 0)
    assert guardian.hear() == Answer(link.REFUSED, 1)
    guardian.watch(2, guardian.pid, 0, 0)
    assert guardian.hear() == Answer(link.REFUSED, 2)
    assert not is_frozen(guardian.node_pid)


def test_garbage_costs_nothing_but_itself(guardian: Guarded) -> None:
    rng = random.Random(5)
    leader = guardian.spawn("exec sleep 7001")
    guardian.watch(1, leader)
    guardian.sock.setblocking(True)
    for size in (0, 1, 2, 9, 25, 38, 200, 5000):
        for kind in (0, 1, 2, 3, 4, 6, 200):
            guardian.sock.send((bytes((kind,)) + rng.randbytes(size))[:size])
    for times in ((float("nan"), 0.0), (1e300, -1e300), (-NEVER, NEVER)):
        guardian.sock.send(link.encode_deadline(7, *times))
    guardian.node.watch(8, 2**22, 1, 1e300, 1e301)
    guardian.sock.setblocking(False)
    guardian.node.move(1, 0, NEVER)
    guardian.hear_until(Answer(link.FROZEN, 1))
    guardian.settle()  # it still answers
    assert is_alive(leader)


def test_a_guardian_is_small_and_idle(guardian: Guarded) -> None:
    for run_id in range(1, 9):
        guardian.watch(run_id, guardian.spawn("exec sleep 7001"))
    guardian.watch(20, guardian.spawn("exec sleep 7002"), 0, 0)
    guardian.hear_until(Answer(link.KILLED, 20))
    kib = {
        line.split()[0]: int(line.split()[1])
        for line in Path(f"/proc/{guardian.pid}/smaps_rollup").read_text().splitlines()[1:]
    }
    print(f"the guardian: {kib['Pss:']} KiB PSS, {kib['Rss:']} KiB RSS")
    assert kib["Pss:"] < PSS_KIB_MAX
    guardian.settle()
    before = wakes(guardian.pid)
    end = now() + 0.5
    until(lambda: now() > end, "half a second has passed")
    assert wakes(guardian.pid) == before


def wakes(pid: int) -> list[str]:
    """Return how often a process has run and how much: an idle one does not run at all."""
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return [*times, *(line for line in status if "ctxt_switches" in line)]
