"""The checker of real runs accuses each kind of wrong, and nothing else."""

from __future__ import annotations

import ast
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.process.checker import KINDS
from tests.process.planted_log import CHECKER, EVERY, Story, check

RECORDER = Path(__file__).with_name("recorder.py")


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


def test_a_clean_log_passes(story: Story) -> None:
    for index in range(5):
        story.accepted(f"t{index}")
        story.run(1, 0, 3, task=f"t{index}")
    story.ack("submitted", task="never answered")
    report = story.check()
    assert report["violations"] == []
    assert report["tasks"] == {"submitted": 6, "acknowledged": 5}
    assert report["told"] == {"done": 5}
    assert (report["runs"], report["ended"]) == (5, 5)
    assert report["extra_runs"] == {"count": 0, "causes": {}, "tasks": {}}


@pytest.mark.parametrize(
    ("state", "is_lost"), [("", True), ("done", True), ("failed", False), ("cancelled", False)]
)
def test_an_acknowledged_task_without_a_good_end_is_lost_unless_its_client_was_told(
    story: Story, state: str, is_lost: bool
) -> None:
    story.accepted(state=state)
    story.run(1, 0, 2, end="")
    assert story.kinds() == ({"lost"} if is_lost else set())


def test_an_acknowledged_task_that_never_ran_is_lost(story: Story) -> None:
    story.accepted("ran")
    story.run(1, 0, 2, task="ran")
    story.accepted("never")
    (violation,) = story.check()["violations"]
    assert (violation["kind"], violation["task"]) == ("lost", "never")
    assert [line["number"] for line in violation["lines"]] == [5, 6]


def test_a_task_that_failed_and_whose_client_was_told_done_is_lost(story: Story) -> None:
    story.accepted()
    story.run(1, 0, 2, end="failed")
    assert story.kinds() == {"lost"}


def test_two_good_ends_without_a_cause_are_a_duplicate(story: Story) -> None:
    story.accepted()
    story.run(1, 0, 2)
    story.run(2, 1000, 2)
    story.cause(1, "first")
    report = story.check()
    assert {each["kind"] for each in report["violations"]} == {"duplicated", "unexplained"}
    (duplicate,) = (each for each in report["violations"] if each["kind"] == "duplicated")
    assert [line["number"] for line in duplicate["lines"]] == [5, 10]


def test_extra_runs_with_a_cause_are_counted_and_not_accused(story: Story) -> None:
    story.accepted()
    for token, cause, end in ((1, "first", ""), (2, "lapse", "end"), (3, "crash", "end")):
        story.run(token, token * 1000, 2, end=end)
        story.cause(token, cause)
    report = story.check()
    assert report["violations"] == []
    assert report["extra_runs"] == {
        "count": 2,
        "causes": {"lapse": 1, "crash": 1},
        "tasks": {"t": 2},
    }
    assert story.check("--no-extra")["counts"] == {
        **dict.fromkeys(KINDS, 0),
        "unexplained": 2,
        "duplicated": 1,
    }


def test_an_extra_run_that_the_mesh_knows_no_cause_of_is_accused(story: Story) -> None:
    story.accepted()
    story.run(1, 0, 2, end="")
    story.run(2, 1000, 2)
    assert story.kinds() == {"unexplained"}
    story.cause(2, "first")
    assert story.kinds() == {"unexplained"}
    story.cause(2, "crash")
    assert story.kinds() == set()


def replaced(story: Story, log: list[tuple[str, str, float, int]]) -> dict[str, Any]:
    """Judge two runs of one task, of which the second has a cause."""
    story.accepted()
    story.cause(2, "lapse")
    for line in log:
        story.line(*line)
    return story.check()


def test_two_runs_at_one_time_overlap(story: Story) -> None:
    report = replaced(
        story,
        [
            ("a", "start", 0, 1),
            ("a", "heartbeat", 50, 1),
            ("b", "start", 70, 2),
            ("a", "heartbeat", 100, 1),
            ("b", "heartbeat", 120, 2),
            ("b", "end", 121, 2),
        ],
    )
    kinds = {each["kind"]: each for each in report["violations"]}
    assert kinds.keys() == {
        "overlapping",
        "out_of_order",
    }  # who overlaps writes after the other's start
    assert "both ran for 30.000 ms" in kinds["overlapping"]["text"]
    assert [line["number"] for line in kinds["overlapping"]["lines"]] == [1, 4, 3, 6]
    assert [line["number"] for line in kinds["out_of_order"]["lines"]] == [4]


def test_a_frozen_run_does_not_overlap_with_one_in_its_gap(story: Story) -> None:
    gap = 2 * EVERY + 1
    report = replaced(
        story,
        [
            ("a", "start", 0, 1),
            ("b", "start", 20, 2),
            ("b", "end", 40, 2),
            ("a", "heartbeat", gap, 1),
        ],
    )
    assert {each["kind"] for each in report["violations"]} == {"out_of_order"}


def test_a_heartbeat_that_is_late_by_one_interval_shows_that_the_run_ran(story: Story) -> None:
    report = replaced(
        story,
        [
            ("a", "start", 0, 1),
            ("b", "start", 20, 2),
            ("b", "end", 40, 2),
            ("a", "heartbeat", 2 * EVERY, 1),
        ],
    )
    assert {each["kind"] for each in report["violations"]} == {"out_of_order", "overlapping"}


def test_a_single_sign_within_another_run_overlaps(story: Story) -> None:
    report = replaced(
        story,
        [
            ("a", "start", 0, 1),
            ("b", "start", 1000, 2),
            ("a", "heartbeat", 1025, 1),
            ("b", "heartbeat", 1050, 2),
            ("b", "end", 1051, 2),
        ],
    )
    assert {each["kind"] for each in report["violations"]} == {"out_of_order", "overlapping"}


def test_the_order_of_the_log_counts_and_not_the_time_at_which_a_line_was_begun(
    story: Story,
) -> None:
    """A run frozen between its clock and its write did not overlap, but it did write too late."""
    report = replaced(
        story,
        [
            ("a", "start", 0, 1),
            ("b", "start", 1000, 2),
            ("a", "heartbeat", 50, 1),
            ("b", "end", 1001, 2),
        ],
    )
    assert {each["kind"] for each in report["violations"]} == {"out_of_order"}


@pytest.mark.parametrize("token", [1, 2])
def test_a_start_without_a_higher_token_is_out_of_order(story: Story, token: int) -> None:
    story.accepted()
    story.run(2, 0, 2, end="")
    story.run(token, 1000, 0, end="")
    story.run(3, 2000, 2)
    for each in (2, 3):
        story.cause(each, "crash")
    report = story.check()
    (violation,) = report["violations"]
    assert violation["kind"] == "out_of_order"
    assert violation["lines"][0]["number"] == 4


def test_a_write_of_a_run_that_was_replaced_is_a_stale_write(story: Story) -> None:
    report = replaced(
        story,
        [
            ("a", "start", 0, 1),
            ("b", "start", 1000, 2),
            ("b", "end", 1001, 2),
            ("a", "write", 2000, 1),
        ],
    )
    (violation,) = report["violations"]
    assert violation["kind"] == "stale_write"
    assert violation["lines"][0]["number"] == 4


def test_tokens_of_two_tasks_are_not_compared(story: Story) -> None:
    for task, token in (("s", 9), ("t", 1)):
        story.accepted(task)
        story.run(token, 0, 2, task=task)
    assert story.kinds() == set()


def test_a_run_that_nobody_submitted_is_accused(story: Story) -> None:
    story.accepted()
    story.run(1, 0, 2)
    story.run(1, 0, 2, task="of nobody")
    assert story.kinds() == {"unsubmitted"}


def test_a_start_after_the_end_was_told_is_accused(story: Story) -> None:
    story.accepted(at=500)
    story.run(1, 0, 2)
    story.run(2, 501, 2, end="failed")
    story.cause(2, "crash")
    assert story.kinds() == {"revived"}


def test_two_ends_told_are_a_contradiction(story: Story) -> None:
    story.accepted()
    story.run(1, 0, 2)
    story.ack("told", 20_000, state="failed")
    assert story.kinds() == {"contradicted"}


DAMAGE = [
    '{"at_ns": 1, "kind": "he',
    '{"at_ns": 1, "ki{"at_ns": 1, "kind": "heartbeat", "task": "t", "token": "1", "run": "t/0", "node": "n"}',
    "", "[]", "null", "x", "[" * 100_000, '"\\ud800"', "{}", "\x00\x00",
    '{"at_ns": Infinity, "kind": "end", "task": "t", "token": 1, "run": "t/0", "node": "n"}',
    '{"at_ns": 1, "kind": [], "task": {}, "token": 1, "run": "t/0", "node": "n"}',
    '{"at_ns": 1, "kind": "told", "task": "t", "state": []}',
    '{"at_ns": 1, "kind": "start", "task": "t", "token": 1, "run": "new", "node": "n", "every_ns": 0}',
]  # fmt: skip


@pytest.mark.parametrize("file", ["log", "acks"])
@pytest.mark.parametrize("damage", DAMAGE, ids=range(len(DAMAGE)))
def test_a_damaged_line_is_accused_and_the_rest_is_judged(
    story: Story, file: str, damage: str
) -> None:
    story.accepted()
    story.run(1, 0, 2)
    getattr(story, file).insert(1, damage)
    (violation,) = story.check()["violations"]
    assert violation["kind"] == "malformed"
    assert [(line["file"], line["number"]) for line in violation["lines"]] == [(file, 2)]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (("z", "heartbeat", 120), "without a start"),
        (("t/0", "start", 120), "started twice"),
        (("t/0", "heartbeat", 120), "after its end"),
        (("t/0", "fly", 120), "no kind of line"),
        (("t/0", "heartbeat", 120, 2), "changed its task or its token"),
    ],
)
def test_a_line_that_does_not_fit_its_run_is_accused(
    story: Story, line: tuple[str, str, float], why: str
) -> None:
    story.accepted()
    story.run(1, 0, 2)
    story.line(*line)
    (violation,) = story.check()["violations"]
    assert violation["kind"] == "malformed"
    assert why in violation["text"]


def test_a_clock_that_goes_back_is_accused(story: Story) -> None:
    story.accepted()
    story.line("a", "start", 100)
    story.line("a", "end", 99)
    assert story.kinds() == {"malformed", "lost"}


def test_a_torn_last_line_is_reported_and_not_accused(story: Story) -> None:
    story.accepted()
    story.run(1, 0, 2)
    story.check()
    log = story.place / "log"
    whole = log.read_text()
    log.write_text(whole + '{"at_ns": 1, "kind": "hea')
    report = check(log, story.place / "acks", code=0)
    assert [line["number"] for line in report["torn"]] == [6]
    log.write_text(whole.removesuffix("\n"))  # all is there but the end of the line
    assert check(log, story.place / "acks", code=0)["torn"] == []


def test_no_bytes_bring_the_checker_down(story: Story) -> None:
    rng = random.Random(1)
    story.accepted()
    for token in range(20):
        story.run(token, token * 1000, 5)
    story.check()
    log, acks = story.place / "log", story.place / "acks"
    good = log.read_bytes(), acks.read_bytes()
    for _ in range(20):
        for place, content in zip((log, acks), good, strict=True):
            bytes_now = bytearray(content)
            for _ in range(rng.randrange(1, 40)):
                bytes_now[rng.randrange(len(bytes_now))] = rng.randrange(256)
            place.write_bytes(bytes_now)
        check(log, acks)


def test_where_nothing_was_acknowledged_nothing_is_proved(story: Story, tmp_path: Path) -> None:
    assert story.check(code=2)["violations"] == []
    for command in ([], ["--fly"], [tmp_path / "no", tmp_path / "no"]):
        done = subprocess.run([sys.executable, CHECKER, *command], capture_output=True, check=False)
        assert done.returncode == 2


def test_people_read_the_counts_and_the_lines_that_show_it(story: Story) -> None:
    story.accepted()
    story.run(1, 0, 2)
    story.run(2, 1000, 2)
    done = subprocess.run(
        [sys.executable, CHECKER, *(story.check() and (story.place / "log", story.place / "acks"))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert (
        "tasks: 1 submitted, 1 acknowledged, 1 told done\nruns: 2, of which 2 came to a good end\n"
        in done.stdout
    )
    assert "extra runs: 1 of 1 tasks (none 1)\n    t: 1\n" in done.stdout
    assert "lost 0, duplicated 1, unexplained 1, overlapping 0, " in done.stdout
    assert "\nduplicated: t: 2 runs came to a good end\n    log:5 {" in done.stdout


def test_two_thousand_tasks_of_dozens_of_lines_take_less_than_a_second(story: Story) -> None:
    for index in range(2_000):
        task = f"task-{index}"
        story.accepted(task, at=1e9)
        story.run(1, index, 33, task=task, end="" if index % 10 == 0 else "end")
        if index % 10 == 0:
            story.run(2, index + 10_000, 33, task=task)
            story.cause(2, "crash", task)
    begin = os.times()
    report = story.check()
    end = os.times()
    print(
        f"{len(story.log)} lines: {end.children_user - begin.children_user:.2f} s of processor time"
    )
    assert report["violations"] == []
    assert report["extra_runs"]["count"] == 200
    assert end.children_user - begin.children_user < 1.0


def test_the_checker_knows_nothing_of_mesh_and_needs_nothing_installed() -> None:
    for program in (CHECKER, RECORDER):
        found = set()
        for node in ast.walk(ast.parse(program.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add(str(node.module).partition(".")[0])
        assert found <= sys.stdlib_module_names
