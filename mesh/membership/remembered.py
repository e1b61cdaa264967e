"""Who was in the mesh when this node last looked: kept for its next session, and asked when it returns.

A node that restarts knows nobody, and its seeds may be gone or have moved. So the members that it knows,
the dead among them, are kept as a snapshot: names to ask at, no knowledge about anybody. What was read at
the start and not met since is kept on: half of the mesh may still be cut off.

    known here, living or dead ── met in this session, the table's word counts
    read at the start ─────────── not met since: tried for ever, one now and then
    left or forgotten ─────────── neither kept nor asked

A snapshot is made when the list changes, at most once in `PAUSE_S`; an idle mesh makes none.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from mesh.core.address import Address
from mesh.core.effects import Remember
from mesh.core.ids import NO_MESH, NodeId
from mesh.core.known import KnownMember
from mesh.core.limits import REMEMBERED_MAX
from mesh.membership.identity import Identity
from mesh.membership.member import Change, Member
from mesh.membership.table import MemberTable
from mesh.wire.records import State, decode_card

PAUSE_S: Final = 10.0
"""The least time between two snapshots."""

MOMENT_S: Final = 1.0
"""How long after a change its snapshot is made: a join brings many changes at once."""


class Remembered:
    """The list for the next session, and what is left of the last one's."""

    def __init__(
        self, identity: Identity, table: MemberTable, before: Iterable[KnownMember]
    ) -> None:
        self._identity = identity
        self._table = table
        self._before = {known.node_id: known for known in before}
        self._before.pop(identity.node_id, None)
        self._turns: list[NodeId] = []
        self._due: float | None = None
        self._made_at = float("-inf")

    def __len__(self) -> int:
        """How many of the last session's members were not met yet."""
        return len(self._before)

    def note(self, now: float, change: Change) -> None:
        """Take a change of another member; the same one twice does no harm."""
        node_id = change.card.node_id
        if node_id == self._identity.node_id:
            return
        was_unmet = self._before.pop(node_id, None) is not None
        is_over = change.state >= State.LEFT
        was_over = (change.state_before or State.ALIVE) >= State.LEFT
        if change.before is None or change.is_card_new or was_unmet or is_over != was_over:
            self._due = self._due or max(now + MOMENT_S, self._made_at + PAUSE_S)

    def next_deadline(self) -> float | None:
        """Return when the next snapshot is due; None while nothing has changed."""
        return self._due

    def handle_timeout(self, now: float) -> Remember | None:
        """Return the snapshot if one is due."""
        return self.take(now) if self._due is not None and now >= self._due else None

    def take(self, now: float) -> Remember | None:
        """Return the snapshot if anything has changed since the last one. O(members)."""
        if self._due is None or self._identity.mesh_id == NO_MESH:
            return None
        self._due, self._made_at = None, now
        return Remember(self._identity.mesh_id, self.members())

    def members(self) -> tuple[KnownMember, ...]:
        """Return who is to be remembered, at most `REMEMBERED_MAX`: the living, then the latest dead, then the unmet."""
        living = self._table.living[-REMEMBERED_MAX:]
        found = [_known(member.card_bytes) for member in map(self._table.get, living) if member]
        found += [_known(member.card_bytes) for member in self._dead()]
        found += reversed(self._before.values())
        return tuple(found[:REMEMBERED_MAX])

    def strangers(self) -> list[KnownMember]:
        """Return all who are remembered and at whose address no living member is. O(members)."""
        living = map(self._table.get, self._table.living)
        taken: dict[Address, None] = {member.address: None for member in living if member}
        taken[self._identity.address] = None
        known = [*(_known(member.card_bytes) for member in self._dead()), *self._before.values()]
        return [member for member in known if member.address not in taken]

    def next_strangers(self, rng: random.Random, count: int) -> list[KnownMember]:
        """Return up to `count` strangers: all of them in turn, in an order drawn anew for each round."""
        strangers = {known.node_id: known for known in self.strangers()}
        chosen: dict[NodeId, KnownMember] = {}
        for _ in range(2):  # the rest of this round, and the next one's first
            while self._turns and len(chosen) < min(count, len(strangers)):
                known = strangers.get(self._turns.pop())
                if known is not None:
                    chosen[known.node_id] = known
            if not self._turns:
                self._turns = list(strangers)
                rng.shuffle(self._turns)
        return list(chosen.values())

    def unmet(self) -> list[KnownMember]:
        """Return the last session's members that were not met yet."""
        return list(self._before.values())

    @property
    def has_any(self) -> bool:
        """Say whether there may be strangers; cheap."""
        return bool(self._before) or any(True for _ in self._dead())

    def _dead(self) -> Iterable[Member]:
        gone = map(self._table.get, self._table.gone)
        return (member for member in gone if member is not None and member.state is State.DEAD)


@lru_cache(maxsize=16_384)
def _known(card_bytes: bytes) -> KnownMember:
    """Return one entry, shared by all who know the card: simulated nodes are many."""
    card = decode_card(card_bytes)
    return KnownMember(NodeId(card.node_id), card.name, card.address)
