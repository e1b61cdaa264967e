"""Who may become a voter: members that keep a store and have stood, alive and unsuspected, for long enough.

A member that is missing from the view once, or begins another session, stands anew. Each node counts for
itself, by its own clock: what it finds decides nothing but what it proposes.

Source: our own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from mesh.core.ids import NodeId


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast the roster follows the members, in seconds."""

    stand_s: float
    """So long a member has to be alive and unsuspected without a break before it votes."""

    ask_s: float
    """Between two questions of a node that lacks nothing, whether there is a later roster."""


def local() -> Pace:
    """Return the pace of the profile `local`."""
    return Pace(stand_s=2, ask_s=60)


def lan() -> Pace:
    """Return the pace of the profile `lan`."""
    return Pace(stand_s=15, ask_s=300)


def wan() -> Pace:
    """Return the pace of the profile `wan`."""
    return Pace(stand_s=60, ask_s=600)


class Member(NamedTuple):
    """A member that is alive and unsuspected."""

    node_id: NodeId
    boot: int
    keeps_store: bool


class Admission:
    """The members beside this node, and since when each stands."""

    def __init__(self, own_id: NodeId, pace: Pace) -> None:
        self._own_id = own_id
        self._pace = pace
        self._since: dict[NodeId, tuple[int, float]] = {}  # by node: its boot, and since when
        self._longest: list[tuple[float, NodeId]] = []
        """Who keeps a store, the longest-standing first."""

    @property
    def nodes(self) -> list[NodeId]:
        """All members but this node."""
        return list(self._since)

    def note(self, now: float, members: Iterable[Member]) -> None:
        """Take all members that are alive and unsuspected now."""
        known, self._since = self._since, {}
        keeping: list[tuple[float, NodeId]] = []
        for node_id, boot, keeps_store in members:
            if node_id == self._own_id:
                continue
            boot_before, since = known.get(node_id, (boot, now))
            since = since if boot == boot_before else now
            self._since[node_id] = boot, since
            if keeps_store:
                keeping.append((since, node_id))
        self._longest = sorted(keeping)

    def due_at(self, count: int) -> float | None:
        """Return when so many will have stood long enough; None: there are not as many."""
        if len(self._longest) < count:
            return None
        return self._longest[count - 1][0] + self._pace.stand_s

    def longest(self, count: int) -> list[NodeId]:
        """Return so many of those that have stood longest."""
        return [node_id for _, node_id in self._longest[:count]]
