"""The parts of `mesh demo`: what it surveys, how it spins out its work, what it checks."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any, cast

import pytest

from mesh.demo import survey as survey_module
from mesh.demo.demo import Run, collect_results
from mesh.demo.display import Lines
from mesh.demo.job import Digest, counted_lines, main
from mesh.demo.screen import merged
from mesh.demo.summary import Story, Verdict, judge, summary_text
from mesh.demo.survey import Survey, survey
from mesh.demo.witness import Collector
from mesh.errors import ConfigError
from mesh.fleet.fleet import Fleet

STORY = Story(
    victim="gamma",
    interrupted=1,
    cut_off=0,
    notices_ms={"alpha": 10.0, "beta": 12.0},
    accused=(),
    took_s=1.0,
)


@pytest.fixture
def work(tmp_path: Path) -> Survey:
    for name in ("a.txt", "b/c.bin", "b/d"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(name.encode() * 1000)
    return survey(tmp_path, None)


def finished(task_id: str, *nodes: str, state: str = "done") -> dict[str, Any]:
    attempts = [{"node": node, "cause": "crash" if i else "first"} for i, node in enumerate(nodes)]
    code = 0 if state == "done" else 1
    return {
        "id": task_id, "state": state, "cause": "", "attempts": attempts, "result": {"exit_code": code},
    }  # fmt: skip


def verdict_of(work: Survey, digests: list[Digest], *tasks: dict[str, Any]) -> Verdict:
    return judge(work, digests, tasks, STORY)


def test_survey_takes_regular_files_in_order_and_batches_them(
    work: Survey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to("a.txt")
    assert work.names == ("a.txt", "b/c.bin", "b/d")
    assert work.batches == (("a.txt",), ("b/c.bin",), ("b/d",))  # few files: a task for each
    assert not work.has_more
    less = survey(tmp_path, 2)
    assert (less.names, less.has_more) == (("a.txt", "b/c.bin"), True)
    monkeypatch.setattr(survey_module, "BATCHES_WANTED", 1)
    assert survey(tmp_path, None).batches == (work.names,)
    monkeypatch.setattr(survey_module, "BATCH_FILES_MAX", 2)
    assert survey(tmp_path, None).batches == (("a.txt", "b/c.bin"), ("b/d",))
    monkeypatch.setattr(survey_module, "BATCH_BYTES_MAX", 6000)
    assert survey(tmp_path, None).batches == (("a.txt",), ("b/c.bin",), ("b/d",))


def test_survey_of_a_large_directory_takes_the_first_files_only(
    work: Survey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey_module, "BYTES_MAX", 6_000)
    found = survey(work.root, None)
    assert (found.names, found.has_more) == (("a.txt",), True)
    monkeypatch.setattr(survey_module, "BYTES_MAX", 10)
    assert survey(work.root, None).names == ("a.txt",)  # one at least
    monkeypatch.setattr(survey_module, "FILES_MAX", 2)
    monkeypatch.setattr(survey_module, "BYTES_MAX", 1 << 30)
    assert survey(work.root, 1_000).names == ("a.txt", "b/c.bin")


def test_work_on_few_files_is_spun_out_and_on_many_it_is_not(work: Survey) -> None:
    assert work.pace_s == survey_module.PACE_S_MAX
    many = dataclasses.replace(work, names=work.names * 600)
    assert many.pace_s == pytest.approx(survey_module.WORK_S / 1_800)


def test_survey_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="found none below"):
        survey(tmp_path, None)


def test_standard_library_has_enough_to_do() -> None:
    assert len(survey(None, None).batches) >= 10


def test_job_that_ran_twice_gives_one_digest_a_file(
    work: Survey, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["0.01", str(work.root), *work.names]) == 0
    output = capsys.readouterr().out
    lost = output[: len(output) // 2]
    found = [Digest.from_line(line) for line in counted_lines(lost + output)]
    assert [digest.name for digest in found] == list(work.names)
    data = (work.root / "a.txt").read_bytes()
    assert found[0].sha256 == hashlib.sha256(data).hexdigest()
    assert found[0].bytes == len(data) > found[0].compressed_bytes > 0


@pytest.mark.parametrize("line", ["", "x", "{}", "[1, 2]", "null"])
def test_line_that_is_no_digest_is_a_value_error(line: str) -> None:
    with pytest.raises(ValueError, match=r"expected|Expecting"):
        Digest.from_line(line)


def test_right_results_and_two_notices_are_good(work: Survey) -> None:
    digests = [Digest.of(work.root, name) for name in work.names]
    verdict = verdict_of(work, digests, finished("t1", "gamma", "beta"), finished("t2", "alpha"))
    assert verdict.is_good
    assert (verdict.tasks, verdict.attempts) == (2, 3)
    assert "t1 on beta, because gamma was lost (crash)" in summary_text(verdict)


def test_wrong_missing_doubled_and_unasked_results_are_bad(work: Survey) -> None:
    right = [Digest.of(work.root, name) for name in work.names]
    wrong = dataclasses.replace(right[0], sha256="0" * 64)
    unasked = dataclasses.replace(right[0], name="e")
    for digests in ([wrong, *right[1:]], right[1:], [*right, right[0]], [*right, unasked]):
        assert not verdict_of(work, digests, finished("t", "alpha")).is_good
    assert not verdict_of(work, right, finished("t", "alpha", state="failed")).is_good


def test_death_that_somebody_did_not_notice_is_bad(work: Survey) -> None:
    digests = [Digest.of(work.root, name) for name in work.names]
    verdict = verdict_of(work, digests, finished("t", "alpha"))
    assert verdict.is_good
    story = dataclasses.replace(STORY, notices_ms={"alpha": 3.0, "beta": None})
    silent = dataclasses.replace(verdict, story=story)
    assert not silent.is_good
    assert "beta NOT" in summary_text(silent)


def test_views_of_several_voters_show_all_tasks_together_and_each_once() -> None:
    ready, done = {"id": "1", "state": "ready"}, {"id": "2", "state": "done"}
    one = {"node": {"name": "a"}, "tasks": [ready], "task_counts": {"ready": 1}}
    two = {"node": {"name": "b"}, "tasks": [done, ready], "task_counts": {"done": 1, "ready": 1}}
    found = merged([one, two])
    assert sorted(task["id"] for task in found["tasks"]) == ["1", "2"]
    assert found["task_counts"] == {"ready": 1, "done": 1}
    assert found["node"] == {"name": "a"}


class Watcher(Lines):
    """Keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


def test_cancelled_tasks_are_not_told_as_done_and_those_that_ended_all_the_same_are(
    work: Survey,
) -> None:
    watcher, collector = Watcher(), Collector([])
    run = Run(work=work, fleet=cast("Fleet", None), display=watcher, collector=collector)
    run.batch_of = {f"batch-{n}": batch for n, batch in enumerate(work.batches)}
    run.cut_off = {"batch-1", "batch-2"}
    for number, state in enumerate(("done", "done", "cancelled")):
        task = finished(f"batch-{number}", "alpha", state=state)
        collector.finished[task["id"]], collector.output[task["id"]] = task, b""
    collect_results(run)
    assert watcher.said == ["2 of 3 tasks done", "1 of 3 tasks cut short"]
    assert run.cut_off == {"batch-2"}


def test_what_was_cut_short_is_said_and_no_result_at_all_is_bad(work: Survey) -> None:
    digests = [Digest.of(work.root, name) for name in work.names]
    verdict = verdict_of(work, digests, finished("t", "alpha"))
    assert "cut short" not in summary_text(verdict)
    cut = dataclasses.replace(verdict, story=dataclasses.replace(STORY, cut_off=7, interrupted=0))
    assert cut.is_good
    assert "cut short    7 tasks" in summary_text(cut)
    assert "tasks        1 of 8, in 1 attempts" in summary_text(cut)
    assert "killed       gamma, which interrupted no tasks" in summary_text(cut)
    nothing = judge(dataclasses.replace(work, names=(), batches=()), [], [], STORY)
    assert not nothing.is_good
    assert "no task ended in time" in summary_text(nothing)
