"""Take away what a run in network namespaces has made: these, every process in them, and its directory.

Everything of a run carries its name, and the name says which process made it: what is found under the
name of a process that is gone is a leftover. Run as a program, this file waits until its standard input
ends, which it does when the run's maker closes it or dies, and then clears the run that it was given. It
imports nothing of ours, so that it starts at once.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

NAMESPACES: Final = Path("/run/netns")
PREFIX: Final = "meshbench"
END_TIMEOUT_S: Final = 10.0
POLL_S: Final = 0.01
_NUMBERS: Final = itertools.count()


def new_run(prefix: str = PREFIX) -> str:
    """Return a name for a run of this process that no other run has."""
    return f"{prefix}-{os.getpid()}-{started(os.getpid())}-{next(_NUMBERS)}"


def home_of(run: str) -> Path:
    """Return the directory that a run may make for itself."""
    return Path(tempfile.gettempdir()) / run


def namespaces_of(run: str) -> list[str]:
    """Return the namespaces of a run that exist, by name."""
    return sorted(path.name for path in NAMESPACES.glob(f"{run}.*"))


def pids_in(namespace: str) -> list[int]:
    """Return the processes in a namespace; none if it does not exist."""
    found = subprocess.run(
        ["ip", "netns", "pids", namespace], capture_output=True, text=True, check=False
    )
    return [int(line) for line in found.stdout.split()]


def leftovers(prefix: str = PREFIX) -> list[str]:
    """Return the runs whose process is gone and that have left something behind."""
    named = re.compile(rf"{prefix}-(\d+)-(\d+)-\d+")
    places = [*NAMESPACES.glob(f"{prefix}-*"), *home_of(prefix).parent.glob(f"{prefix}-*")]
    runs = {found[0]: found for place in places if (found := named.match(place.name))}
    return sorted(name for name, run in runs.items() if started(int(run[1])) != int(run[2]))


def clear(run: str) -> None:
    """Kill every process in the run's namespaces, then remove these and its directory.

    Harmless when repeated, or done by two at once. Raises RuntimeError when something stays.
    """
    deadline = time.monotonic() + END_TIMEOUT_S
    while names := namespaces_of(run):
        for name in names:
            pids = pids_in(name)
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if not pids:
                subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        if time.monotonic() > deadline:
            raise RuntimeError(f"these network namespaces cannot be removed: {', '.join(names)}")
        time.sleep(POLL_S)
    shutil.rmtree(home_of(run), ignore_errors=True)


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
