"""A planted log with its acknowledgements, told line by line, and the checker's answer to it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.process.checker import KINDS

CHECKER = Path(__file__).with_name("checker.py")
EVERY = 50
TOKEN = 1 << 100


@dataclass
class Story:
    """A log and acknowledgements, told line by line; times are in milliseconds."""

    place: Path
    log: list[str] = field(default_factory=list)
    acks: list[str] = field(default_factory=list)
    _names: Iterator[int] = field(default_factory=lambda: iter(range(1_000_000)))

    def line(self, run: str, kind: str, at: float, token: int = 1, task: str = "t") -> None:
        record = {"at_ns": int(at * 1e6), "kind": kind, "task": task, "token": str(TOKEN + token)}
        more = {"every_ns": EVERY * 10**6} if kind == "start" else {}
        self.log.append(json.dumps({**record, "run": run, "node": f"n{token}", **more}))

    def run(self, token: int, begin: float, beats: int, end: str = "end", task: str = "t") -> None:
        """One run as it should be: a start, heartbeats, and an end (or "" for none)."""
        name = f"{task}/{next(self._names)}"
        for beat in range(beats + 1):
            kind = "heartbeat" if beat else "start"
            self.line(name, kind, begin + beat * EVERY, token, task)
        for kind in ("write", end) if end == "end" else (end,) if end else ():
            self.line(name, kind, begin + beats * EVERY + 1, token, task)

    def ack(self, kind: str, at: float = 0, task: str = "t", **more: object) -> None:
        self.acks.append(json.dumps({"at_ns": int(at * 1e6), "kind": kind, "task": task, **more}))

    def accepted(self, task: str = "t", state: str = "done", at: float = 10_000) -> None:
        self.ack("submitted", task=task)
        self.ack("acknowledged", task=task)
        if state:
            self.ack("told", at, task, state=state)

    def cause(self, token: int, cause: str, task: str = "t") -> None:
        self.ack("attempt", task=task, token=TOKEN + token, cause=cause)

    def check(self, *options: str, code: int | None = None) -> dict[str, Any]:
        """Let the checker judge, as a program of its own."""
        log, acks = self.place / "log", self.place / "acks"
        log.write_text("".join(f"{line}\n" for line in self.log))
        acks.write_text("".join(f"{line}\n" for line in self.acks))
        return check(log, acks, *options, code=code)

    def kinds(self, *options: str) -> set[str]:
        return {each["kind"] for each in self.check(*options)["violations"]}


def check(log: Path, acks: Path, *options: str, code: int | None = None) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-I", "-S", CHECKER, log, acks, "--json", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (bool(report["violations"]) if code is None else code), done.stderr
    assert report["counts"].keys() == set(KINDS)
    assert sum(report["counts"].values()) == len(report["violations"])
    return report
