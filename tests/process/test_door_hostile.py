"""A real sealed mesh among strangers: other keys, hostile datagrams and streams, and its own old traffic."""

from __future__ import annotations

import os
import random
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path

import pytest

from mesh.core.address import Address
from mesh.errors import MeshUnreachable
from mesh.fleet.clearing import wait_until
from mesh.fleet.fleet import Fleet, NodeProcess
from mesh.seal.handshake import AskerHandshake
from mesh.seal.key import Key
from mesh.seal.ring import ring_of
from mesh.wire.frames import frame
from tests.process.onslaught import PATIENCE_S, address_of, onslaught
from tests.process.sealed_fleet import (
    Datagram,
    Replayer,
    dropped_before_reading,
    recorder,
    start,
    write_key,
)

GROWTH_MIB_MAX = 8.0
BURST = 200
STRANGER = Key(b"stranger".ljust(32, b"."))


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "mesh.key"
    write_key(path)
    return path


@pytest.fixture(scope="module")
def sealed(key_file: Path) -> Iterator[tuple[Fleet, list[NodeProcess]]]:
    """Three nodes with a key and the timings of a real site."""
    with Fleet("lan") as fleet:
        yield fleet, start(fleet, 3, key_file)


def test_meshes_with_other_keys_and_with_none_never_exchange_a_member(tmp_path: Path) -> None:
    files = [tmp_path / "one.key", tmp_path / "two.key"]
    for file in files:
        write_key(file)
    with ExitStack() as stack:
        fleets = [stack.enter_context(Fleet("local")) for _ in range(3)]
        options = [("--key", str(file)) for file in files] + [()]
        for number, (fleet, option) in enumerate(zip(fleets, options, strict=True)):
            fleet.start(f"m{number}-first", *option, "--found")
        seeds = [fleet.seed for fleet in fleets]
        for number, (fleet, option) in enumerate(zip(fleets, options, strict=True)):
            others = [seed for seed in seeds if seed != fleet.seed]
            fleet.start(f"m{number}-second", *option, fleet.seed, *others)
            fleet.launch(f"m{number}-stray", *option, *others)  # knows none of its own
            wait_until(partial(_answers, fleet.nodes[f"m{number}-stray"]), PATIENCE_S, _no_answer)
        time_to_mix_s = 5.0
        deadline = time.monotonic() + time_to_mix_s
        while time.monotonic() < deadline:
            for number, fleet in enumerate(fleets):
                for node in fleet.running():
                    names = {row["name"] for row in node.call("members")}
                    assert all(name.startswith(f"m{number}-") for name in names), names
            time.sleep(0.2)
        for number, fleet in enumerate(fleets):
            stray = fleet.nodes[f"m{number}-stray"]
            assert stray.call("status")["phase"] == "seeking"
            assert "key" in stray.log_text()
            members = fleet.nodes[f"m{number}-first"].call("members")
            assert len(members) == 2


def _answers(node: NodeProcess) -> bool | None:
    try:
        return bool(node.call("status"))
    except MeshUnreachable:
        return None


def _no_answer() -> Exception:
    return AssertionError("it does not answer")


def flood(target: NodeProcess, datagrams: Iterator[Datagram]) -> int:
    """Send each, a burst at a time, and see that all were dropped before they were read."""
    replayer, count = Replayer(), 0
    try:
        while burst := list(islice(datagrams, BURST)):
            before = dropped_before_reading(target)
            for datagram in burst:
                replayer.send(datagram)
            count += len(burst)
            wait_until(
                partial(_has_dropped, target, before + len(burst) // 2),
                PATIENCE_S,
                lambda: AssertionError("most of them were not counted as dropped"),
            )
    finally:
        replayer.close()
    return count


def _has_dropped(target: NodeProcess, count: int) -> bool | None:
    return dropped_before_reading(target) >= count or None


def hostile(rng: random.Random, tape: list[Datagram], to: Address) -> Iterator[Datagram]:
    """Yield noise, changed recordings and recordings, all of them to one node, for ever."""
    while True:
        real = rng.choice(tape)
        kind = rng.randrange(5)
        data = bytearray(real.data)
        if kind == 0:
            data = bytearray(rng.randbytes(rng.choice((1, 21, 22, 38, 100, 1_400))))
        elif kind == 1:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del data[rng.randrange(len(data)) :]
        elif kind == 3:
            data = bytearray(b"S" + rng.randbytes(60))
        yield Datagram(real.source, to, bytes(data) or b"x")


@pytest.mark.parametrize("count", [4_000, pytest.param(200_000, marks=pytest.mark.sweep)])
def test_hostile_datagrams_with_knowledge_of_old_traffic_change_nothing(
    sealed: tuple[Fleet, list[NodeProcess]], count: int
) -> None:
    fleet, nodes = sealed
    target = nodes[0]
    with recorder({address_of(node).port for node in nodes}) as tape:
        wait_until(
            lambda: len(tape) >= 20 or None, PATIENCE_S, lambda: AssertionError("nothing recorded")
        )
    rng = random.Random(count)
    datagrams = hostile(rng, list(tape), address_of(target))
    flood(target, islice(datagrams, 1_000))  # what is allocated once
    with onslaught(fleet, target, growth_mib_max=GROWTH_MIB_MAX):
        assert flood(target, islice(datagrams, count)) == count


@pytest.mark.parametrize("seconds", [15.0, pytest.param(600.0, marks=pytest.mark.sweep)])
def test_recorded_traffic_of_a_busy_mesh_replayed_changes_nothing(
    key_file: Path, seconds: float
) -> None:
    with Fleet("lan") as fleet:
        nodes = start(fleet, 3, key_file)
        ports = {address_of(node).port for node in nodes}
        with recorder(ports) as tape:
            _live(fleet, nodes, key_file, seconds, ports)
        heard = list(tape)
        wait_until(
            lambda: _keep_the_same(nodes) or None,
            PATIENCE_S,
            lambda: AssertionError("three are to vote, and to keep the same tasks"),
        )
        assert len(heard) > seconds
        rng = random.Random(1)
        with _unchanged(fleet):
            _replay(heard)
            rng.shuffle(heard)
            _replay(heard)
        restarted = fleet.nodes["n2"]
        restarted.kill()
        fleet.start("n2", "--key", str(key_file), fleet.seed, bind=str(_last_address(nodes[1])))
        fleet.wait_whole(60.0)
        with _unchanged(fleet):
            _replay(heard)
        gone = nodes[2]
        assert gone.stop() == 0
        wait_until(
            lambda: _state(nodes[0], "n3") == "left" or None,
            PATIENCE_S,
            lambda: AssertionError(nodes[0].call("members")),
        )
        with _unchanged(fleet):
            _replay(heard)
        nodes[0].call("forget", whom="n3")
        wait_until(
            lambda: all(_state(node, "n3") == "" for node in nodes[:2]) or None,
            PATIENCE_S,
            lambda: AssertionError(nodes[0].call("members")),
        )
        with _unchanged(fleet):
            _replay(heard)
        print(f"{len(heard)} datagrams of {seconds:g} s, replayed five times")


_addresses: dict[str, Address] = {}


def _last_address(node: NodeProcess) -> Address:
    return _addresses[node.name]


def _keep_the_same(nodes: list[NodeProcess]) -> bool:
    """Say whether all of them vote, and have been given what was kept before they did."""
    voting = all(node.call("status")["registers"]["votes"] for node in nodes)
    kept = {tuple(sorted(t["id"] for t in node.call("tasks")["tasks"])) for node in nodes}
    return voting and len(kept) == 1


def _live(
    fleet: Fleet, nodes: list[NodeProcess], key_file: Path, seconds: float, ports: set[int]
) -> None:
    """Let the mesh work for a while: tasks, joins, a leave, a kill and a forgetting."""
    for node in nodes:
        _addresses[node.name] = address_of(node)
    until, number = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        number += 1
        guest = fleet.start(f"guest{number}", "--key", str(key_file), fleet.seed)
        ports.add(address_of(guest).port)
        nodes[number % 3].call("submit", argv=["true"])
        if number % 2:
            assert guest.stop() == 0
        else:
            guest.kill()
            wait_until(
                partial(_is_gone, nodes[0], guest.name),
                60.0,
                lambda: AssertionError(nodes[0].call("members")),
            )
            nodes[0].call("forget", whom=guest.name)
        time.sleep(min(2.0, max(0.0, until - time.monotonic())))
    fleet.wait_whole(60.0)


def _state(node: NodeProcess, name: str) -> str:
    rows = [row["state"] for row in node.call("members") if row["name"] == name]
    return rows[0] if rows else ""


def _is_gone(node: NodeProcess, name: str) -> bool | None:
    return _state(node, name) in {"dead", "left"} or None


@contextmanager
def _unchanged(fleet: Fleet) -> Iterator[None]:
    target = fleet.running()[0]
    with onslaught(fleet, target, growth_mib_max=GROWTH_MIB_MAX):
        yield


def _replay(heard: list[Datagram]) -> None:
    replayer = Replayer()
    try:
        for number, datagram in enumerate(heard):
            replayer.send(datagram)
            if number % BURST == 0:
                time.sleep(0.01)  # a pace at which the sockets lose little
    finally:
        replayer.close()


def _silent(_sock: socket.socket) -> None:
    """Say nothing."""


def _zeros(sock: socket.socket) -> None:
    sock.sendall(b"\0" * 65_536)


def _garbage(sock: socket.socket) -> None:
    sock.sendall(os.urandom(4_000))


def _huge(sock: socket.socket) -> None:
    sock.sendall(struct.pack(">I", (1 << 32) - 1) + b"z" * 1_000)


def _half_hello(sock: socket.socket) -> None:
    sock.sendall(frame(_hello())[:40])


def _unknown_key(sock: socket.socket) -> None:
    sock.sendall(frame(_hello()))


def _many_hellos(sock: socket.socket) -> None:
    sock.sendall(frame(_hello()) * 2_000)


def _request_in_clear(sock: socket.socket) -> None:
    sock.sendall(frame(b"\0\0\0\1\0" + os.urandom(60)))


def _http(sock: socket.socket) -> None:
    sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")


def _hello() -> bytes:
    return AskerHandshake(ring_of([STRANGER]), os.urandom).hello()


KINDS: tuple[Callable[[socket.socket], None], ...] = (
    _silent,
    _zeros,
    _garbage,
    _huge,
    _half_hello,
    _unknown_key,
    _many_hellos,
    _request_in_clear,
    _http,
)


@pytest.mark.parametrize("count", [200, pytest.param(2_000, marks=pytest.mark.sweep)])
def test_hostile_streams_change_nothing_and_hold_no_memory(
    sealed: tuple[Fleet, list[NodeProcess]], count: int
) -> None:
    fleet, nodes = sealed
    target = nodes[0]
    with (
        ExitStack() as stack,
        onslaught(fleet, target, growth_mib_max=GROWTH_MIB_MAX) as watch,
    ):
        for number in range(count):
            sock = socket.create_connection(address_of(target), timeout=PATIENCE_S)
            stack.callback(sock.close)
            with suppress(OSError):  # it was let go in the middle
                KINDS[number % len(KINDS)](sock)
            if number % 400 == 399:
                watch.wait_answers(2)
        watch.wait_answers(5)
