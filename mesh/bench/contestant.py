"""What the driver asks of Mesh and of each peer alike: N members on fixed ports, one process each."""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mesh.bench.ground import LOOPBACK, Ground
from mesh.bench.sightings import SightingLog
from mesh.errors import MeshError


class BenchError(MeshError):
    """A contestant did not do what the benchmark needs; the text names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What one member sends a second. None: it does not say."""

    packets_s: float | None = None
    udp_bytes_s: float | None = None
    tcp_frames_s: float | None = None
    tcp_bytes_s: float | None = None


class Contestant(ABC):
    """N members, each a process of its own, or two: one that is the member, and its guardian. All methods are for the main thread.

    Attributes:
        ports: by member, in the order of the first start.
        ground: where the members stand.
        pids: by member, the process that was started last: the member itself, or its guardian.
        can_deafen: whether a member can be made deaf.
        log: what every member's own event stream says.
    """

    can_deafen = True

    def __init__(
        self,
        name: str,
        about: str,
        ports: Mapping[str, int],
        *,
        tells_refutations: bool,
        ground: Ground = LOOPBACK,
    ) -> None:
        self.name = name
        self.about = about
        self.ports = dict(ports)
        self.ground = ground
        self.pids: dict[str, int] = {}
        self.log = SightingLog(tells_refutations=tells_refutations)

    @property
    def members(self) -> list[str]:
        """Every member's name."""
        return list(self.ports)

    def address(self, member: str) -> str:
        """Return where a member is reached."""
        return f"{self.ground.host(member)}:{self.ports[member]}"

    @abstractmethod
    def spawn(self, member: str, seed: str | None) -> None:
        """Start a member's process and follow its events; `seed` is another member, None for the first."""

    @abstractmethod
    def pid(self, member: str) -> int:
        """Return the process that is to be signalled and killed."""

    @abstractmethod
    def last_words(self, member: str) -> str | None:
        """Return what a member said last, if its process has ended; None while it runs."""

    def check_runs(self, members: Iterable[str]) -> None:
        """Raise BenchError if one of these members has ended: nobody need wait for it."""
        for member in members:
            words = self.last_words(member)
            if words is not None:
                raise BenchError(
                    f"{self.name}: {member} ended by itself; it said: {words or 'nothing'}"
                )

    @abstractmethod
    def kill(self, member: str) -> int:
        """End a member with SIGKILL; return the Unix time in ns just before."""

    @abstractmethod
    def leave(self, member: str) -> int:
        """Let a member leave and wait until its process has ended; return the Unix time in ns just before."""

    @abstractmethod
    def toggle_deafness(self, member: str) -> int:
        """Let a member hear nothing, or hear again; return the Unix time in ns just before."""

    @abstractmethod
    def begin_traffic(self) -> None:
        """Begin to count what every member sends."""

    @abstractmethod
    def end_traffic(self) -> list[Traffic]:
        """Return what every member that says so has sent since `begin_traffic`."""

    @abstractmethod
    def close(self) -> None:
        """End every process and remove every file. Harmless when repeated."""


def tether() -> tuple[str, ...]:
    """Return a command prefix that ends a process when the benchmark itself is killed, where there is one.

    The kernel is asked to do so after the fork: who finds then that its parent is gone already ends.
    """
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return ()
    check = 'test "$PPID" = "$0" && exec "$@"'
    return (setpriv, "--pdeathsig", "KILL", "--", "/bin/sh", "-c", check, str(os.getpid()))
