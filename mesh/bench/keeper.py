"""Take away the network namespaces of a benchmark, and every process in them, however it ended.

Everything of a run carries its name, and the name says which process made it: what is found under the
name of a process that is gone is a leftover. Run as a program, this file waits until its standard input
ends, which it does when the benchmark closes it or dies, and then clears the run that it was given. It
imports nothing of ours, so that it starts at once.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

NAMESPACES: Final = Path("/run/netns")
PREFIX: Final = "meshbench"
END_TIMEOUT_S: Final = 10.0
POLL_S: Final = 0.01
_RUN: Final = re.compile(rf"{PREFIX}-(\d+)-(\d+)-\d+")
_NUMBERS: Final = itertools.count()


def new_run() -> str:
    """Return a name for a run of this process that no other run has."""
    return f"{PREFIX}-{os.getpid()}-{started(os.getpid())}-{next(_NUMBERS)}"


def namespaces_of(run: str) -> list[str]:
    """Return the namespaces of a run that exist, by name."""
    return sorted(path.name for path in NAMESPACES.glob(f"{run}.*"))


def leftovers() -> list[str]:
    """Return the runs whose process is gone and that have left namespaces behind."""
    names = [path.name for path in NAMESPACES.glob(f"{PREFIX}-*")]
    runs = {found[0]: found for name in names if (found := _RUN.match(name))}
    return sorted(name for name, run in runs.items() if started(int(run[1])) != int(run[2]))


def clear(run: str) -> None:
    """Kill every process in the run's namespaces, then remove these. Harmless when repeated, or done by two.

    Raises RuntimeError when something stays.
    """
    deadline = time.monotonic() + END_TIMEOUT_S
    while names := namespaces_of(run):
        for name in names:
            pids = _pids_in(name)
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if not pids:
                subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        if time.monotonic() > deadline:
            raise RuntimeError(f"these network namespaces cannot be removed: {', '.join(names)}")
        time.sleep(POLL_S)


def _pids_in(namespace: str) -> list[int]:
    found = subprocess.run(
        ["ip", "netns", "pids", namespace], capture_output=True, text=True, check=False
    )
    return [int(line) for line in found.stdout.split()]


def started(pid: int) -> int:
    """Return when a process started, in clock ticks since boot; -1 if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return -1
    return int(text.rpartition(")")[2].split()[19])


if __name__ == "__main__":
    sys.stdin.read()
    clear(sys.argv[1])
