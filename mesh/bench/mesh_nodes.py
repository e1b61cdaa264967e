"""Mesh as a contestant: headless nodes, followed through their control sockets."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mesh.bench.contestant import Contestant, Traffic, tether
from mesh.bench.ground import LOOPBACK, Ground
from mesh.bench.sightings import Sight, Sighting
from mesh.errors import MeshError, MeshUnreachable
from mesh.fleet.fleet import Fleet, NodeProcess
from mesh.version import __version__

EVENTS_MAX: Final = 1_000
GATHER_S: Final = 0.1
"""Events bear the time at which they happened: told together, they do not disturb what they tell of."""

LAST_LINES: Final = 3
_CONNECT_S: Final = 60.0
_POLL_S: Final = 0.02
_SIGHTS: Final = {
    "join": Sight.ALIVE,
    "return": Sight.ALIVE,
    "refute": Sight.ALIVE,
    "suspect": Sight.SUSPECT,
    "dead": Sight.DEAD,
    "leave": Sight.LEFT,
}


def sighting_of(event: Mapping[str, Any]) -> Sighting | None:
    """Return what an event of the control socket says about a member; None: nothing of interest."""
    sight = _SIGHTS.get(event["kind"])
    if sight is None or not event["member"] or event["member"] == event["observer"]:
        return None
    return Sighting(event["at_ns"], event["observer"], sight, event["member"])


class MeshNodes(Contestant):
    """A fleet of nodes with one profile.

    `settings` are further words for `mesh join`, and `about` tells of them.
    """

    def __init__(
        self,
        ports: Mapping[str, int],
        profile: str,
        *,
        fault_hook: bool,
        settings: Sequence[str] = (),
        about: str = "",
        ground: Ground = LOOPBACK,
    ) -> None:
        text = f"Mesh {__version__}, {profile}{about}"
        super().__init__("mesh", text, ports, tells_refutations=True, ground=ground)
        self._options = tuple(settings)
        environment = {"MESH_FAULT_HOOK": "1"} if fault_hook else {}
        self._fleet = Fleet(
            profile,
            environment=environment,
            wrapper=tether(),
            inside={name: ground.inside(name) for name in ports},
        )
        self._sent: dict[str, tuple[float, dict[str, int]]] = {}

    def spawn(self, member: str, seed: str | None) -> None:
        """Start a node and follow its events as soon as it can be asked."""
        seeds = (self.address(seed),) if seed else ()
        node = self._fleet.launch(member, *self._options, *seeds, bind=self.address(member))
        self.pids[member] = node.outer_pid
        threading.Thread(
            target=self._follow,
            args=(node, node.outer_pid),
            name=f"events of {member}",
            daemon=True,
        ).start()

    def _follow(self, node: NodeProcess, pid: int) -> None:
        deadline = time.monotonic() + _CONNECT_S
        has_answered = False
        while not has_answered and time.monotonic() < deadline:
            try:
                with node.client() as client:
                    asked = {"follow": True, "last": EVENTS_MAX, "gather_s": GATHER_S}
                    for event in client.stream("events", **asked):
                        has_answered = True
                        sighting = sighting_of(event)
                        if sighting is not None and node.outer_pid == pid:
                            self.log.add(sighting)
            except MeshUnreachable:
                if not node.is_running or node.outer_pid != pid:
                    return
                time.sleep(_POLL_S)
            except MeshError:
                return

    def pid(self, member: str) -> int:
        """Return the node's own process: its guardian is neither paused nor killed."""
        return self._fleet.nodes[member].pid

    def data(self, member: str) -> Path:
        """Return a node's data directory, by which its clients reach it."""
        return self._fleet.nodes[member].data

    def last_words(self, member: str) -> str | None:
        """Return the end of the log of a node that has ended."""
        node = self._fleet.nodes[member]
        if node.is_running:
            return None
        return " / ".join(node.log_text().strip().splitlines()[-LAST_LINES:])

    def kill(self, member: str) -> int:
        """End the node with SIGKILL."""
        at_ns = self._fleet.nodes[member].kill()
        self.log.forget(member)
        return at_ns

    def leave(self, member: str) -> int:
        """Let the node leave by its control socket."""
        node = self._fleet.nodes[member]
        at_ns = time.time_ns()
        node.call("leave", reason="benchmark")
        node.wait_ended()
        self.log.forget(member)
        return at_ns

    def toggle_deafness(self, member: str) -> int:
        """Use the fault hook."""
        at_ns = time.time_ns()
        os.kill(self.pid(member), signal.SIGUSR2)
        return at_ns

    def begin_traffic(self) -> None:
        """Remember every node's own counters."""
        self._sent = {node.name: _sent(node) for node in self._fleet.running()}

    def end_traffic(self) -> list[Traffic]:
        """Return the rates of every node's own counters."""
        return [
            traffic_of(*self._sent[node.name], *_sent(node))
            for node in self._fleet.running()
            if node.name in self._sent
        ]

    def close(self) -> None:
        """End all nodes at once, without a leave, and remove their directory."""
        for node in self._fleet.running():
            node.kill()
        self._fleet.close()


def _sent(node: NodeProcess) -> tuple[float, dict[str, int]]:
    sent: dict[str, int] = node.call("status")["sent"]
    return time.monotonic(), sent


def traffic_of(
    start_s: float, before: Mapping[str, int], end_s: float, after: Mapping[str, int]
) -> Traffic:
    """Return the rates between two readings of a node's `sent` counters."""
    rate = {key: (after[key] - before[key]) / (end_s - start_s) for key in before}
    return Traffic(
        packets_s=rate["datagrams"],
        udp_bytes_s=rate["datagram_bytes"],
        tcp_frames_s=rate["frames"],
        tcp_bytes_s=rate["frame_bytes"],
    )
