"""Real nodes with a key, `mesh key` at each, and a recorder of their datagrams."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from mesh.core.address import Address
from mesh.fleet.fleet import Fleet, NodeProcess
from mesh.seal.key import KEY_BYTES, Key

_IP_UDP: Final = 17
_ETH_BYTES: Final = 14


def write_key(path: Path, key: Key | None = None) -> Key:
    """Write a key file as `mesh keygen` does; return the key."""
    key = key or Key(os.urandom(KEY_BYTES))
    path.write_text(key.to_text() + "\n")
    path.chmod(0o600)
    return key


def start(fleet: Fleet, count: int, key: Path, *, slots: int = 1) -> list[NodeProcess]:
    """Start members with a key and wait until all see each other."""
    nodes = []
    for number in range(count):
        seeds = (fleet.seed,) if fleet.seed else ()
        nodes.append(fleet.start(f"n{number + 1}", "--key", str(key), *seeds, slots=slots))
    fleet.wait_whole(60.0)
    return nodes


def mesh_key(node: NodeProcess, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `mesh key …` at a node."""
    return subprocess.run(
        [sys.executable, "-m", "mesh", "key", *arguments, "--data", str(node.data)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60.0,
        check=False,
    )


def keys_of(node: NodeProcess) -> list[str]:
    """Return the ids of a node's keys, the sealing one first."""
    found: list[str] = node.call("status")["keys"]
    return found


class Datagram(NamedTuple):
    """A recorded datagram."""

    source: Address
    to: Address
    data: bytes


@contextmanager
def recorder(ports: set[int]) -> Iterator[list[Datagram]]:
    """Record every datagram between these ports of loopback; skip where that needs rights we lack."""
    try:
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        sock.bind(("lo", 0))
    except (OSError, AttributeError) as error:
        pytest.skip(f"loopback cannot be recorded here: {error}")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    sock.settimeout(0.2)
    tape: list[Datagram] = []
    is_over = threading.Event()

    def run() -> None:
        while not is_over.is_set():
            try:
                frame, where = sock.recvfrom(65_535)
            except TimeoutError:
                continue
            found = _datagram(frame, ports) if where[2] == socket.PACKET_OUTGOING else None
            if found is not None:
                tape.append(found)

    thread = threading.Thread(target=run, name="recorder", daemon=True)
    thread.start()
    try:
        yield tape
    finally:
        is_over.set()
        thread.join(10.0)
        sock.close()


def _datagram(frame: bytes, ports: set[int]) -> Datagram | None:
    ip = frame[_ETH_BYTES:]
    if len(ip) < 28 or ip[0] >> 4 != 4 or ip[9] != _IP_UDP:
        return None
    udp = ip[(ip[0] & 15) * 4 :]
    source, to, size = struct.unpack_from(">HHH", udp)
    if source not in ports or to not in ports:
        return None
    return Datagram(Address("127.0.0.1", source), Address("127.0.0.1", to), udp[8:size])


class Replayer:
    """Sends datagrams from any port of loopback, by a raw socket."""

    def __init__(self) -> None:
        self._sock = socket.socket(socket.AF_INET, socket.SOCK_RAW, _IP_UDP)

    def send(self, datagram: Datagram) -> None:
        """Send it as if it came from where it came from when it was recorded."""
        data = datagram.data[:65_000]
        head = struct.pack(">HHHH", datagram.source.port, datagram.to.port, 8 + len(data), 0)
        self._sock.sendto(head + data, (datagram.to.host, 0))

    def close(self) -> None:
        self._sock.close()


def dropped_before_reading(node: NodeProcess) -> int:
    counters: dict[str, Any] = node.call("status")["counters"]
    names = ("unsealed", "unopened", "replayed", "reflected", "unproven")
    return sum(int(counters.get(f"dropped_{name}", 0)) for name in names)
