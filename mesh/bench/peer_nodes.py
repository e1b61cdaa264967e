"""A peer as a contestant: one process for each member, whose output lines are its event stream.

What differs from peer to peer is its adapter: the command, how a line reads, how it leaves.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final, Protocol

from mesh.bench.contestant import BenchError, Contestant, Traffic, tether
from mesh.bench.ground import LOOPBACK, Ground
from mesh.bench.sightings import Sight, Sighting
from mesh.fleet.clearing import MARK, end_marked, wait_until

LEAVE_TIMEOUT_S: Final = 30.0
TRAFFIC_TIMEOUT_S: Final = 5.0
READER_TIMEOUT_S: Final = 5.0
TAIL_LINES_MAX: Final = 20
LAST_LINES: Final = 3
_TRAFFIC_GRACE_S: Final = 0.3  # what was asked for comes in one burst


class Adapter(Protocol):
    """How one peer is started, understood and asked. One file each."""

    name: str
    about: str
    tells_refutations: bool
    can_deafen: bool

    def command(self, member: str, address: str, seed: str, profile: str) -> list[str]:
        """Return the command of one member; `seed` is an address, "" for the first."""

    def read(self, line: str, now_ns: int) -> tuple[int, Sight, str] | None:
        """Return what a line says: when, what, of whom; None: nothing of interest."""

    def is_traffic(self, line: str) -> bool:
        """Say whether a line tells what was sent."""

    def traffic(self, lines: list[str], start_s: float, end_s: float) -> Traffic | None:
        """Return the rates between two Unix times, from a member's lines; each is when lines were asked for."""

    def ask_traffic(self, process: subprocess.Popen[str]) -> None:
        """Ask for lines about traffic."""

    def leave(self, process: subprocess.Popen[str]) -> None:
        """Tell a member to leave."""

    def toggle_deafness(self, process: subprocess.Popen[str]) -> None:
        """Let a member hear nothing, or hear again."""


class PeerNodes(Contestant):
    """The members of one peer, with one profile."""

    def __init__(
        self,
        adapter: Adapter,
        ports: Mapping[str, int],
        profile: str,
        ground: Ground = LOOPBACK,
    ) -> None:
        super().__init__(
            adapter.name,
            f"{adapter.about}, {profile}",
            ports,
            tells_refutations=adapter.tells_refutations,
            ground=ground,
        )
        self.can_deafen = adapter.can_deafen
        self._adapter = adapter
        self._profile = profile
        self._mark = secrets.token_hex(8)
        self._home = Path(tempfile.mkdtemp(prefix="mesh-bench-"))
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._readers: list[threading.Thread] = []
        self._tails: dict[str, list[str]] = {}
        self._traffic: dict[str, list[str]] = {}
        self._traffic_from_s = 0.0

    def spawn(self, member: str, seed: str | None) -> None:
        """Start a process and read its lines."""
        seed_address = self.address(seed) if seed else ""
        command = self._adapter.command(member, self.address(member), seed_address, self._profile)
        process = subprocess.Popen(
            [*tether(), *self.ground.inside(member), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            bufsize=1,
            errors="replace",
            cwd=self._home,
            env={**os.environ, MARK: self._mark},
            start_new_session=True,
        )
        self._processes[member] = process
        self.pids[member] = process.pid
        self._traffic[member] = []
        self._tails[member] = []
        reader = threading.Thread(
            target=self._read, args=(member, process), name=f"lines of {member}", daemon=True
        )
        self._readers.append(reader)
        reader.start()

    def _read(self, member: str, process: subprocess.Popen[str]) -> None:
        output: IO[str] | None = process.stdout
        if output is None:
            return
        with output:
            for line in output:
                now_ns = time.time_ns()
                if self._processes.get(member) is process:
                    self._take(member, line, now_ns)

    def _take(self, member: str, line: str, now_ns: int) -> None:
        seen = self._adapter.read(line, now_ns)
        if seen is not None and seen[2] != member:
            self.log.add(Sighting(seen[0], member, seen[1], seen[2]))
        elif self._adapter.is_traffic(line):
            self._traffic[member].append(line)
        else:
            self._tails[member] = [*self._tails[member], line.strip()][-TAIL_LINES_MAX:]

    def pid(self, member: str) -> int:
        """Return the member's process."""
        return self._processes[member].pid

    def last_words(self, member: str) -> str | None:
        """Return the last lines of a process that has ended."""
        if self._processes[member].poll() is None:
            return None
        return " / ".join(self._tails[member][-LAST_LINES:])

    def kill(self, member: str) -> int:
        """End the process with SIGKILL."""
        self.check_runs([member])
        process = self._processes[member]
        at_ns = time.time_ns()
        process.kill()
        process.wait()
        self._retire(member)
        return at_ns

    def leave(self, member: str) -> int:
        """Let the member leave in its own way."""
        process = self._processes[member]
        at_ns = time.time_ns()
        self._adapter.leave(process)
        try:
            process.wait(LEAVE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise BenchError(
                f"{self.name}: {member} was told to leave and still runs after {LEAVE_TIMEOUT_S:g} s"
            ) from None
        self._retire(member)
        return at_ns

    def _retire(self, member: str) -> None:
        self.log.forget(member)
        process = self._processes[member]
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()

    def toggle_deafness(self, member: str) -> int:
        """Use the peer's own hook, if it has one."""
        if not self._adapter.can_deafen:
            raise BenchError(f"{self.name} has no hook to make a member deaf")
        at_ns = time.time_ns()
        self._adapter.toggle_deafness(self._processes[member])
        return at_ns

    def begin_traffic(self) -> None:
        """Ask every member for its counters."""
        self._traffic_from_s = time.time()
        self._ask_traffic()

    def end_traffic(self) -> list[Traffic]:
        """Ask again and return the rates."""
        end_s = time.time()
        self._ask_traffic()
        found = [
            self._adapter.traffic(self._traffic[member], self._traffic_from_s, end_s)
            for member in self._processes
        ]
        return [traffic for traffic in found if traffic is not None]

    def _ask_traffic(self) -> None:
        counts = {member: len(lines) for member, lines in self._traffic.items()}
        for process in self._processes.values():
            with contextlib.suppress(OSError):
                self._adapter.ask_traffic(process)
        # Whoever does not answer in time is missing from the figures.
        with contextlib.suppress(TimeoutError):
            wait_until(
                lambda: all(len(self._traffic[m]) > counts[m] for m in counts) or None,
                TRAFFIC_TIMEOUT_S,
                TimeoutError,
            )
            time.sleep(_TRAFFIC_GRACE_S)

    def close(self) -> None:
        """Kill every process and remove what they wrote."""
        for process in self._processes.values():
            if process.poll() is None:
                process.kill()
        for member, process in self._processes.items():
            process.wait()
            self._retire(member)
        end_marked(self._mark)
        for reader in self._readers:
            reader.join(READER_TIMEOUT_S)
        shutil.rmtree(self._home, ignore_errors=True)
