"""The nodes of an experiment on loopback, each with slots, options and processors of its own, and what is done to them.

Each node keeps its address and directory, so that it comes back as itself. Leaving the `with` block ends every process
by its id and removes every file.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from bench.contests.diary import Diary, Line
from mesh.bench.contestant import BenchError, tether
from mesh.bench.ports import free_ports
from mesh.client import Client
from mesh.core.ids import NodeId, id_of
from mesh.fleet.clearing import undisturbed, wait_until
from mesh.fleet.fleet import Fleet, NodeProcess

PROFILE: Final = "local"
VOTERS: Final = 3
PATIENCE_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """One node as it is started."""

    name: str
    slots: int
    options: tuple[str, ...] = ()
    """Further words for `mesh join`."""

    processor: int | None = None
    """The only one that it, and its work, may use; None: any."""


class Site:
    """Nodes that all see each other, three of them voters, and the diary of what they run."""

    def __init__(self, seats: Sequence[Seat]) -> None:
        """Start nothing yet."""
        self.seats = {seat.name: seat for seat in seats}
        self._stack = ExitStack()
        ports = free_ports(len(seats))
        place = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="mesh-contests-"))
        self.diary = Diary(Path(place) / "diary")
        inside = {
            seat.name: ("taskset", "-c", str(seat.processor))
            for seat in seats
            if seat.processor is not None
        }
        self.fleet = Fleet(PROFILE, wrapper=tether(), inside=inside)
        self._stack.callback(self.fleet.close)
        self._address = {
            name: f"127.0.0.1:{port}" for name, port in zip(self.seats, ports, strict=True)
        }
        self._name_of_pid: dict[int, str] = {}
        self.voters: list[str] = []
        """Who votes, as those who do said last."""

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            with undisturbed():
                self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with undisturbed():
            self._stack.close()

    # Starting and ending.

    def _start(self) -> None:
        """Start every node, and wait until all see each other and three of them vote."""
        first, *others = self.names
        self._launch(first, ())
        self.node(first).wait_ready(PATIENCE_S)
        for name in others:
            self._launch(name, [self._address[first]])
        self.wait_whole()

    def _launch(self, name: str, seeds: Sequence[str]) -> None:
        """Start a node and return at once."""
        seat = self.seats[name]
        words = (*seat.options, *seeds)
        self.fleet.launch(name, *words, slots=seat.slots, bind=self._address[name])

    def restart(self, name: str) -> None:
        """Start a node that has ended again, and wait until all stand as before."""
        self.node(name).wait_ended(PATIENCE_S)
        self._launch(name, [self._address[other] for other in self.names if other != name][:3])
        self.wait_whole()

    def wait_whole(self) -> None:
        """Wait until all see each other, and three vote.

        Raises:
            BenchError: they do not in time.
        """
        for name in self.names:
            self.node(name).wait_ready(PATIENCE_S)
            self._name_of_pid[self.node(name).pid] = name
        self.fleet.wait_whole(PATIENCE_S)

        def seated() -> list[str] | None:
            # Who does not vote may know a roster that was followed by another: it asks when it needs to.
            found = [self.ask(name, "status")["registers"] for name in self.names]
            rosters = [one["voters"] for one in found if one["votes"]]
            is_one = len(rosters) == VOTERS and all(one == rosters[0] for one in rosters)
            return list(rosters[0]) if is_one and len(rosters[0]) == VOTERS else None

        self.voters = wait_until(
            seated, PATIENCE_S, lambda: BenchError(f"{VOTERS} nodes that vote are expected")
        )

    def wait_free(self) -> None:
        """Wait until all slots of all nodes are free.

        Raises:
            BenchError: they are not in time.
        """

        def are_free() -> bool | None:
            return all(not self.ask(name, "status")["used"] for name in self.names) or None

        wait_until(are_free, PATIENCE_S, lambda: BenchError("all slots should be free again"))

    def kill(self, name: str) -> None:
        """End a node with SIGKILL; its guardian goes on, and tells."""
        os.kill(self.node(name).pid, signal.SIGKILL)

    def burn(self, processor: int, loops: int) -> Callable[[], None]:
        """Keep one processor busy with so many endless loops; return what ends them."""
        command = [sys.executable, "-I", "-S", "-c", "while True: pass"]
        pinned = [*tether(), "taskset", "-c", str(processor), *command]
        processes = [subprocess.Popen(pinned) for _ in range(loops)]

        def end() -> None:
            for process in processes:
                process.kill()
                process.wait()
            processes.clear()

        self._stack.callback(end)
        return end

    # Asking.

    @property
    def names(self) -> list[str]:
        """All nodes, in the order of their first start."""
        return list(self.seats)

    @property
    def slots(self) -> int:
        """Slots of all nodes together."""
        return sum(seat.slots for seat in self.seats.values())

    def node(self, name: str) -> NodeProcess:
        """Return a node."""
        return self.fleet.nodes[name]

    def client(self, name: str) -> Client:
        """Return a new connection to a node."""
        return Client(self.node(name).data)

    def ask(self, name: str, what: str, **how: Any) -> Any:  # noqa: ANN401 - JSON comes back
        """Ask a node one question."""
        with self.client(name) as client:
            return client.call(what, **how)

    def ids(self) -> dict[str, NodeId]:
        """Return every node's id by its name."""
        rows = self.ask(self.names[0], "members")
        return {row["name"]: NodeId(id_of(row["node_id"]) or 0) for row in rows}

    def owner(self, line: Line) -> str:
        """Return the name of the node that began, or ended, a command."""
        return self._name_of_pid.get(line.node_pid, "?")
