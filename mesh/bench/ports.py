"""Ports for nodes that must come back at the same address, and the moment when each is bound.

The ports lie below those that Linux hands out by itself (from 32768 on, unless it is told otherwise), so
that no outgoing connection takes one while its node is down. The moment is read from the kernel's table
of sockets (Linux): nobody connects to the node for it.
"""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from mesh.errors import MeshError

HOST: Final = "127.0.0.1"
LOW: Final = 11_000
HIGH: Final = 21_500
_POLL_S: Final = 0.001
LOOPBACK_TABLES: Final = (Path("/proc/net/udp"), Path("/proc/net/udp6"))


class PortsError(MeshError):
    """There are not enough free ports."""


def free_ports(count: int) -> list[int]:
    """Return `count` ports that are free for UDP and TCP on loopback, in no order."""
    candidates = list(range(LOW, HIGH))
    random.Random().shuffle(candidates)
    found: list[int] = []
    for port in candidates:
        if len(found) == count:
            break
        if _is_free(port):
            found.append(port)
    if len(found) < count:
        raise PortsError(
            f"{count} free ports from {LOW} to {HIGH} are expected, found {len(found)}"
        )
    return found


def _is_free(port: int) -> bool:
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        with socket.socket(socket.AF_INET, kind) as sock:
            try:
                sock.bind((HOST, port))
            except OSError:
                return False
    return True


def bound_ports(table: str) -> set[int]:
    """Return the local ports in a table of sockets as /proc/net/udp has it."""
    return {
        int(line.split(None, 2)[1].rpartition(":")[2], 16)
        for line in table.splitlines()[1:]
        if line.strip()
    }


class BindWatch:
    """Notes when each of some ports is first seen bound (UDP), from entering the `with` block on.

    `tables` returns the files to look into; those that are gone are passed over.
    """

    def __init__(
        self, ports: set[int], tables: Callable[[], Sequence[Path]] = lambda: LOOPBACK_TABLES
    ) -> None:
        self._tables = tables
        self._missing = set(ports)
        self._seen_ns: dict[int, int] = {}
        self._changed = threading.Condition()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="bind watch", daemon=True)

    def wait(self, ports: set[int], timeout_s: float) -> dict[int, int]:
        """Wait until all these are bound; return the Unix time in ns of each that is."""
        with self._changed:
            self._changed.wait_for(lambda: ports <= self._seen_ns.keys(), timeout_s)
            return {port: at_ns for port, at_ns in self._seen_ns.items() if port in ports}

    def _watch(self) -> None:
        while self._missing and not self._is_over.is_set():
            bound = set().union(*(bound_ports(_text(table)) for table in self._tables()))
            now_ns = time.time_ns()
            new = self._missing & bound
            if new:
                self._missing -= new
                with self._changed:
                    self._seen_ns.update(dict.fromkeys(new, now_ns))
                    self._changed.notify_all()
            self._is_over.wait(_POLL_S)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join()


def _text(table: Path) -> str:
    try:
        return table.read_text()
    except OSError:  # no IPv6 here, or its process has ended
        return ""
