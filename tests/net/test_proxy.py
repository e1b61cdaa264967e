"""A mesh on a network that delays, reorders, doubles and loses: it meets, misses the dead, accuses nobody."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mesh.bench.ports import free_ports
from mesh.demo.witness import Witness
from mesh.fleet.fleet import Fleet
from tests.net.proxy import DELAY_S, LATE_S, Fates
from tests.net.site import key_arguments

NAMES = ("a", "b", "c", "d", "e")
SEED = 20
QUIET_S = 4.0
NOTICE_TIMEOUT_S = 15.0
_ROOT = Path(__file__).parents[2]


@contextmanager
def proxy(ports: list[tuple[int, int]], counts: dict[str, int]) -> Iterator[None]:
    """Run the proxy as a program; afterwards `counts` says what it did."""
    command = [sys.executable, "-m", "tests.net.proxy", str(SEED)]
    command += [f"{front}:{back}" for front, back in ports]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=_ROOT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield
        counts.update(json.loads(process.communicate(timeout=10)[0]))


def test_a_mesh_through_a_bad_network_meets_misses_the_dead_and_accuses_nobody() -> None:
    numbers = free_ports(2 * len(NAMES))
    ports = list(zip(numbers[::2], numbers[1::2], strict=True))
    counts: dict[str, int] = {}
    with Fleet("local") as fleet, proxy(ports, counts):
        key = key_arguments(fleet.home)
        seed = f"127.0.0.1:{ports[0][0]}"
        for name, (front, back) in zip(NAMES, ports, strict=True):
            seeds = [] if name == NAMES[0] else [seed]
            advertised = ("--advertise", f"127.0.0.1:{front}")
            fleet.launch(name, *advertised, *key, *seeds, bind=f"127.0.0.1:{back}")
        for node in fleet.nodes.values():
            node.wait_ready()
        fleet.wait_whole()
        *survivors, victim = fleet.nodes.values()
        witnesses = [Witness(node) for node in survivors]
        time.sleep(QUIET_S)
        killed_ns = victim.kill(guardian=True)  # whose obituary would pass by the bad network
        for witness in witnesses:
            found = witness.wait_event("dead", victim.name, killed_ns, NOTICE_TIMEOUT_S)
            assert found, f"{witness.name} did not notice: {witness.events()}"
        fleet.wait_whole()
        dead = [e for witness in witnesses for e in witness.events() if e["kind"] == "dead"]
    assert [e for e in dead if e["member"] != victim.name or e["at_ns"] < killed_ns] == []
    print(counts)
    assert min(counts[what] for what in ("lost", "doubled", "reordered")) >= 5
    assert "from strangers" not in counts


def test_what_befalls_a_datagram_depends_on_the_seed_its_link_and_its_number_alone() -> None:
    def drawn(seed: int, sender: int, hearer: int) -> list[tuple[float, ...]]:
        fates = Fates(seed, sender, hearer)
        return [fates.next_delays_s() for _ in range(1000)]

    assert drawn(1, 0, 1) == drawn(1, 0, 1)
    assert drawn(1, 0, 1) != drawn(2, 0, 1)
    assert drawn(1, 0, 1) != drawn(1, 1, 0)
    counts = {n: sum(len(delays) == n for delays in drawn(1, 0, 1)) for n in (0, 1, 2)}
    assert 20 <= counts[0] <= 80
    assert 60 <= counts[2] <= 140
    every = [delay for delays in drawn(1, 0, 1) for delay in delays]
    assert DELAY_S < max(every) < LATE_S
