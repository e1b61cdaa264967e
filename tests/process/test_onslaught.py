"""Many at once and all of it bad: a real node answers, stays small, accuses nobody, and is the same afterwards."""

from __future__ import annotations

import array
import fcntl
import os
import random
import re
import resource
import signal
import socket
import struct
import subprocess
import tempfile
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import pytest

from mesh.client import Client
from mesh.fleet.clearing import MARK, wait_until
from mesh.fleet.fleet import Fleet, NodeProcess
from mesh.node.config import profile
from mesh.node.node import Node
from mesh.runtime.datadir import open_data_dir
from mesh.runtime.streams import GREETING
from mesh.runtime.udp import RECEIVE_BUFFER_BYTES
from mesh.sim.fleet import Fleet as SimFleet
from mesh.sim.fleet import FleetOptions
from mesh.sim.garbage import captured, mangle
from mesh.sim.network import Conditions, Network
from mesh.sim.world import World
from mesh.wire.packet import DATAGRAM_BYTES_MAX
from tests.process.onslaught import PATIENCE_S, accusations, address_of, counters, onslaught
from tests.process.seat import Seat
from tests.process.voters import wait_voters

Mesh: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]

SPARE_DESCRIPTORS = 300
SLOW_SENDERS = 50
MUTE_CLIENTS = 60
FOREIGN_MESH = b"\xab" * 8
STRANGE = ("dropped_garbage", "dropped_foreign_mesh", "dropped_version")
BURST_BYTES = 4_096
"""More than the system sets aside for a datagram of this test: so a burst of whole buffers is not lost."""

LOOPBACK_BYTES_MAX = 65_507


@pytest.fixture(scope="module")
def trio() -> Iterator[tuple[Fleet, NodeProcess]]:
    """Three nodes with the timings of a real site, and the one that is fired at."""
    with Fleet("lan") as fleet:
        target = fleet.start("target", slots=4)
        fleet.start("other")
        fleet.start("third")
        fleet.wait_whole()
        wait_voters(fleet, 3)  # what a node shows of tasks changes when it begins to vote
        yield fleet, target


@contextmanager
def descriptors(count: int) -> Iterator[int]:
    """Allow this process `count` descriptors more, or as many as there may be; give that number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + SPARE_DESCRIPTORS
    limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, limit), hard))
    try:
        yield min(count, max(soft, limit) - SPARE_DESCRIPTORS)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("count", [2_000, pytest.param(10_000, marks=pytest.mark.sweep)])
def test_silent_connections_are_let_go(trio: tuple[Fleet, NodeProcess], count: int) -> None:
    fleet, target = trio
    at = address_of(target)
    with descriptors(count) as allowed:
        if allowed < count:
            pytest.skip(f"{count} descriptors are needed, {allowed} may be had")
        with ExitStack() as stack:
            with onslaught(fleet, target, growth_mib_max=48.0):
                begin = time.monotonic()
                for _ in range(count):
                    stack.enter_context(socket.create_connection(at, timeout=PATIENCE_S))
                print(f"{count} connections in {time.monotonic() - begin:.1f} s")
            wait_until(
                lambda: counters(target).get("dropped_full", 0) >= count - 600 or None,
                PATIENCE_S,
                lambda: AssertionError(f"too few were let go: {counters(target)}"),
            )
            assert len(list(Path(f"/proc/{target.pid}/fd").iterdir())) < 700


@pytest.mark.parametrize("seconds", [3.0, pytest.param(12.0, marks=pytest.mark.sweep)])
def test_slow_senders_hold_up_neither_a_joining_member_nor_a_task(
    trio: tuple[Fleet, NodeProcess], seconds: float
) -> None:
    fleet, target = trio
    at = address_of(target)
    # Its first frame is whole in time, its second one never.
    unfinished = GREETING + struct.pack(">I", 1_000) + b"z" * 900
    task = f"ran-for-{seconds:g}-s-among-slow-senders"
    with (
        ExitStack() as stack,
        onslaught(fleet, target, growth_mib_max=32.0, besides={"late"}, tasks={task}),
    ):
        senders = [
            stack.enter_context(socket.create_connection(at, timeout=PATIENCE_S))
            for _ in range(SLOW_SENDERS)
        ]
        is_over = threading.Event()
        thread = threading.Thread(
            target=trickle, args=(senders, unfinished, is_over), name="slow senders", daemon=True
        )
        thread.start()
        until = time.monotonic() + seconds
        try:
            late = fleet.start("late")
            fleet.wait_whole(PATIENCE_S)
            assert b"fine\n" in output_of(target, task, ["echo", "fine"])
            is_over.wait(max(0.0, until - time.monotonic()))
        finally:
            is_over.set()
            thread.join(PATIENCE_S)
        assert late.stop() == 0


def trickle(senders: list[socket.socket], data: bytes, is_over: threading.Event) -> None:
    """Send one byte of `data` to each every 0.2 s."""
    for byte in data:
        for sender in senders:
            with suppress(OSError):  # it was let go
                sender.send(bytes([byte]))
        if is_over.wait(0.2):
            return


def output_of(node: NodeProcess, task_id: str, argv: list[str]) -> bytes:
    with node.client() as client:
        client.call("submit", id=task_id, argv=argv)
        return b"".join(item["data"] for item in client.stream("wait", id=task_id))


def test_clients_that_stop_reading_cost_nobody_else_anything(
    trio: tuple[Fleet, NodeProcess],
) -> None:
    fleet, target = trio
    for number in range(20):  # so that a view is large and soon fills what the system buffers
        output_of(target, f"large-{number}", ["true", "x" * 4_000])
    with onslaught(fleet, target, growth_mib_max=64.0) as watch, ExitStack() as stack:
        clients = [stack.enter_context(target.client()) for _ in range(MUTE_CLIENTS)]
        for number, client in enumerate(clients):
            if number % 2:
                client.stream("views", interval_s=0.2)
            else:
                client.stream("events", follow=True, last=2_000)
        held, since = [-1], time.monotonic()
        deadline = since + PATIENCE_S
        while time.monotonic() < since + 1.0:
            assert time.monotonic() < deadline, "the node goes on sending"
            now_held = [waiting_bytes(client) for client in clients]
            if now_held != held:
                held, since = now_held, time.monotonic()
            time.sleep(0.05)
        print(f"{sum(held)} bytes wait for {MUTE_CLIENTS} clients, {max(held)} for one")
        assert max(held) > 50_000
        watch.wait_answers(5)


def waiting_bytes(client: Client) -> int:
    count = array.array("i", [0])
    fcntl.ioctl(client.fileno(), termios.FIONREAD, count)
    return count[0]


@pytest.mark.parametrize("count", [40_000, pytest.param(200_000, marks=pytest.mark.sweep)])
def test_random_and_mutated_datagrams_are_dropped_and_counted(
    trio: tuple[Fleet, NodeProcess], count: int
) -> None:
    fleet, target = trio
    at, burst_count = address_of(target), burst_that_fits()
    datagrams = list(islice(strange_datagrams(random.Random(count)), count))
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock,
        onslaught(fleet, target, growth_mib_max=10.0) as watch,
    ):
        dropped = dropped_in(target)
        begin = time.monotonic()
        for data in datagrams:  # at full speed: the system drops what does not fit into its buffer
            sock.sendto(data, at)
        flood_s = time.monotonic() - begin
        watch.wait_answers(2)
        flooded = dropped_in(target) - dropped
        begin = time.monotonic()
        for start in range(0, count, burst_count):  # and so that each one arrives
            dropped = dropped_in(target)
            burst = datagrams[start : start + burst_count]
            for data in burst:
                sock.sendto(data, at)
            wait_until(
                partial(are_dropped, target, dropped + len(burst)),
                PATIENCE_S,
                lambda: AssertionError(f"some of them were not counted: {counters(target)}"),
            )
        took_s = time.monotonic() - begin
    print(f"{count} sent in {flood_s:.1f} s, {flooded} of them counted; all in {took_s:.1f} s")
    assert flooded > count // 50


def burst_that_fits() -> int:
    """Return how many datagrams a node's receive buffer holds, which the system keeps within bounds."""
    bound = Path("/proc/sys/net/core/rmem_max")
    bytes_max = int(bound.read_text()) if bound.exists() else 131_072
    return 2 * min(bytes_max, RECEIVE_BUFFER_BYTES) // BURST_BYTES


def are_dropped(node: NodeProcess, count: int) -> bool | None:
    return dropped_in(node) >= count or None


def dropped_in(node: NodeProcess) -> int:
    return sum(n for name, n in counters(node).items() if name in STRANGE)


def strange_datagrams(rng: random.Random) -> Iterator[bytes]:
    """Yield noise, and real packets changed, cut and swollen: all of a mesh that is not the target's."""
    world = World(9, Node, Network(9, Conditions()), check=False)
    fleet = SimFleet(world, profile("local"), FleetOptions())
    for _ in range(4):
        fleet.boot(fleet.add())
    world.run_for(3.0)
    real = [data for data in captured(world) if len(data) <= DATAGRAM_BYTES_MAX]
    for piece in mangle(rng, real, real):
        if len(piece.data) <= LOOPBACK_BYTES_MAX:
            yield piece.data[:2] + FOREIGN_MESH + piece.data[10:]


class Disk:
    """A small file system of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def fill(self) -> None:
        """Write until no byte more fits."""
        with (self.home / "filling").open("wb", buffering=0) as file, suppress(OSError):
            while file.write(b"x" * 512):
                pass
        with (self.home / "filling").open("ab", buffering=0) as file, suppress(OSError):
            while file.write(b"x"):
                pass


@pytest.fixture
def disk() -> Iterator[Disk]:
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk to fill")
    home = Path(tempfile.mkdtemp(prefix="md-"))
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "none", str(home)]
    try:
        made = subprocess.run(mount, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        made = subprocess.CompletedProcess(mount, 127, "", "there is no mount command")
    try:
        if made.returncode:
            pytest.skip(f"a small disk cannot be mounted here: {made.stderr.strip()}")
        yield Disk(home)
    finally:
        if not made.returncode:
            subprocess.run(["umount", "-l", str(home)], check=True)
        home.rmdir()


def test_running_node_goes_on_when_the_disk_of_its_data_and_its_log_is_full(
    trio: tuple[Fleet, NodeProcess], disk: Disk
) -> None:
    fleet, _ = trio
    node = fleet.nodes["squeezed"] = NodeProcess("squeezed", disk.home, {MARK: fleet.mark}, ())
    fleet.start("squeezed")
    fleet.wait_whole(PATIENCE_S)
    disk.fill()
    size = node.log.stat().st_size
    with onslaught(fleet, node, growth_mib_max=16.0, besides={"guest"}, tasks={"on-full-disk"}):
        guest = fleet.start("guest")
        fleet.wait_whole(PATIENCE_S)
        assert output_of(node, "on-full-disk", ["echo", "fine"]) == b"fine\n"
        assert guest.stop() == 0
        wait_until(
            lambda: "left" in states_of(node, "guest") or None,
            PATIENCE_S,
            lambda: AssertionError(node.call("members")),
        )
    assert node.log.stat().st_size < size + 4096  # what fitted into the last page
    assert node.stop() == 0


def states_of(node: NodeProcess, name: str) -> list[str]:
    return [row["state"] for row in node.call("members") if row["name"] == name]


@pytest.mark.parametrize("is_new", [True, False], ids=["first start", "next start"])
def test_starting_node_says_in_one_line_that_its_disk_is_full(
    mesh: Mesh, disk: Disk, is_new: bool
) -> None:
    data = disk.home / "d"
    identity = data / "identity"
    if not is_new:
        open_data_dir(data, time.time()).close()
    kept = identity.read_bytes() if not is_new else b""
    disk.fill()
    found = mesh("join", "--headless", "--bind", "127.0.0.1:0", "--data", str(data))
    assert found.returncode == 1, found.stderr
    assert found.stdout == ""
    (line,) = found.stderr.splitlines()
    pattern = r"mesh: a .* is expected, found .*: No space left on device; .*--data"
    assert re.fullmatch(pattern, line), line
    assert (identity.read_bytes() if identity.exists() else b"") == kept


def test_terminal_that_vanishes_under_a_joined_node_lets_it_leave_in_order(
    trio: tuple[Fleet, NodeProcess],
) -> None:
    fleet, target = trio
    begin_ns = time.time_ns()
    with tempfile.TemporaryDirectory(prefix="mt-") as home:
        arguments = ("--name", "seated", "--bind", "127.0.0.1:0", "--profile", "lan")
        with Seat(Path(home), "join", *arguments, "--data", f"{home}/d", fleet.seed) as seat:
            seat.read_until(b"members")
            wait_until(
                lambda: states_of(target, "seated") == ["alive"] or None,
                PATIENCE_S,
                lambda: AssertionError(target.call("members")),
            )
            seat.vanish()
            seat.process.wait(PATIENCE_S)
            wait_until(
                lambda: states_of(target, "seated") == ["left"] or None,
                PATIENCE_S,
                lambda: AssertionError(target.call("members")),
            )
            assert seat.process.returncode == 0
            seat.assert_nothing_runs()
    assert accusations(target, begin_ns) == []


def test_terminal_that_vanishes_under_top_leaves_the_node_alone(
    trio: tuple[Fleet, NodeProcess],
) -> None:
    fleet, target = trio
    with (
        tempfile.TemporaryDirectory(prefix="mt-") as home,
        onslaught(fleet, target, growth_mib_max=16.0),
        Seat(Path(home), "top", "--data", str(target.data)) as seat,
    ):
        seat.read_until(b"third")
        seat.vanish()
        assert seat.process.wait(PATIENCE_S) in {0, 129, -signal.SIGHUP}
        seat.assert_nothing_runs()
