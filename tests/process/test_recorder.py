"""The recorder tells the whole story of a run, and is honest about crashes and freezes: the checker says so."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from mesh.fleet.clearing import wait_until
from tests.process.planted_log import check
from tests.process.recorder import append

RECORDER = Path(__file__).with_name("recorder.py")
PATIENCE_S = 20.0


class Place:
    """A log and acknowledgements of real recorders."""

    def __init__(self, place: Path) -> None:
        self.log, self.acks = place / "log", place / "acks"

    @contextmanager
    def recorder(self, task: str, token: int, *options: str) -> Iterator[subprocess.Popen[bytes]]:
        environment = {**os.environ, "MESH_TASK_ID": task, "MESH_TOKEN": str(token)}
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", RECORDER, self.log, *options], env=environment
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def wait(self, kind: str, count: int, token: int = 1) -> None:
        """Go on when a run has written so many lines of a kind."""

        def written() -> bool | None:
            lines = map(json.loads, self.log.read_text().splitlines() if self.log.exists() else [])
            mine = [line for line in lines if (line["kind"], line["token"]) == (kind, str(token))]
            return len(mine) >= count or None

        wait_until(written, PATIENCE_S, lambda: AssertionError(f"no {count} lines {kind!r}"))

    def acknowledge(self, task: str) -> None:
        append(self.acks, kind="acknowledged", task=task)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_recorder_writes_its_whole_story(place: Place) -> None:
    place.acknowledge("t")
    with place.recorder("t", 1, "--every-s", "0.01", "--for-s", "0.05", "--node", "n1") as run:
        assert run.wait(PATIENCE_S) == 0
    append(place.acks, kind="told", task="t", state="done")
    assert check(place.log, place.acks)["violations"] == []
    lines = [json.loads(line) for line in place.log.read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["start", *["heartbeat"] * 5, "write", "end"]
    assert {(line["node"], line["token"]) for line in lines} == {("n1", "1")}
    with place.recorder("t", 2, "--for-s", "0", "--exit", "3") as run:
        assert run.wait(PATIENCE_S) == 3
    assert json.loads(place.log.read_text().splitlines()[-1])["kind"] == "failed"


def test_a_killed_recorder_has_no_end(place: Place) -> None:
    place.acknowledge("t")
    with place.recorder("t", 1, "--every-s", "0.01", "--for-s", "60") as run:
        place.wait("heartbeat", 3)
        run.kill()
        run.wait()
    report = check(place.log, place.acks)
    assert [each["kind"] for each in report["violations"]] == ["lost"]
    assert (report["runs"], report["ended"], report["torn"]) == (1, 0, [])
    with place.recorder("t", 2, "--for-s", "0.05") as run:
        assert run.wait(PATIENCE_S) == 0
    append(place.acks, kind="attempt", task="t", token=2, cause="crash")
    report = check(place.log, place.acks)
    assert report["violations"] == []
    assert report["extra_runs"] == {"count": 1, "causes": {"crash": 1}, "tasks": {"t": 1}}


def test_a_recorder_that_was_stopped_did_not_overlap_and_is_seen_when_it_wakes(
    place: Place,
) -> None:
    place.acknowledge("t")
    append(place.acks, kind="attempt", task="t", token=2, cause="lapse")
    with place.recorder("t", 1, "--every-s", "0.02", "--for-s", "60") as old:
        place.wait("heartbeat", 2)
        old.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, old.pid, os.WSTOPPED | os.WNOWAIT)
        stopped = time.clock_gettime(time.CLOCK_BOOTTIME)
        with place.recorder("t", 2, "--every-s", "0.02", "--for-s", "0.2") as new:
            assert new.wait(PATIENCE_S) == 0
        assert check(place.log, place.acks)["violations"] == []
        asleep_s = time.clock_gettime(time.CLOCK_BOOTTIME) - stopped
        assert asleep_s > 0.2
        before = place.log.read_text().count('"heartbeat"')
        old.send_signal(signal.SIGCONT)
        wait_until(
            lambda: place.log.read_text().count('"heartbeat"') > before + 2 or None,
            PATIENCE_S,
            lambda: AssertionError("it did not go on"),
        )
    report = check(place.log, place.acks)
    assert {each["kind"] for each in report["violations"]} == {"out_of_order"}


def test_lines_of_many_recorders_do_not_mix(place: Place) -> None:
    tasks = [f"t{index}" for index in range(8)]
    with ExitStack() as stack:
        started = []
        for task in tasks:
            place.acknowledge(task)
            recorder = place.recorder(task, 1, "--every-s", "0.0005", "--for-s", "0.1")
            started.append(stack.enter_context(recorder))
        assert [run.wait(PATIENCE_S) for run in started] == [0] * 8
    report = check(place.log, place.acks)
    assert report["violations"] == []
    assert len(place.log.read_text().splitlines()) == 8 * 203
