"""Take away what a run of network tests has made: processes, namespaces and its directory.

Everything of a run carries its name, and the name says which process made it. So whatever is found
under the name of a process that is gone is a leftover. Run as a program, this file waits until its
standard input ends and then clears the run that it was given: however the owner of the other end
dies, the pipe ends with it.
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

NAMESPACES = Path("/run/netns")
PREFIX = "meshnet"
END_TIMEOUT_S = 10.0
_RUN = re.compile(rf"{PREFIX}-(\d+)-(\d+)-\d+")
_numbers = itertools.count()


def new_run() -> str:
    """Return a name for a run of this process that no other run has."""
    return f"{PREFIX}-{os.getpid()}-{_started(os.getpid())}-{next(_numbers)}"


def home_of(run: str) -> Path:
    """Return the directory of a run; it need not exist."""
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


def leftovers() -> list[str]:
    """Return the runs whose process is gone and that have left something behind."""
    places = [*NAMESPACES.glob(f"{PREFIX}-*"), *home_of(PREFIX).parent.glob(f"{PREFIX}-*")]
    runs = {found[0]: found for place in places if (found := _RUN.match(place.name))}
    return sorted(name for name, run in runs.items() if _started(int(run[1])) != int(run[2]))


def clear(run: str) -> None:
    """Kill every process in the run's namespaces, then remove these and the directory.

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
        time.sleep(0.01)
    shutil.rmtree(home_of(run), ignore_errors=True)


def _started(pid: int) -> int:
    """Return when a process started, in clock ticks since boot; -1 if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return -1
    return int(text.rpartition(")")[2].split()[19])


if __name__ == "__main__":
    sys.stdin.read()
    clear(sys.argv[1])
