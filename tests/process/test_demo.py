"""The demo from outside: its exit code, its story, and that nothing is left of it."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from mesh.fleet.clearing import marked_pids, wait_until

Start: TypeAlias = Callable[..., subprocess.Popen[bytes]]

WHOLE_TIMEOUT_S = 60.0
PROMISED_S = 45.0
VARIABLE = "MESH_TEST_RUN"


class Stage:
    """An environment whose every process and every temporary file is found again."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.mark = f"{os.getpid()}-{home.name}"
        self.environment = {**os.environ, "TMPDIR": str(home), VARIABLE: self.mark}

    def assert_clear(self) -> None:
        wait_until(
            lambda: marked_pids(self.mark, VARIABLE) == [] or None,
            5.0,
            lambda: AssertionError(f"still running: {marked_pids(self.mark, VARIABLE)}"),
        )
        assert list(self.home.iterdir()) == []


@pytest.fixture
def stage() -> Iterator[Stage]:
    with tempfile.TemporaryDirectory(prefix="mt-") as home:
        yield Stage(Path(home))


def test_demo_kills_a_node_and_every_result_is_right(start: Start, stage: Stage) -> None:
    demo = start("demo", "--files", "600", env=stage.environment)
    out, errors = demo.communicate(timeout=WHOLE_TIMEOUT_S)
    story = out.decode()
    print(story)
    assert (demo.returncode, errors) == (0, b"")
    for part in ("killed gamma", "alpha noticed", "beta noticed", "every one is right", "600, "):
        assert part in story
    stage.assert_clear()


@pytest.mark.parametrize(
    ("number", "moment"),
    [
        (signal.SIGINT, b"runs as process"),
        (signal.SIGINT, b"tasks submitted"),
        (signal.SIGINT, b"killed gamma"),
        (signal.SIGTERM, b"tasks submitted"),
        (signal.SIGHUP, b"runs as process"),
    ],
)
def test_demo_that_is_stopped_leaves_nothing(
    start: Start, stage: Stage, number: signal.Signals, moment: bytes
) -> None:
    demo = start("demo", "--files", "600", env=stage.environment)
    assert demo.stdout is not None
    for line in demo.stdout:
        if moment in line:
            break
    demo.send_signal(number)
    assert demo.wait(20.0) == 128 + number
    assert demo.stderr is not None
    assert demo.stderr.read() == b""
    stage.assert_clear()


@pytest.mark.sweep
def test_demo_of_an_own_directory_keeps_what_it_is_told_to(start: Start, stage: Stage) -> None:
    work = stage.home / "work"
    work.mkdir()
    for number in range(240):
        (work / f"file {number}.txt").write_bytes(os.urandom(40_000))
    (work / "link").symlink_to("file 1.txt")
    demo = start("demo", str(work), "--keep", env=stage.environment)
    out, _ = demo.communicate(timeout=WHOLE_TIMEOUT_S)
    assert demo.returncode == 0, out.decode()
    assert "files        240, 9.6 MB" in out.decode()
    kept = [path for path in stage.home.iterdir() if path != work]
    assert len(kept) == 1
    assert (kept[0] / "gamma.log").exists()
    assert marked_pids(stage.mark, VARIABLE) == []


def test_demo_of_an_empty_directory_is_wrong_usage(start: Start, stage: Stage) -> None:
    demo = start("demo", str(stage.home), env=stage.environment)
    out, errors = demo.communicate(timeout=20.0)
    assert (demo.returncode, out) == (2, b"")
    assert errors.startswith(b"mesh: a directory with readable files is expected, found none")
    stage.assert_clear()


@pytest.mark.parametrize("count", [1, pytest.param(30, marks=pytest.mark.sweep)])
def test_demo_of_a_few_tiny_files_is_played_to_its_end(
    start: Start, stage: Stage, tmp_path: Path, count: int
) -> None:
    for number in range(count):
        (tmp_path / f"{number}.txt").write_text("tiny")
    began = time.monotonic()
    demo = start("demo", str(tmp_path), env=stage.environment)
    out, errors = demo.communicate(timeout=WHOLE_TIMEOUT_S)
    story = out.decode()
    assert (demo.returncode, errors) == (0, b""), story
    assert time.monotonic() - began < PROMISED_S
    assert f"files        {count}, " in story
    assert "every one is right" in story
    if count == 30:
        assert "because gamma was lost (crash)" in story
    stage.assert_clear()


@pytest.mark.sweep
def test_demo_of_more_than_there_is_time_for_is_cut_short(
    start: Start, stage: Stage, tmp_path: Path
) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(20_000_000_000)  # sparse: no disk, but an hour of compressing
    began = time.monotonic()
    demo = start("demo", str(tmp_path), env=stage.environment)
    out, errors = demo.communicate(timeout=WHOLE_TIMEOUT_S)
    story = out.decode()
    assert time.monotonic() - began < PROMISED_S
    assert (demo.returncode, errors) == (1, b""), story
    assert "cut short    1 tasks" in story
    assert "none: no task ended in time" in story
    stage.assert_clear()
