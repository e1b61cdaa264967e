"""How soon the last of many idle processes knows what one packet told each: what the host itself costs, without Mesh.

    python -m bench.wake --nodes 32 --rounds 10        # from the repository's root

    victim ── SIGKILL ──► its parent sees the end, sends one datagram to each other process
                                                    └─► each notes the time: that is all it does

Each process is a Python that waits in one `select`, and pings another once a second and answers pings, as members of
a mesh in profile `lan` do: so it has slept for as long, and its pages are as cold. With `--loaded` it has imported
all of a node as well. The times are what no member of a mesh on this host can beat, and tell a slow host from a
slow Mesh.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import select
import signal
import socket
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Final

from mesh.bench.contestant import BenchError, tether
from mesh.bench.ports import free_ports
from mesh.bench.progress import open_progress
from mesh.cli.arguments import whole_number
from mesh.errors import ConfigError, MeshError
from mesh.fleet.clearing import signals_as_exits

PERIOD_S: Final = 1.0
SETTLE_S: Final = 5.0
BETWEEN_S: Final = 1.0
PATIENCE_S: Final = 60.0
PACKET_BYTES: Final = 64
PING, PONG, NEWS = b"\1", b"\2", b"\3"
_TIME: Final = struct.Struct("<Q")


def child(ports: Sequence[int], own: int, out: int) -> None:
    """Ping, answer, and write the time of each news to the pipe, until killed."""
    rng = random.Random(own)
    others = [port for port in ports if port != ports[own]]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mine:
        mine.bind(("127.0.0.1", ports[own]))
        os.write(out, _TIME.pack(0))
        due = time.monotonic() + rng.uniform(0, PERIOD_S)
        while True:
            ready, _, _ = select.select([mine], [], [], max(0.0, due - time.monotonic()))
            if ready:
                data, source = mine.recvfrom(2048)
                if data[:1] == NEWS:
                    os.write(out, _TIME.pack(time.time_ns()))
                elif data[:1] == PING:
                    mine.sendto(PONG.ljust(PACKET_BYTES), source)
            if time.monotonic() >= due:
                due = time.monotonic() + rng.uniform(0.95, 1.05) * PERIOD_S
                mine.sendto(PING.ljust(PACKET_BYTES), ("127.0.0.1", rng.choice(others)))


class Sleeper:
    """One process, and the pipe that it tells its times through."""

    def __init__(self, ports: Sequence[int], own: int, *, is_loaded: bool) -> None:
        self.port = ports[own]
        self._times, theirs = os.pipe()
        words = [json.dumps(list(ports)), str(own), str(theirs), "loaded" if is_loaded else "bare"]
        command = [*tether(), sys.executable, "-m", "bench.wake", "--child", *words]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=(theirs,))
        os.close(theirs)

    def told_at_ns(self) -> int:
        """Return the next time that it tells.

        Raises:
            BenchError: it told none in time.
        """
        ready, _, _ = select.select([self._times], [], [], PATIENCE_S)
        data = os.read(self._times, _TIME.size) if ready else b""
        if len(data) != _TIME.size:
            raise BenchError(f"a process told no time within {PATIENCE_S:g} s")
        found: int = _TIME.unpack(data)[0]
        return found

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(OSError):
            os.close(self._times)


def measure(nodes: int, rounds: int, *, is_loaded: bool) -> list[list[float]]:
    """Return, for each round, how many ms after the kill each survivor knew."""
    ports = free_ports(nodes)
    with ExitStack() as stack, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as teller:
        progress = stack.enter_context(open_progress(rounds))
        sleepers = []
        for own in range(nodes):
            sleepers.append(Sleeper(ports, own, is_loaded=is_loaded))
            stack.callback(sleepers[-1].close)
        for sleeper in sleepers:
            sleeper.told_at_ns()
        time.sleep(SETTLE_S)  # idle, as what is measured is to be
        found = []
        for number in range(rounds):
            victim = sleepers[number % nodes]
            survivors = [sleeper for sleeper in sleepers if sleeper is not victim]
            news = NEWS.ljust(PACKET_BYTES)
            ended = os.pidfd_open(victim.process.pid)
            killed_ns = time.time_ns()
            os.kill(victim.process.pid, signal.SIGKILL)
            select.select([ended], [], [])
            for survivor in survivors:
                teller.sendto(news, ("127.0.0.1", survivor.port))
            found.append([(one.told_at_ns() - killed_ns) / 1e6 for one in survivors])
            os.close(ended)
            victim.close()
            place = sleepers.index(victim)
            sleepers[place] = Sleeper(ports, place, is_loaded=is_loaded)
            stack.callback(sleepers[place].close)
            sleepers[place].told_at_ns()
            time.sleep(BETWEEN_S)
            progress.advance()
        return found


def figures(found: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Return the medians over the rounds of the first, the median and the last survivor's time in ms, and the worst."""
    lasts = [max(times) for times in found]
    return {
        "first_ms": round(statistics.median(min(times) for times in found), 1),
        "median_ms": round(statistics.median(statistics.median(times) for times in found), 1),
        "last_ms": round(statistics.median(lasts), 1),
        "worst_ms": round(max(lasts), 1),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print."""
    words = sys.argv[1:] if argv is None else list(argv)
    if words[:1] == ["--child"]:
        if words[4] == "loaded":
            import mesh.runtime.agent  # noqa: F401, PLC0415 - only to have its memory
        child(json.loads(words[1]), int(words[2]), int(words[3]))
    parser = argparse.ArgumentParser(
        prog="python -m bench.wake",
        description="What waking many idle processes costs on this host.",
    )
    parser.add_argument("--nodes", type=whole_number("--nodes", 2, 64), default=32)
    parser.add_argument("--rounds", type=whole_number("--rounds", 1, 100), default=10)
    parser.add_argument("--loaded", action="store_true", help="with all of a node imported")
    try:
        options = parser.parse_args(words)
    except ConfigError as error:
        parser.error(str(error))
    try:
        with signals_as_exits():
            found = measure(options.nodes, options.rounds, is_loaded=options.loaded)
    except MeshError as error:
        print(f"bench.wake: {error}", file=sys.stderr)
        return 1
    print(
        json.dumps({"nodes": options.nodes, "rounds": options.rounds, **figures(found)}, indent=1)
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
