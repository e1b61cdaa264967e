"""Real nodes run real tasks while something breaks: the small form of `python -m bench.faults`, and its judgement.

The judge must be able to say no: what it makes of a log with a planted violation is tested here, too.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.faults.__main__ import main, missing, parse
from bench.faults.acts import FAULTS
from bench.faults.scene import Size, run
from bench.faults.tail import Tail
from bench.faults.verdict import Verdict, acknowledged, is_dead_letter, judge, write_told
from tests.process.planted_log import TOKEN, Story

SMALL = Size(
    nodes=3,
    tasks=34,
    long_every=11,
    long_s=3.5,
    submit_for_s=1.5,
    times=1,
    settle_timeout_s=60.0,
)


def play(name: str, size: Size = SMALL) -> Verdict:
    said: list[str] = []
    verdict = run(FAULTS[name], size, seed=1, say=said.append)
    assert verdict.is_good, f"{verdict.line()}\n{verdict.violations}\n{said}"
    assert verdict.acknowledged == verdict.tasks
    assert verdict.told == {"done": verdict.acknowledged}
    assert verdict.applied == 1
    assert verdict.counts["lost"] == 0
    return verdict


def test_nothing_is_lost_or_runs_twice_unexplained_when_a_node_is_killed() -> None:
    assert play("kill_node").causes.keys() <= {"crash", "lapse"}


@pytest.mark.sweep
def test_what_an_owner_ran_that_was_stopped_past_its_lease_runs_elsewhere_and_never_at_one_time() -> (
    None
):
    verdict = play("stop_owner")
    assert verdict.extra >= 1, "it was stopped while it ran tasks: they run elsewhere"
    assert verdict.causes.keys() <= {"lapse"}


@pytest.mark.sweep
def test_a_task_that_two_clients_submit_at_once_under_one_id_runs_once() -> None:
    verdict = play("same_key_twice")
    assert verdict.extra == 0


def test_a_tail_knows_which_nodes_are_busy_and_reads_no_line_that_is_not_whole(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    tail = Tail(log)
    tail.read()
    assert tail.busy_pids() == set()
    start = {"kind": "start", "at_ns": 1, "task": "t", "attempt": "1", "token": "7"}
    first = json.dumps({**start, "run": "a", "node": "pid 10"})
    second = json.dumps({**start, "run": "b", "node": "pid 11", "attempt": "2", "token": "8"})
    end = json.dumps({"kind": "end", "at_ns": 3, "task": "t", "run": "a"})
    log.write_text(f"{first}\n{second[:20]}")
    tail.read()
    assert tail.busy_pids() == {10}
    assert tail.busy_pids({"other"}) == set()
    with log.open("a") as file:
        file.write(f"{second[20:]}\n{end}\n")
    tail.read()
    assert (tail.busy_pids(), tail.done) == ({11}, {"t"})
    assert [start.token for start in tail.starts] == ["7", "8"]


def test_an_attempt_whose_token_nobody_wrote_down_is_explained_by_its_number(
    tmp_path: Path,
) -> None:
    log, acks = tmp_path / "log", tmp_path / "acks"
    lines: list[dict[str, object]] = [
        {"kind": "start", "run": "a", "token": "5", "attempt": "1", "every_ns": 10**7},
        {"kind": "start", "run": "b", "token": "6", "attempt": "2", "every_ns": 10**7},
        {"kind": "start", "run": "c", "token": "9", "attempt": "3", "every_ns": 10**7},
        {"kind": "end", "run": "c", "token": "9"},
    ]
    log.write_text(
        "".join(
            json.dumps({"at_ns": number * 10**9, "task": "t", "node": "pid 1", **line}) + "\n"
            for number, line in enumerate(lines)
        )
    )
    acks.write_text(json.dumps({"at_ns": 0, "kind": "acknowledged", "task": "t"}) + "\n")
    tail = Tail(log)
    tail.read()
    attempts = [
        {"number": 1, "token": None, "cause": "first"},
        {"number": 2, "token": None, "cause": "lapse"},
        {"number": 3, "token": "9", "cause": "crash"},
    ]
    write_told(acks, [{"id": "t", "state": "done", "attempts": attempts}], tail.starts)
    report = judge(log, acks, is_extra_wrong=False)
    assert report["violations"] == []
    assert report["extra_runs"]["causes"] == {"lapse": 1, "crash": 1}
    assert acknowledged(acks) == ["t"]


def test_a_verdict_tells_every_kind_of_violation(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.accepted(state="")
    story.run(1, 0, 3, end="")
    story.run(2, 50, 3, end="")
    story.cause(2, "lapse")
    report = story.check()
    verdict = Verdict(
        fault="planted",
        applied=1,
        tasks=1,
        acknowledged=1,
        counts=report["counts"],
        extra=report["extra_runs"]["count"],
        causes=report["extra_runs"]["causes"],
        unsettled=("t",),
    )
    assert not verdict.is_good
    line = verdict.line()
    assert "lost 1" in line
    assert "overlapping 1" in line
    assert "extra runs 1 (lapse 1)" in line
    assert "UNSETTLED 1" in line
    assert str(TOKEN + 2) in str(report["violations"])


def test_a_task_that_failed_is_a_dead_letter_only_if_its_last_attempts_were_lost() -> None:
    lost, killed = {"exit_code": None}, {"exit_code": 137}
    assert is_dead_letter({"state": "failed", "attempts": [lost, lost, lost]})
    assert not is_dead_letter({"state": "failed", "attempts": [lost, lost, killed]})
    assert not is_dead_letter({"state": "failed", "attempts": [lost, lost]})
    assert not is_dead_letter({"state": "done", "attempts": [lost, lost, lost]})


def test_faults_are_named_and_unknown_ones_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert [name for name, fault in FAULTS.items() if name != fault.name] == []
    with pytest.raises(SystemExit):
        parse(["no_such_fault"])
    assert "no fault is called no_such_fault" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([])
    assert missing(FAULTS["kill_node"]) == ""
