"""Who is measured: Mesh and the peers that were asked for, put up on loopback or on hosts of their own.

The peers are found, and built, once; their members are put up anew for each ground. Whatever is put up is
cleared away with the stack that it was given.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from mesh.bench.contestant import BenchError, Contestant
from mesh.bench.ground import LOOPBACK, Ground
from mesh.bench.mesh_nodes import MeshNodes
from mesh.bench.namespaces import Namespaces
from mesh.bench.peer_nodes import Adapter, PeerNodes
from mesh.bench.peers.search import find_peers
from mesh.bench.ports import free_ports
from mesh.bench.settings import DetectSettings

_KEYGEN_TIMEOUT_S: Final = 60.0


class Lineup:
    """Puts up contestants. Its own files go with the stack that it is given."""

    def __init__(self, settings: DetectSettings, stack: ExitStack) -> None:
        """Find the peers. Raises ConfigError if one is missing, BenchError if one cannot be built."""
        self._settings = settings
        self._workshop = Path(tempfile.mkdtemp(prefix="mesh-bench-"))
        stack.callback(shutil.rmtree, self._workshop, ignore_errors=True)
        self.adapters = find_peers(settings.vs, self._workshop, settings.kinship_python)
        self._names = [f"n{number:02d}" for number in range(1, settings.nodes + 1)]

    def all(self, stack: ExitStack, *, is_apart: bool) -> list[Contestant]:
        """Put up all contestants, Mesh first: on loopback, or each member on a host of its own."""
        count = len(self._names)
        # All ports at once, so that no two contestants are given the same.
        ports = free_ports(count * (1 + len(self.adapters)))
        seats = [ports[start : start + count] for start in range(0, len(ports), count)]
        tolerance_s = self._settings.tolerance_s
        ours = self.ours(stack, tolerance_s, is_apart=is_apart, ports=seats[0])
        peers = [
            self.peer(stack, adapter, is_apart=is_apart, ports=seat)
            for adapter, seat in zip(self.adapters, seats[1:], strict=True)
        ]
        return [ours, *peers]

    def ours(
        self,
        stack: ExitStack,
        tolerance_s: float | None,
        *,
        is_apart: bool,
        ports: list[int] | None = None,
    ) -> MeshNodes:
        """Put up Mesh's members, none started yet. Beyond loopback they share a key made for them."""
        settings = self._settings
        words = ["--evidence", settings.evidence]
        about = "" if settings.evidence == "all" else f", evidence {settings.evidence}"
        if tolerance_s is not None:
            words += ["--pause-tolerance", f"{tolerance_s:g}"]
            about += f", pause tolerance {tolerance_s:g} s"
        if is_apart:
            words += ["--key", str(self._key())]
        nodes = MeshNodes(
            self._seats(ports),
            settings.profile,
            fault_hook="deaf" in settings.faults,
            settings=words,
            about=about,
            ground=self._ground(stack, is_apart=is_apart),
        )
        stack.callback(nodes.close)
        return nodes

    def peer(
        self,
        stack: ExitStack,
        adapter: Adapter,
        *,
        is_apart: bool,
        ports: list[int] | None = None,
        profile: str = "",
    ) -> PeerNodes:
        """Put up a peer's members, none started yet; `profile` may be more than a name, if it reads more."""
        ground = self._ground(stack, is_apart=is_apart)
        peer = PeerNodes(adapter, self._seats(ports), profile or self._settings.profile, ground)
        stack.callback(peer.close)
        return peer

    def _seats(self, ports: list[int] | None) -> dict[str, int]:
        return dict(zip(self._names, ports or free_ports(len(self._names)), strict=True))

    def _ground(self, stack: ExitStack, *, is_apart: bool) -> Ground:
        if not is_apart:
            return LOOPBACK
        namespaces = Namespaces(self._names)
        stack.callback(namespaces.close)
        return namespaces

    def _key(self) -> Path:
        path = self._workshop / "mesh.key"
        if not path.exists():
            made = subprocess.run(
                [sys.executable, "-m", "mesh", "keygen", str(path)],
                capture_output=True,
                text=True,
                check=False,
                timeout=_KEYGEN_TIMEOUT_S,
            )
            if made.returncode:
                raise BenchError(f"mesh: no key could be made: {made.stderr.strip()}")
        return path
