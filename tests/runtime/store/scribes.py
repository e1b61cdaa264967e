"""Runs scribes, and reads what they said."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

import pytest

from tests.runtime.store.told import DEADLINE_S

ENDLESS: Final = 10**9
ROOT: Final = Path(__file__).parents[3]


@dataclass
class Said:
    """What a scribe said: position and records at its start, tickets acknowledged, how it failed."""

    position: int = -1
    records: int = -1
    acknowledged: list[int] = field(default_factory=list)
    failure: str = ""
    reason: str = ""


def command_of(path: Path, count: int, durability: str = "fsync") -> list[str]:
    """Return the command line of a scribe."""
    module = "tests.runtime.store.scribe"
    return [sys.executable, "-m", module, str(path), str(count), durability]


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, where tests and package are found."""
    return subprocess.run(
        argv, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_S * 3, check=False
    )


@contextmanager
def at_work(
    path: Path, durability: str = "fsync"
) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """Give a scribe that writes until it is killed, at the latest here, and what it says."""
    process = subprocess.Popen(
        command_of(path, ENDLESS, durability), cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    watchdog = threading.Timer(DEADLINE_S * 3, process.kill)  # whoever reads then reads the end
    watchdog.start()
    try:
        yield process, process.stdout
    finally:
        watchdog.cancel()
        process.kill()
        process.stdout.close()
        process.wait()
        watchdog.join()


def read(text: str) -> Said:
    """Read what one scribe said; a last line that was cut off does not count."""
    said = Said()
    for line in text.splitlines(keepends=True):
        if not line.endswith("\n"):
            break
        match line.split(maxsplit=2):
            case ["open", position, records]:
                said.position, said.records = int(position), int(records)
            case ["ack", ticket, _]:
                said.acknowledged.append(int(ticket))
            case ["failed", kind, reason]:
                said.failure, said.reason = kind, reason
            case _:
                pytest.fail(f"a scribe said {line!r}")
    return said


def write(path: Path, count: int, durability: str = "fsync") -> Said:
    """Run a scribe to its end."""
    done = run(*command_of(path, count, durability))
    assert not done.stderr, done.stderr
    return read(done.stdout)


def skip_unless(why: str, *argv: str) -> None:
    """Skip the test, and say why, on a host where this command does not work."""
    try:
        done = run(*argv)
    except FileNotFoundError as error:
        pytest.skip(f"{why}: {error}")
    if done.returncode:
        pytest.skip(f"{why}: {done.stderr.strip()}")
