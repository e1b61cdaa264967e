"""Standard streams that are closed, full, broken or cannot show a character, and words that are no text."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mesh.fleet.fleet import Fleet, NodeProcess

LINE_TIMEOUT_S = 30.0


def run(*arguments: str, tail: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `mesh …` from a shell, with redirections."""
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {tail}', "sh", sys.executable, "-m", "mesh", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="backslashreplace",
        timeout=LINE_TIMEOUT_S,
        check=False,
        env={**os.environ, **environment},
    )


def assert_one_line(done: subprocess.CompletedProcess[str], code: int) -> None:
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith("mesh: ")
    assert done.stderr.count("\n") == 1


@pytest.fixture(scope="module")
def node(shared_fleet: Fleet) -> NodeProcess:
    return shared_fleet.start("steady")


@pytest.mark.parametrize("flag", ["--name", "--label", "--pool", "--class", "--offer"])
def test_bytes_that_are_no_text_are_wrong_usage(tmp_path: Path, flag: str) -> None:
    word = {"--label": "\udce9=1", "--offer": "\udce9=1"}.get(flag, "\udce9")
    join = ("join", "--headless", "--bind", "127.0.0.1:0", "--data", str(tmp_path / "n"))
    assert_one_line(run(*join, f"{flag}={word}"), 2)


@pytest.mark.parametrize("flag", ["--id", "--queue", "--key", "--pool", "--class"])
def test_bytes_that_are_no_text_describe_no_task(node: NodeProcess, flag: str) -> None:
    data = ("--data", str(node.data))
    assert_one_line(run("submit", *data, f"{flag}=\udce9", "--", "true"), 2)
    assert_one_line(run("submit", *data, "--", "echo", "\udce9"), 2)


@pytest.mark.parametrize(
    "words",
    [
        ("--id", "x" * 200, "--", "true"),
        ("--queue", "x" * 200, "--", "true"),
        ("--key", "x" * 200, "--", "true"),
        ("--cwd", "/" + "x" * 6_000, "--", "true"),
        ("--", ""),
        ("--", *["x"] * 5_001),
    ],
)
def test_a_task_that_cannot_be_is_wrong_usage(node: NodeProcess, words: tuple[str, ...]) -> None:
    assert_one_line(run("submit", "--data", str(node.data), *words), 2)


@pytest.mark.parametrize(
    "command",
    [
        ("members", "--data", "~nobody_here/x"),
        ("join", "--headless", "--data", "~nobody_here/x"),
        ("demo", "~nobody_here/x"),
    ],
)
def test_a_home_that_nobody_has_is_wrong_usage(command: tuple[str, ...]) -> None:
    assert_one_line(run(*command), 2)


def test_a_working_directory_in_a_home_that_nobody_has_is_wrong_usage(node: NodeProcess) -> None:
    cwd = ("--cwd", "~nobody_here/x")
    assert_one_line(run("submit", "--data", str(node.data), *cwd, "--", "true"), 2)


def test_a_directory_whose_name_is_no_text_holds_a_node(fleet: Fleet) -> None:
    node = fleet.launch("odd", "--data", str(fleet.home / "odd\udce9"))
    node.data = fleet.home / "odd\udce9"
    node.wait_ready()
    status = json.loads(run("status", "--json", "--data", str(node.data)).stdout)
    assert status["data"].endswith("odd\\xe9")


@pytest.mark.parametrize("tail", [">&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_fault(node: NodeProcess, tail: str) -> None:
    data = ("--data", str(node.data))
    for command in (("members", *data), ("submit", "--wait", *data, "--", "echo", "out")):
        done = run(*command, tail=tail)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = run("sim", "--nodes", "3", "--duration", "1", "--json", tail=tail)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("tail", [">&-", "<&- >&- 2>&-"])
def test_a_node_without_streams_works_and_leaves_in_peace(tmp_path: Path, tail: str) -> None:
    data = ("--data", str(tmp_path / "n"))
    join = [sys.executable, "-m", "mesh", "join", "--headless", "--bind", "127.0.0.1:0", *data]
    node = subprocess.Popen(
        ["sh", "-c", f'exec "$@" {tail}', "sh", *join],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while run("status", *data).returncode == 3:
            assert node.poll() is None
        assert run("submit", "--wait", *data, "--", "echo", "out").stdout == "out\n"
        assert run("leave", *data).returncode == 0
        assert node.wait(LINE_TIMEOUT_S) == 0
    finally:
        if node.poll() is None:
            node.kill()
            node.wait()


def test_a_full_disk_behind_stdout_is_one_line(node: NodeProcess) -> None:
    assert_one_line(run("members", "--data", str(node.data), tail="> /dev/full"), 1)


def test_an_argument_that_stdout_cannot_show_is_shown_as_its_escape(node: NodeProcess) -> None:
    data = ("--data", str(node.data))
    assert run("submit", "--wait", *data, "--", "echo", "naïve", "x" * 80).returncode == 0
    for encoding in ("ascii", "latin-1"):
        done = run("tasks", *data, PYTHONIOENCODING=encoding, PYTHONUTF8="0")
        assert (done.returncode, done.stderr) == (0, "")
        assert "\\u2026" in done.stdout  # the ellipsis is ours
