"""How commands are bound to the life of their node: by setpriv where they are sure to start, else by a child of our own."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mesh.runtime import death_pact
from mesh.runtime.death_pact import Pact
from mesh.runtime.spawn import CANNOT_RUN, SpawnError, spawn

PATIENCE_S = 30.0
ENV = {"PATH": os.environ.get("PATH", os.defpath)}
SETPRIV = death_pact._setpriv()

needs_setpriv = pytest.mark.skipif(
    SETPRIV is None, reason="no setpriv that knows --pdeathsig: apt-get install util-linux"
)

PARENT = """
import sys, time
from mesh.runtime import death_pact
from mesh.runtime.spawn import spawn
if sys.argv[1] == "own":
    death_pact._setpriv = lambda: None
child = spawn(("sleep", "600"), {}, "", is_guarded=True)
print(child.pid, flush=True)
time.sleep(600)
"""


def bind(command: str, env: dict[str, str], cwd: str) -> Pact:
    return death_pact.bind(command, env, cwd, is_guarded=True)


def wait_until_it_is(name: str, pid: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while Path(f"/proc/{pid}/comm").read_text().strip() != name:
        assert time.monotonic() < deadline, f"{name} did not start"
        time.sleep(0.005)


def script(path: Path, text: str, mode: int = 0o755) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


@needs_setpriv
@pytest.mark.parametrize("command", ["true", sys.executable])
def test_a_program_is_started_by_setpriv(command: str) -> None:
    pact = bind(command, ENV, "")
    assert pact.prefix[0] == SETPRIV
    assert pact.before_exec is None


@needs_setpriv
def test_a_script_for_a_program_is_started_by_setpriv_from_its_directory(tmp_path: Path) -> None:
    script(tmp_path / "job", "#!/usr/bin/env sh\necho $0\n")
    assert bind("./job", ENV, str(tmp_path)).prefix
    with spawn(("./job", "a"), {}, str(tmp_path), is_guarded=True) as process:
        said, _ = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, said) == (0, b"./job\n")


def _fifo(path: Path) -> Path:
    os.mkfifo(path, 0o755)
    return path


@pytest.mark.parametrize(
    "make",
    [
        lambda at: at / "missing",
        lambda at: at,
        lambda at: _fifo(at / "fifo"),
        lambda at: script(at / "a", "#!/usr/bin/env sh\n", 0o644),
        lambda at: script(at / "a", "echo no first line\n"),
        lambda at: script(at / "a", ""),
        lambda at: script(at / "a", "#!"),
        lambda at: script(at / "a", "#!\n"),
        lambda at: script(at / "a", "#!sh\n"),
        lambda at: script(at / "a", "#!/usr/bin/env sh"),
        lambda at: script(at / "a", "#!/no/such/interpreter\n"),
        lambda at: script(at / "a", f"#!{script(at / 'b', '#!/usr/bin/env sh')}\n"),
        lambda at: script(at / "a", f"#!{_fifo(at / 'b')}\n"),
        lambda at: at / ("x" * 300),
        lambda at: Path(f"{at}/\0"),
    ],
)
def test_what_may_not_start_is_started_by_a_child_of_our_own(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    pact = bind(str(make(tmp_path)), ENV, "")
    assert pact.prefix == ()
    assert pact.before_exec is not None


def program(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    path.chmod(0o755)
    return path


def _of_another_libc(path: Path) -> Path:
    found = shutil.which("true")
    assert found is not None
    return program(path, Path(found).read_bytes().replace(b"/ld-linux", b"/ld-other"))


def _no_more_than_a_head(path: Path) -> Path:
    head = Path(sys.executable).resolve().read_bytes()[: death_pact._MACHINE]
    return program(path, head + b"\necho a shell was here\n")


@pytest.mark.skipif(sys.platform != "linux", reason="ELF files of a Linux")
@pytest.mark.parametrize(
    "make",
    [
        lambda at: script(at / "a", "#!/bin/sh\r\necho hi\r\n"),
        lambda at: _of_another_libc(at / "a"),
        lambda at: _no_more_than_a_head(at / "a"),
        lambda at: script(at / "a", f"#!{_no_more_than_a_head(at / 'b')}\necho hi\n"),
        lambda at: script(at / "a", f"#!{_of_another_libc(at / 'b')}\necho hi\n"),
    ],
    ids=[
        "CRLF",
        "another libc",
        "half a program",
        "a script for that",
        "a script for another libc",
    ],
)
def test_what_the_kernel_refuses_is_no_shells_to_run_and_is_told_as_not_started(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    command = str(make(tmp_path))
    with pytest.raises(SpawnError) as told, spawn((command,), {}, "", is_guarded=True):
        pass
    assert told.value.exit_code == CANNOT_RUN


@pytest.mark.parametrize("env", [{}, {"PATH": ""}, {**ENV, "LD_PRELOAD": "x.so"}])
def test_where_a_program_is_looked_for_otherwise_a_child_of_our_own_starts_it(
    env: dict[str, str],
) -> None:
    assert bind("true", env, "").before_exec is not None


@needs_setpriv
def test_the_first_of_that_name_in_the_path_counts(tmp_path: Path) -> None:
    script(tmp_path / "true", "not for exec\n", 0o644)
    assert bind("true", {"PATH": f"{tmp_path}:{ENV['PATH']}"}, "").before_exec is not None
    assert bind("true", {"PATH": f"{tmp_path / 'none'}:{ENV['PATH']}"}, "").prefix


def test_without_a_guardian_a_child_of_our_own_starts_it() -> None:
    assert death_pact.bind("true", ENV, "", is_guarded=False).before_exec is not None


def test_a_command_that_is_missing_is_said_to_be_missing_and_nothing_else(tmp_path: Path) -> None:
    with pytest.raises(SpawnError, match="no such command: not-a-command-of-this-host"):
        spawn(("not-a-command-of-this-host",), {}, str(tmp_path), is_guarded=True)


@pytest.mark.parametrize("text", ["exit 1", ""])
def test_a_setpriv_that_cannot_do_it_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    script(tmp_path / "setpriv", f"#!/bin/sh\n{text}\n" if text else "no program")
    monkeypatch.setenv("PATH", f"{tmp_path}:{ENV['PATH']}")
    death_pact._setpriv.cache_clear()
    try:
        assert shutil.which("setpriv") == str(tmp_path / "setpriv")
        assert death_pact._setpriv() is None
        assert bind("true", ENV, "").before_exec is not None
    finally:
        death_pact._setpriv.cache_clear()


@pytest.mark.parametrize("by", [pytest.param("setpriv", marks=needs_setpriv), "own"])
def test_either_way_it_dies_with_whoever_started_it(by: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, by], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        handle = os.pidfd_open(child)
        try:
            if by == "setpriv":  # the kernel is asked a moment after it has started
                wait_until_it_is("sleep", child)
            parent.send_signal(signal.SIGKILL)
            parent.wait(PATIENCE_S)

            assert select.select([handle], [], [], PATIENCE_S)[0], "it outlived its parent"
        finally:
            os.close(handle)
