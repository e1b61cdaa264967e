"""Real shell lines: bounded in time and in what they say, and nothing of them is left."""

from __future__ import annotations

import os
import signal
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import pytest
import trio

from mesh.hooks.outcome import Outcome
from mesh.runtime import shell as module
from mesh.runtime.shell import LINE_CHARS_MAX, Shell
from tests.runtime.test_executor import is_running

Until: TypeAlias = Callable[[Callable[[], bool]], Awaitable[None]]

QUICK_S = 0.3
PATIENT_S = 20.0


async def run(line: str, timeout_s: float = PATIENT_S, **env: str) -> Outcome:
    with trio.fail_after(PATIENT_S + 5):
        return await Shell(line).run(timeout_s, env)


def pid_in(path: Path) -> int:
    return int(path.read_text())


def is_written(path: Path) -> bool:
    return path.exists() and path.read_text().endswith("\n")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("true", Outcome(is_ok=True, how="exit code 0")),
        ("echo all is well", Outcome(is_ok=True, how="exit code 0", last_line="all is well")),
        ("echo a; echo b >&2; exit 3", Outcome(is_ok=False, how="exit code 3", last_line="b")),
        ("printf 'no newline\\n\\n  \\n'", Outcome(is_ok=True, how="exit code 0", last_line="no newline")),
        ("kill -SEGV $$", Outcome(is_ok=False, how="ended by SIGSEGV")),
        ("exit 143", Outcome(is_ok=False, how="exit code 143 (SIGTERM)")),
        ("exit 255", Outcome(is_ok=False, how="exit code 255")),
    ],
)  # fmt: skip
async def test_how_it_ended_is_told_with_its_last_line(line: str, expected: Outcome) -> None:
    assert await run(line) == expected


async def test_a_command_that_does_not_exist_is_told_in_the_shell_s_words() -> None:
    found = await run("no-such-command-here --now")
    assert not found.is_ok
    assert found.how == "exit code 127"
    assert "no-such-command-here" in found.last_line
    assert found.text == f"exit code 127: {found.last_line}"


async def test_it_runs_in_this_directory_with_this_environment_and_what_is_added_and_no_input(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OWN_WORD", "kept")
    found = await run('cat; echo "$OWN_WORD $MESH_LOAD $(pwd)"', MESH_LOAD="0.93")
    assert found.last_line == f"kept 0.93 {tmp_path}"


async def test_what_it_says_last_is_printable_and_bounded() -> None:
    found = await run(r"printf '\033[2Jred\377\n'")
    assert found.last_line == "?[2Jred\ufffd"
    found = await run("head -c 100000 /dev/zero | tr '\\0' x")
    assert found.last_line == "x" * LINE_CHARS_MAX


async def test_whoever_ignores_sigterm_and_has_a_child_that_does_is_killed_on_time(
    tmp_path: Path, until: Until
) -> None:
    pids = tmp_path / "child", tmp_path / "stray"
    stray = f"setsid sh -c \"trap '' TERM HUP; echo \\$\\$ >{pids[1]}; sleep 300\" &"
    line = (
        f"trap '' TERM; (trap '' TERM; sh -c 'echo $$ >{pids[0]}; exec sleep 300') & {stray} "
        f"while [ ! -s {pids[1]} ] || [ ! -s {pids[0]} ]; do :; done; echo begun; wait; sleep 300"
    )
    found = await run(line, 1.5)
    assert found == Outcome(is_ok=False, how="took longer than 1.5 s", last_line="begun")
    await until(lambda: not any(is_running(pid_in(path)) for path in pids))


async def test_a_child_that_holds_its_output_open_does_not_hold_it_up(
    tmp_path: Path, until: Until
) -> None:
    pids = tmp_path / "child", tmp_path / "stray"
    line = (
        f"sh -c \"trap '' TERM; echo \\$\\$ >{pids[0]}; while :; do :; done\" & "
        f"setsid sh -c 'echo $$ >{pids[1]}; exec sleep 300' & "
        f"while [ ! -s {pids[0]} ] || [ ! -s {pids[1]} ]; do :; done; echo gone on"
    )
    found = await run(line)
    assert found == Outcome(is_ok=True, how="exit code 0", last_line="gone on")
    await until(lambda: not is_running(pid_in(pids[0])))
    os.kill(pid_in(pids[1]), signal.SIGKILL)  # it has left group and session: a guardian's to find


async def test_one_that_writes_without_end_costs_no_memory() -> None:
    tracemalloc.start()
    try:
        found = await run("yes all is well", 0.5)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert not found.is_ok
    assert found.how == "took longer than 0.5 s"
    assert found.last_line, "cut or whole, there is one"
    assert "all is well".startswith(found.last_line)
    assert most < 2_000_000


async def test_when_it_is_cancelled_nothing_of_it_is_left(tmp_path: Path, until: Until) -> None:
    pid = tmp_path / "pid"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run, f"sh -c 'trap \"\" TERM; echo $$ >{pid}; sleep 300'; true")
        await until(lambda: is_written(pid))
        nursery.cancel_scope.cancel()
    await until(lambda: not is_running(pid_in(pid)))


async def test_the_line_is_not_started_again_while_a_run_will_not_die(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "DEATH_S", 0.05)
    monkeypatch.setattr(module, "Tree", lambda _pid: Spared())  # as of one that hangs in the kernel
    pid = tmp_path / "pid"
    shell = Shell(f"echo $$ >{pid}; exec sleep 300")
    try:
        assert (await shell.run(QUICK_S)).how == "took longer than 0.3 s"
        undead = f"process {pid_in(pid)} of the run before was killed, and would not die"
        assert await shell.run(QUICK_S) == Outcome(is_ok=False, how=undead)
    finally:
        os.kill(pid_in(pid), signal.SIGKILL)
    assert shell._undead is not None
    shell._undead.wait()
    assert (await shell.run(QUICK_S)).how == "took longer than 0.3 s"
    os.kill(pid_in(pid), signal.SIGKILL)
    shell._undead.wait()


class Spared:
    """Kills nobody."""

    def kill(self) -> None:
        pass


async def test_a_host_that_can_start_nothing_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHELL", "/no/such/shell")
    found = await run("true")
    assert not found.is_ok
    assert found.how == "could not be started: no such command: /no/such/shell"
