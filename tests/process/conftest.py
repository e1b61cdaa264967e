"""Real processes on loopback: fleets of nodes, and the command line as a user runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, TypeAlias

import pytest

from mesh.fleet.clearing import marked_pids
from mesh.fleet.fleet import Fleet

Mesh: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]

LINE_TIMEOUT_S = 30.0


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    """A fleet that has left nothing behind when the test is over."""
    yield from _fleet("local")


@pytest.fixture(scope="module")
def shared_fleet() -> Iterator[Fleet]:
    """A fleet for all tests of a file, for those that leave it as they found it."""
    yield from _fleet("local")


@pytest.fixture
def lan_fleet() -> Iterator[Fleet]:
    """A fleet with the timings of a real site."""
    yield from _fleet("lan")


def _fleet(profile: str) -> Iterator[Fleet]:
    with Fleet(profile) as fleet:
        yield fleet
    assert marked_pids(fleet.mark) == []
    assert not fleet.home.exists()


@pytest.fixture(scope="session")
def mesh() -> Mesh:
    """Run `mesh …` to its end, as a user without a terminal would."""

    def run(*arguments: str, timeout_s: float = LINE_TIMEOUT_S) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "mesh", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    return run


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start `mesh …` in a session of its own; whatever still runs at the end is ended by its id."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(*arguments: str, **settings: Any) -> subprocess.Popen[bytes]:  # noqa: ANN401 - handed on to Popen
        settings.setdefault("stdin", subprocess.DEVNULL)
        settings.setdefault("stdout", subprocess.PIPE)
        settings.setdefault("stderr", subprocess.PIPE)
        command = [sys.executable, "-m", "mesh", *arguments]
        process = subprocess.Popen(command, start_new_session=True, **settings)
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
