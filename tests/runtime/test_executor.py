"""Real commands: how they start, talk, end and are ended."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeAlias

import pytest
import trio

from mesh.core.effects import StartProcess
from mesh.core.process import ProcessEvent, ProcessExit, ProcessOutput
from mesh.runtime.executor import PIECE_BYTES_MAX, Executor

Until: TypeAlias = Callable[[Callable[[], bool]], Awaitable[None]]


class Bench:
    """An executor and what it reported. Reads on by itself unless `is_patient`."""

    def __init__(self, nursery: trio.Nursery, *, is_patient: bool = False) -> None:
        self.executor = Executor(nursery, self._take)
        self.events: list[ProcessEvent] = []
        self.is_patient = is_patient
        self._more = trio.Event()

    def _take(self, event: ProcessEvent) -> None:
        assert not any(isinstance(before, ProcessExit) for before in self.of(event.run_id))
        self.events.append(event)
        if isinstance(event, ProcessOutput) and not self.is_patient:
            self.executor.read(event.run_id, event.stream)
        self._more.set()

    def of(self, run_id: int) -> list[ProcessEvent]:
        return [event for event in self.events if event.run_id == run_id]

    def output(self, stream: int, run_id: int = 1) -> bytes:
        pieces = [e for e in self.of(run_id) if isinstance(e, ProcessOutput)]
        return b"".join(piece.data for piece in pieces if piece.stream == stream)

    def start(self, *argv: str, cwd: str = "", **env: str) -> None:
        self.executor.start(StartProcess(1, argv, env, cwd))

    def shell(self, script: str) -> None:
        self.start("sh", "-c", script)

    async def wait_for(self, count: int) -> None:
        with trio.fail_after(10):
            while len(self.events) < count:
                self._more = trio.Event()
                await self._more.wait()

    async def said(self, text: bytes) -> None:
        with trio.fail_after(10):
            while text not in self.output(1):
                self._more = trio.Event()
                await self._more.wait()

    async def end(self, run_id: int = 1) -> ProcessExit:
        with trio.fail_after(10):
            while True:
                for event in self.of(run_id):
                    if isinstance(event, ProcessExit):
                        return event
                self._more = trio.Event()
                await self._more.wait()


@asynccontextmanager
async def bench(*, is_patient: bool = False) -> AsyncIterator[Bench]:
    async with trio.open_nursery() as nursery:
        made = Bench(nursery, is_patient=is_patient)
        try:
            yield made
        finally:
            nursery.cancel_scope.cancel()
            made.executor.kill_all()


def is_running(pid: int) -> bool:
    """Say whether the process lives; a zombie waiting for its reaper does not."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


async def test_output_and_exit_code_come_back() -> None:
    async with bench() as b:
        b.shell("echo out; echo err >&2; exit 3")
        assert await b.end() == ProcessExit(1, 3)
        assert (b.output(1), b.output(2)) == (b"out\n", b"err\n")
        assert b.executor.running == 0


async def test_arguments_are_passed_as_they_are_and_never_to_a_shell() -> None:
    async with bench() as b:
        b.start(sys.executable, "-c", "import sys; print(sys.argv[1:])", "$HOME; rm *", "a b", "")
        assert (await b.end()).exit_code == 0
        assert b.output(1) == b"['$HOME; rm *', 'a b', '']\n"


async def test_environment_and_working_directory_are_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEPT", "kept")
    monkeypatch.setenv("MESH_TASK_ID", "the task that the node itself runs in")
    async with bench() as b:
        script = 'pwd; echo "$KEPT $GIVEN ${MESH_TASK_ID-none}"; cat'
        b.start("sh", "-c", script, cwd=str(tmp_path), GIVEN="given")
        await b.end()
        assert b.output(1).decode().splitlines() == [str(tmp_path), "kept given none"]


async def test_a_command_has_a_session_of_its_own_and_no_input() -> None:
    async with bench() as b:
        code = "import os,sys; print(os.getsid(0) == os.getpgid(0) == os.getpid(), sys.stdin.read() == '')"
        b.start(sys.executable, "-c", code)
        await b.end()
        assert b.output(1) == b"True True\n"


async def test_death_by_a_signal_is_128_and_its_number() -> None:
    async with bench() as b:
        b.shell("kill -SEGV $$")
        assert (await b.end()).exit_code == 128 + signal.SIGSEGV


@pytest.mark.parametrize("command", ["no-such-command-anywhere", "/no/such/path"])
async def test_a_missing_command_is_127(command: str) -> None:
    async with bench() as b:
        b.start(command)
        assert await b.end() == ProcessExit(1, 127, f"no such command: {command}")


async def test_what_cannot_be_run_is_126(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("text")
    plain.chmod(0o644)
    async with bench() as b:
        b.start(str(plain))
        end = await b.end()
        assert (end.exit_code, "not executable" in end.error) == (126, True)


async def test_a_missing_interpreter_is_not_called_a_missing_command(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    async with bench() as b:
        b.start(str(script))
        end = await b.end()
        assert (end.exit_code, "interpreter" in end.error) == (126, True)


@pytest.mark.parametrize("argv", [(), ("",), ("echo", "a\0b"), ("echo", "x" * 3_000_000)])
async def test_impossible_arguments_are_an_error_and_not_a_crash(argv: tuple[str, ...]) -> None:
    async with bench() as b:
        b.start(*argv)
        end = await b.end()
        assert end.exit_code in {126, 127}
        assert end.error


async def test_a_missing_working_directory_is_named() -> None:
    async with bench() as b:
        b.start("true", cwd="/no/such/directory")
        end = await b.end()
        assert end.exit_code == 126
        assert "/no/such/directory does not exist on this node" in end.error


@pytest.mark.parametrize("cwd", ["/" + "x" * 300, "/\0", "/etc/passwd", "/\udce9"])
async def test_a_working_directory_that_cannot_be_used_is_the_commands_end(cwd: str) -> None:
    async with bench() as b:
        b.start("true", cwd=cwd)
        end = await b.end()
        assert (end.exit_code, end.is_host_fault) == (126, False)
        assert "working directory" in end.error


@pytest.mark.parametrize(
    "shortage",
    [
        OSError(errno.EMFILE, "Too many open files"),
        OSError(errno.ENFILE, "Too many open files in system"),
        BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        MemoryError(),
    ],
)
async def test_a_host_that_runs_short_is_not_the_commands_fault(
    monkeypatch: pytest.MonkeyPatch, shortage: Exception
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise shortage

    monkeypatch.setattr(subprocess, "Popen", refuse)
    async with bench() as b:
        b.start("true")
        end = await b.end()
        assert end.is_host_fault
        assert end.error


async def test_a_host_without_a_descriptor_left_says_so() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with bench() as b:
        resource.setrlimit(resource.RLIMIT_NOFILE, (5, hard))
        try:
            b.start("true")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert (await b.end()).is_host_fault


async def test_whatever_goes_wrong_at_the_start_is_the_commands_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr("mesh.runtime.executor.spawn", fail)
    async with bench() as b:
        b.start("true")
        end = await b.end()
        assert (end.exit_code, "oops" in end.error) == (126, True)


async def test_a_bug_met_while_a_command_runs_ends_that_command_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("oops")

    monkeypatch.setattr(os, "set_blocking", fail)
    async with bench() as b:
        b.start("sleep", "60")
        end = await b.end()
        assert (end.exit_code, "oops" in end.error) == (128 + signal.SIGKILL, True)
        assert b.executor.running == 0


async def test_a_stream_waits_after_each_piece_until_it_is_read_on() -> None:
    async with bench(is_patient=True) as b:
        b.shell("head -c 300000 /dev/zero; echo x >&2")
        await b.wait_for(1)
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert len(b.output(1)) <= PIECE_BYTES_MAX
        assert not any(isinstance(event, ProcessExit) for event in b.events)
        b.is_patient = False
        b.executor.read(1, 1)
        assert (await b.end()).exit_code == 0
        assert len(b.output(1)) == 300_000
        assert b.output(2) == b"x\n"
        assert all(len(e.data) <= PIECE_BYTES_MAX for e in b.events if isinstance(e, ProcessOutput))


async def test_output_left_in_the_pipe_survives_the_command(
    until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mesh.runtime.executor.LINGER_S", 0.05)
    async with bench(is_patient=True) as b:
        b.shell("echo one; sleep 0.05; head -c 60000 /dev/zero")
        await b.wait_for(1)
        run = b.executor._runs[1]
        # A paused reader loses nothing, however long after the end it reads on.
        await until(lambda: trio.current_time() > run.ended_at + 0.2)
        b.is_patient = False
        b.executor.read(1, 1)
        await b.end()
        assert len(b.output(1)) == 60_004


async def test_stop_ends_the_whole_group(until: Until) -> None:
    async with bench() as b:
        b.shell("sleep 300 & echo $!; wait")
        await b.said(b"\n")
        child = int(b.output(1))
        b.executor.stop(1, 5.0)
        assert (await b.end()).exit_code == 128 + signal.SIGTERM
        await until(lambda: not is_running(child))


async def test_a_command_may_use_its_grace() -> None:
    async with bench() as b:
        b.shell("trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done")
        await b.said(b"ready\n")
        b.executor.stop(1, 5.0)
        assert (await b.end()).exit_code == 7
        assert b.output(1) == b"ready\nbye\n"


async def test_a_deaf_command_is_killed_after_its_grace() -> None:
    async with bench() as b:
        b.shell("trap '' TERM; echo ready; while :; do sleep 0.01; done")
        await b.said(b"ready\n")
        b.executor.stop(1, 0.05)
        assert (await b.end()).exit_code == 128 + signal.SIGKILL


async def test_without_grace_a_command_is_killed_at_once() -> None:
    async with bench() as b:
        b.shell("trap 'echo bye' TERM; echo ready; while :; do sleep 0.01; done")
        await b.said(b"ready\n")
        b.executor.stop(1, 0.0)
        assert (await b.end()).exit_code == 128 + signal.SIGKILL
        assert b.output(1) == b"ready\n"


async def test_a_stopped_command_whose_output_nobody_reads_still_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mesh.runtime.executor.LINGER_S", 0.05)
    async with bench(is_patient=True) as b:
        b.shell("yes")
        await b.wait_for(1)
        b.executor.stop(1, 0.0)
        assert (await b.end()).exit_code == 128 + signal.SIGKILL


async def test_what_a_command_leaves_behind_in_its_group_is_killed(until: Until) -> None:
    async with bench() as b:
        b.shell("sleep 300 & echo $!")
        with trio.fail_after(5):
            assert (await b.end()).exit_code == 0
        await until(lambda: not is_running(int(b.output(1))))


@pytest.mark.parametrize("work", ["sleep 300", "yes"])
async def test_a_stranger_that_keeps_the_pipe_open_delays_the_exit_for_a_second_at_most(
    work: str,
) -> None:
    async with bench() as b:
        b.shell(f"echo first; setsid {work} & sleep 0.1; echo $! >&2")
        with trio.fail_after(8):
            assert (await b.end()).exit_code == 0
        assert b.output(1).startswith(b"first\n")
        with suppress(ProcessLookupError):
            os.killpg(int(b.output(2)), signal.SIGKILL)


async def test_a_system_without_pidfd_looks_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    async with bench() as b:
        b.shell("exit 5")
        assert (await b.end()).exit_code == 5


async def test_kill_all_leaves_no_process(until: Until) -> None:
    async with bench() as b:
        b.shell("trap '' TERM; sleep 300 & echo $! $$; wait")
        await b.said(b"\n")
        pids = [int(word) for word in b.output(1).split()]
    await until(lambda: not any(is_running(pid) for pid in pids))


async def test_a_command_dies_with_a_node_that_dies_without_a_word(until: Until) -> None:
    code = (
        "from mesh.runtime.spawn import spawn\n"
        "import os\n"
        "child = spawn(('sleep', '300'), {}, '')\n"
        "print(child.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = await trio.run_process([sys.executable, "-c", code], capture_stdout=True, check=False)
    pid = int(done.stdout)
    await until(lambda: not is_running(pid))


async def test_stopping_or_reading_a_run_that_is_gone_does_nothing() -> None:
    async with bench() as b:
        b.executor.stop(99, 1.0)
        b.executor.read(99, 1)
        assert not b.events
