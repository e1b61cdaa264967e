"""The nodes of a run, on loopback or each on a host of its own, and all that can be done to them.

Each node keeps its address and its directory, so that it comes back as itself. A node is two processes here,
the guardian and the node, and the work that the node has started.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, Self

from mesh.bench.contestant import tether
from mesh.bench.ground import LOOPBACK, Ground
from mesh.bench.namespaces import Namespaces
from mesh.bench.ports import free_ports
from mesh.errors import MeshError
from mesh.fleet.clearing import end_marked, wait_until
from mesh.fleet.fleet import Fleet, FleetError, NodeProcess
from mesh.guardian.process import below, look, survey

PROFILE: Final = "local"
VOTERS: Final = 3
SEEDS: Final = 3
PATIENCE_S: Final = 60.0
PORT: Final = 7946


class Stage:
    """N nodes, all members, three of them voters. Leaving the `with` block ends and removes all."""

    def __init__(
        self, count: int, *, is_apart: bool = False, slots: int = 2, spare: int = 0
    ) -> None:
        """Start nothing yet. `spare`: seats of members that may come later."""
        self.names = [f"n{number}" for number in range(1, count + 1)]
        self.spares = [f"n{number}" for number in range(count + 1, count + spare + 1)]
        seats = [*self.names, *self.spares]
        self._slots = slots
        self._stack = ExitStack()
        self.ground: Ground = LOOPBACK
        try:
            if is_apart:
                namespaces = Namespaces(seats)
                self._stack.callback(namespaces.close)
                self.ground = namespaces
            ports = [PORT] * len(seats) if is_apart else free_ports(len(seats))
            self.fleet = Fleet(
                PROFILE, wrapper=tether(), inside={name: self.ground.inside(name) for name in seats}
            )
            self._stack.callback(self.fleet.close)
            self._options = ["--key", str(self._new_key())] if is_apart else []
        except BaseException:
            self._stack.close()
            raise
        self._address = {
            name: f"{self.ground.host(name)}:{port}"
            for name, port in zip(seats, ports, strict=True)
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    # Starting.

    def start_all(self) -> None:
        """Start every node, and wait until all see each other and three of them vote."""
        self.launch(self.names[0], ())
        self.fleet.nodes[self.names[0]].wait_ready(PATIENCE_S)
        for name in self.names[1:]:
            self.launch(name)
        self.wait_whole()
        self.wait_voters()

    def launch(self, name: str, seeds: Sequence[str] | None = None) -> None:
        """Start a node, for the first time or again, and return at once."""
        if seeds is None:
            others = [self._address[other] for other in self.names if other != name]
            seeds = others[:SEEDS]
        self.fleet.launch(name, *self._options, *seeds, slots=self._slots, bind=self._address[name])

    def restart(self, name: str) -> None:
        """Start a node again and wait until it is a member."""
        self.launch(name)
        self.node(name).wait_ready(PATIENCE_S)

    def wait_whole(self) -> None:
        """Wait until all that run see each other."""
        for node in self.fleet.running():
            node.wait_ready(PATIENCE_S)
        self.fleet.wait_whole(PATIENCE_S)

    def wait_voters(self) -> None:
        """Wait until three nodes vote in one roster."""
        wait_until(
            lambda: (len(self.voters()) == VOTERS and all(map(self._votes, self.voters()))) or None,
            PATIENCE_S,
            lambda: FleetError(f"{VOTERS} voters are expected, found {self.voters()}"),
        )

    def _votes(self, name: str) -> bool:
        found = self.node(name).call("status")["registers"]
        return bool(found["votes"]) and len(found["voters"]) == len(self.voters())

    # Looking.

    def node(self, name: str) -> NodeProcess:
        """Return a node."""
        return self.fleet.nodes[name]

    def running(self) -> list[str]:
        """Return who runs."""
        return [node.name for node in self.fleet.running()]

    def doors(self) -> list[Path]:
        """Return the data directories of those that run."""
        return [node.data for node in self.fleet.running()]

    def status(self) -> dict[str, Any]:
        """Return the status of the first node that answers.

        Raises:
            FleetError: none does.
        """
        for node in self.fleet.running():
            with contextlib.suppress(MeshError), node.client() as client:
                found: dict[str, Any] = client.call("status")
                return found
        raise FleetError("no node of this stage answers")

    def voters(self) -> list[str]:
        """Return who votes, as the first node that answers has it."""
        return [name for name in self.status()["registers"]["voters"] if name in self.fleet.nodes]

    def ids(self) -> dict[str, int]:
        """Return every member's node id by its name."""
        node = self.fleet.running()[0]
        return {row["name"]: int(row["node_id"], 16) for row in node.call("members")}

    def tree(self, name: str) -> list[int]:
        """Return all processes of a node: its guardian, itself, and its work."""
        guardian = self.node(name).outer_pid
        return [guardian, *(process.pid for process in below((guardian,), survey()))]

    # Breaking and mending.

    def signal(self, pids: Sequence[int], number: int) -> None:
        """Send a signal to some processes, as fast as can be; those that are gone are passed over."""
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def wait_gone(self, name: str, node_pid: int) -> None:
        """Wait until a node and its guardian have ended."""
        node = self.node(name)
        wait_until(
            lambda: (not node.is_running and _is_gone(node_pid)) or None,
            PATIENCE_S,
            lambda: FleetError(f"{name}: process {node_pid} has not ended"),
        )

    def kill_everything(self) -> None:
        """End every process of every node at one moment, as far as that can be done one by one."""
        pids = [pid for name in self.running() for pid in self.tree(name)]
        self.signal(pids, signal.SIGKILL)
        end_marked(self.fleet.mark)
        for name in self.fleet.nodes:
            self.node(name).wait_ended(PATIENCE_S)

    def rule(self, name: str, *rules: str) -> None:
        """Add rules to a host's packet filter, each as iptables reads it."""
        for rule in rules:
            self._iptables(name, rule)

    def unrule(self, name: str) -> None:
        """Let a host's packets pass again."""
        self._iptables(name, "-F")

    def mount_small(self, name: str, mebibytes: int) -> Path:
        """Give a node, before its first start, a disk of its own that is soon full."""
        place = self.fleet.home / name
        place.mkdir(mode=0o700)
        _run("mount", "-t", "tmpfs", "-o", f"size={mebibytes}m,mode=700", "none", str(place))
        # Lazily: its node may still run then, and the fleet is closed after this.
        self._stack.callback(_run, "umount", "-l", str(place))
        return place

    def _iptables(self, name: str, rule: str) -> None:
        _run(*self.ground.inside(name), "iptables", "-w", *rule.split())

    def _new_key(self) -> Path:
        path = self.fleet.home / "mesh.key"
        _run(sys.executable, "-m", "mesh", "keygen", str(path))
        return path


def _is_gone(pid: int) -> bool:
    process = look(pid)
    return process is None or process.is_dead


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    if done.returncode:
        raise FleetError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
