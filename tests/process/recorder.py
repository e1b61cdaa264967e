#!/usr/bin/env python3
"""The task of a real run: it says in an outside log that it starts, goes on, writes and ends.

    recorder.py LOG [--every-s 0.05] [--for-s 0.5] [--exit CODE] [--node NAME] [--token-variable NAME]

The log is a plain file that accepts whatever comes, so that it shows what an unguarded resource would
suffer; `checker.py` judges it. A line is one JSON object and one write to a file opened to append: lines of
many processes do not mix, and each is either there or not, whatever kills whom (the file outlives the
process; nothing here survives the loss of the host, and nothing needs to).

A run that is killed simply has no end: nothing is written on its behalf, and no signal is handled. Its
length is counted in heartbeats, not in time: one that was frozen goes on where it was, and shows it.

Times are CLOCK_BOOTTIME in nanoseconds, read before the line is written. It is one clock for all processes
of a host, which are all there are here: it never steps, as the time of day does, and it counts a suspended
host, as the leases do. (A time namespace has an offset of its own: one log, one namespace.)
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
import time
from pathlib import Path


def append(log: Path, **fields: object) -> None:
    """Append one line with the time; used for what clients were told, too."""
    line = json.dumps({"at_ns": time.clock_gettime_ns(time.CLOCK_BOOTTIME), **fields}) + "\n"
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        written = os.write(file, line.encode())
    finally:
        os.close(file)
    if written != len(line.encode()):
        raise OSError(f"{written} of {len(line)} bytes fitted into {log}: the disk is full?")


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Record a run of a task in an outside log.")
    parser.add_argument("log", type=Path)
    parser.add_argument("--every-s", type=float, default=0.05, help="between two heartbeats")
    parser.add_argument("--for-s", type=float, default=0.5, help="how long it works, unless frozen")
    parser.add_argument("--exit", type=int, default=0, help="other than 0: it fails at its end")
    # A node starts its tasks itself, so the parent tells the nodes of one host apart.
    parser.add_argument("--node", default=f"pid {os.getppid()}")
    parser.add_argument("--token-variable", default="MESH_TOKEN", help="or MESH_ATTEMPT")
    return parser.parse_args(arguments)


def main() -> int:
    """Record one run."""
    wanted = parse(sys.argv[1:])
    try:
        task, token = os.environ["MESH_TASK_ID"], int(os.environ[wanted.token_variable])
    except (KeyError, ValueError) as error:
        print(f"expected what Mesh gives a task in its environment: {error!r}", file=sys.stderr)
        return 2
    # The run's own name: two runs under one token must not look like one.
    names = {"task": task, "token": str(token), "run": secrets.token_hex(8), "node": wanted.node}
    attempt = os.environ.get(
        "MESH_ATTEMPT", ""
    )  # whose cause can be asked for, whatever it died of
    append(wanted.log, kind="start", **names, every_ns=int(wanted.every_s * 1e9), attempt=attempt)
    for _ in range(round(wanted.for_s / wanted.every_s)):
        time.sleep(wanted.every_s)
        append(wanted.log, kind="heartbeat", **names)
    if not wanted.exit:
        append(wanted.log, kind="write", **names)  # what it was all for
    append(wanted.log, kind="failed" if wanted.exit else "end", **names)
    return int(wanted.exit)


if __name__ == "__main__":
    sys.exit(main())
