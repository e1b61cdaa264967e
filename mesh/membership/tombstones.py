"""The forgotten: gone members that somebody had removed for good, remembered only to keep them away.

Whoever slept through the forgetting still holds the member for dead, or alive, and would tell the others of
it again. So each member keeps a tombstone for a while, and passes it on: it outranks all that was said of that
session up to then. Nobody sees it, nobody is probed for its sake, and its name is free.

Tombstones are compared in anti-entropy (`hash`), unlike the dead: who holds a member for dead where
others have forgotten it knows the same living, and would never be told. All run out at about one time, since
they travel with their age, and an age is rounded up: being told of it makes no tombstone younger.
"""

from __future__ import annotations

from typing import Final

from mesh.core.ids import NodeId
from mesh.membership.digest import tombstone_hash
from mesh.membership.member import Member

TOMBSTONES_MAX: Final = 4096
"""More than so many, and the oldest go before their time: a mesh keeps its room for the living."""


class Tombstones:
    """The forgotten members of a table, which owns them; in no order."""

    __slots__ = ("_members", "hash")

    def __init__(self) -> None:
        self._members: dict[NodeId, Member] = {}
        self.hash = 0
        """The exclusive or of the hashes of all."""

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, node_id: NodeId) -> bool:
        return node_id in self._members

    @property
    def is_full(self) -> bool:
        """Say whether one more pushes another out."""
        return len(self._members) >= TOMBSTONES_MAX

    def add(self, member: Member) -> None:
        """Take in a member that has just been forgotten."""
        self._members[member.node_id] = member
        self.hash ^= tombstone_hash(member)

    def drop(self, member: Member) -> None:
        """Let go a member that is about to change, or to be dropped; harmless for one that is not here."""
        if self._members.pop(member.node_id, None) is not None:
            self.hash ^= tombstone_hash(member)

    def oldest(self) -> Member | None:
        """Return the one forgotten longest ago, or None. O(tombstones)."""
        return min(self._members.values(), key=lambda m: (m.since, m.node_id), default=None)

    def expired(self, now: float, retention_s: float) -> list[NodeId]:
        """Return those forgotten for `retention_s` or longer. O(tombstones)."""
        return [m.node_id for m in self._members.values() if now - m.since >= retention_s]

    def named(self, name: str) -> list[Member]:
        """Return those that had this name. O(tombstones)."""
        return [member for member in self._members.values() if member.name == name]

    def check_invariants(self) -> None:
        """Raise AssertionError if the hash is not that of the members."""
        expected = 0
        for member in self._members.values():
            expected ^= tombstone_hash(member)
        assert self.hash == expected, "the hash of the forgotten follows every change"
