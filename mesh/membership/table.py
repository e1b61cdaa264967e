"""All members that this node knows, and the one rule by which news is merged.

Of one member, knowledge is ordered:

    boot        a later session outranks all that was said of earlier ones
    incarnation within a session, the member's own word counts upward
    state       within one incarnation: alive < suspect < dead < left < forgotten
    cause       silent < crashed < ended: the stronger reason stays

Merging takes the greater. That is idempotent, commutative and associative, so it does not matter in
which order, how often or by whom news arrives. A card travels with its own (boot, incarnation) and is
merged by the same order. News of a session that is not known yet is ignored until its card arrives:
a rumour alone never adds anybody.

Source: [SWIM §4.2] gives the order within a session. Deviation: SWIM's Confirm overrides every
incarnation; here a higher incarnation outranks a death, which is how a member that was wrongly
declared dead comes back.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from mesh.core.ids import NO_NODE, NodeId
from mesh.membership.digest import hash_of
from mesh.membership.member import Change, Member
from mesh.membership.tombstones import Tombstones
from mesh.wire.records import Availability, Card, Cause, Rank, Standing, State, decode_card
from mesh.wire.swim_messages import MEMBERS_MAX


class MemberTable:
    """Members by id. `living` holds the ids of all alive or suspect members but this node, in no order."""

    def __init__(self, self_id: NodeId) -> None:
        self._self_id = self_id
        self._members: dict[NodeId, Member] = {}
        self._living: list[NodeId] = []  # each member knows its place here
        self._gone: dict[NodeId, None] = {}  # dead and left, the latest last
        self.tombstones = Tombstones()
        self.view_hash = 0
        """The exclusive or of the hashes of all living members, this node among them."""

        self.moves = 0
        """Grows whenever somebody may be at an address at which it was not known to be."""

        self.turned_away = 0
        """How many newcomers were not taken in because the table was full of living members."""

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())

    def get(self, node_id: NodeId) -> Member | None:
        """Return the member, or None."""
        return self._members.get(node_id)

    @property
    def living(self) -> list[NodeId]:
        """Ids of the living others. Read only."""
        return self._living

    @property
    def gone(self) -> list[NodeId]:
        """Ids of dead and left members, the latest first."""
        return list(reversed(self._gone))

    def recently_dead(self, now: float, window_s: float, count_max: int) -> list[Member]:
        """Return the members that died within `window_s`, the latest first; O(those that went since).

        Not those whose guardian has said so: nobody is there to be told anything.
        """
        found: list[Member] = []
        for node_id in reversed(self._gone):
            member = self._members[node_id]
            if now - member.since >= window_s or len(found) >= count_max:
                break
            if member.state is State.DEAD and member.cause is not Cause.ENDED:
                found.append(member)
        return found

    @property
    def view_digest(self) -> int:
        """16 bits of `view_hash`, never 0: what fits into a ping."""
        return (self.view_hash & 0xFFFF) or 1

    @property
    def size(self) -> int:
        """How many are in the mesh, this node among them."""
        return len(self._living) + 1

    def apply_card(self, now: float, card_bytes: bytes) -> Change | None:
        """Merge a member's own word; return what changed, or None.

        Raises:
            DecodeError: the bytes are no card; nothing changed.
        """
        card = decode_card(card_bytes)
        return self._merge(now, card_bytes, (card.boot, card.incarnation, State.ALIVE, Cause.NONE))

    def apply_verdict(
        self, now: float, node_id: NodeId, rank: Rank, by: NodeId = NO_NODE
    ) -> Change | None:
        """Merge what somebody says of a session that is known; return what changed, or None.

        `now` is when the state was entered; `by` is who asked for it, of one that is forgotten.
        """
        member = self._members.get(node_id)
        if member is None or rank[0] != member.boot:
            return None
        return self._merge(now, member.card_bytes, rank, by)

    def apply(self, now: float, standing: Standing) -> Change | None:
        """Merge a member's own word and the verdict on it, as one; return what changed, or None.

        A tombstone is as old here as it was there.
        """
        since = now - standing.age_s if standing.state is State.FORGOTTEN else now
        return self._merge(since, standing.card, standing.rank, standing.by)

    def remove(self, node_id: NodeId) -> None:
        """Drop a member that is not living."""
        member = self._members.pop(node_id)
        assert not member.is_living, "a living member is never dropped"
        self.tombstones.drop(member)
        self._gone.pop(node_id, None)

    def choose(self, rng: random.Random, count: int, but: NodeId | None = None) -> list[Member]:
        """Return up to `count` different living members at random, without `but`. O(count)."""
        living = self._living
        left_out = None if but is None else self._members.get(but)
        is_among = left_out is not None and left_out.place >= 0
        wanted = min(count, len(living) - is_among)
        if wanted <= 0:
            return []
        if wanted * 3 >= len(living):
            pool = [node_id for node_id in living if node_id != but]
            return [self._members[node_id] for node_id in rng.sample(pool, wanted)]
        chosen: dict[NodeId, None] = {}
        while len(chosen) < wanted:
            node_id = living[int(rng.random() * len(living))]
            if node_id != but:
                chosen[node_id] = None
        return [self._members[node_id] for node_id in chosen]

    def check_invariants(self) -> None:
        """Raise AssertionError if the indices do not match the members."""
        living = {m.node_id for m in self if m.is_living and m.node_id != self._self_id}
        assert sorted(self._living) == sorted(living), "living holds exactly the living others"
        placed = {m.place: m.node_id for m in self if m.place >= 0}
        assert placed == dict(enumerate(self._living)), "each knows its place among the living"
        gone = {State.DEAD, State.LEFT}
        assert set(self._gone) == {m.node_id for m in self if m.state in gone}
        assert all((m.state is State.FORGOTTEN) == (m.node_id in self.tombstones) for m in self)
        self.tombstones.check_invariants()
        expected = 0
        for member in self:
            expected ^= hash_of(member)
        assert self.view_hash == expected, "the view's hash follows every change"
        for member in self:
            assert member.card.boot == member.boot, "a card is of the session it describes"
            assert member.card.incarnation <= member.incarnation, "a member's word is never ahead"

    def _merge(
        self, now: float, card_bytes: bytes, rank: Rank, by: NodeId = NO_NODE
    ) -> Change | None:
        card = decode_card(card_bytes)
        member = self._members.get(card.node_id)
        if member is None:
            return self._add(Member(card, card_bytes, *rank, since=now, by=by))
        before, card_before = member.rank, member.card
        is_later = _card_rank(card, card_bytes) > _card_rank(card_before, member.card_bytes)
        if rank[0] < before[0] or not (rank > before or is_later):
            return None
        self.view_hash ^= hash_of(member)
        self.tombstones.drop(member)
        if is_later:
            self.moves += card.address != member.address
            member.card, member.card_bytes = card, card_bytes
        if rank > before:
            member.boot, member.incarnation, member.state, member.cause = rank
            member.by = by
        if (member.boot, member.state) != (before[0], before[2]):
            member.since = now
        if member.boot != before[0]:
            member.round_trip = member.heard_at = None
            member.vitals = member.vitals_at = None
        self.view_hash ^= hash_of(member)
        self._file(member)
        is_card_new = is_later and _declared(card) != _declared(card_before)
        return Change(
            card=member.card,
            after=member.rank,
            before=before,
            is_card_new=is_card_new,
            moved_from=card_before.address if card_before.address != member.address else None,
            was=_was(card_before, member.card),
        )

    def _add(self, member: Member) -> Change | None:
        if not self._make_room(member):
            return None
        self._members[member.node_id] = member
        self.moves += 1
        self.view_hash ^= hash_of(member)
        self._file(member)
        return Change(card=member.card, after=member.rank, before=None, is_card_new=True)

    def _make_room(self, newcomer: Member) -> bool:
        """Say whether there is room for a newcomer; the oldest tombstone goes for it, else who has been gone longest.

        A tombstone replaces an older one at most: nobody goes for its sake.
        """
        is_full = len(self._members) >= MEMBERS_MAX
        oldest = self.tombstones.oldest() if is_full or self.tombstones.is_full else None
        if newcomer.state is State.FORGOTTEN and self.tombstones.is_full:
            return oldest is None or oldest.since < newcomer.since
        if not is_full:
            return True
        if newcomer.state is State.FORGOTTEN:
            return False
        if oldest is not None:
            self.remove(oldest.node_id)
        elif self._gone:
            self.remove(next(iter(self._gone)))
        else:
            self.turned_away += 1
            return False
        return True

    def _file(self, member: Member) -> None:
        """Keep the indices in step with the member's state."""
        node_id = member.node_id
        if member.is_living:
            self._gone.pop(node_id, None)
            if member.place < 0 and node_id != self._self_id:
                member.place = len(self._living)
                self._living.append(node_id)
            return
        if member.state is State.FORGOTTEN:
            self._gone.pop(node_id, None)
            oldest = self.tombstones.oldest() if self.tombstones.is_full else None
            if oldest is not None:
                self.remove(oldest.node_id)
            self.tombstones.add(member)
        else:
            self._gone.setdefault(node_id)
        if member.place >= 0:
            last = self._living.pop()
            if last != node_id:
                self._living[member.place] = last
                self._members[last].place = member.place
            member.place = -1


def _declared(card: Card) -> tuple[object, ...]:
    return card.name, card.address, card.meta


def _card_rank(card: Card, card_bytes: bytes) -> tuple[int, int, bytes]:
    """Order two cards of one member; the bytes decide between two that should never differ."""
    return card.boot, card.incarnation, card_bytes


def _was(before: Card, card: Card) -> Availability | None:
    """Return whether a member took work before, if it says something else now: that it does not, or why."""
    was, now = before.meta, card.meta
    return None if (was.availability, was.why) == (now.availability, now.why) else was.availability
