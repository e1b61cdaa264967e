"""Whom a voter asks next for the tasks of a lane, by the strategy of its queue: one that fits, and may have a slot.

    rendezvous, contest   the first by the task's key
    round_robin           the next by node id after who was asked last    A ► B ► C ► A …  who has no slot is passed over
    pull                  who has the most slots free; of these, who has had as many for longest

Under each of them a member that is dedicated to the queue, and has a slot, is asked before any that is not.

Every voter goes round by itself, and begins behind itself: where each has a task or two, they are not all asked of
the same member. A place in the round is a node id, so who comes or goes moves nobody else's turn.

Source: our own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

from mesh.core.ids import NodeId
from mesh.placement.live_view import LiveMember, LiveView, Wants, fits, is_dedicated
from mesh.queues.settings import Strategy
from mesh.tasks.free_slots import FreeSlots
from mesh.tasks.lacking import lacking
from mesh.tasks.lane import Lane
from mesh.wire.task_messages import Decline, PlacedBy, Placement

Picked: TypeAlias = tuple[LiveMember, Placement]
"""Whom to ask, and why."""

BY_PULL: Final = Placement(PlacedBy.PULL)
BY_TURN: Final = Placement(PlacedBy.TURN)
ALONE: Final = Placement(PlacedBy.ALONE)  # unless it is called with others

ROUNDS_MAX: Final = 1_024
"""Rounds that are remembered; the one gone longest ago is forgotten, and begins anew."""


class Choosing:
    """The choices of one voter, and how far each round has come."""

    def __init__(self, view: LiveView, slots: FreeSlots, own_id: NodeId) -> None:
        """Begin every round behind this node."""
        self._view = view
        self._slots = slots
        self._own_id = own_id
        self._rounds: dict[Wants, NodeId] = {}  # who was asked last; the latest is last
        """They outlive their lanes: tasks that come one at a time go round as well."""

    def choose(
        self, lane: Lane, strategy: Strategy, wants_of: Callable[[], Wants]
    ) -> Picked | None:
        """Return whom to ask next for a task of this lane, and why; None: nobody has room.

        `wants_of` returns what the task wants, with the key that ranks the members. O(members log members).
        """
        if strategy not in OLDEST_FIRST:
            return self.first_in_rank(lane, self._view.candidates(wants_of()), strategy)
        able = [
            one
            for one in self._view.members()
            if fits(one, lane.key.wants) and self.has_room(lane, one)
        ]
        if not able:
            return None
        able = [one for one in able if is_dedicated(one)] or able
        if strategy is Strategy.PULL:
            return min(able, key=self._idleness), BY_PULL
        return self._next_in_round(lane, able), BY_TURN

    def first_in_rank(
        self, lane: Lane, members: list[LiveMember], strategy: Strategy
    ) -> Picked | None:
        """Return the first of these candidates that may have a slot, and why it is not the one before; None: none may."""
        found = next((one for one in members if self.has_room(lane, one)), None)
        if found is None:
            return None
        if strategy is Strategy.CONTEST:
            return found, ALONE
        return found, self.in_rank(lane, found, members[0])

    def in_rank(self, lane: Lane | None, member: LiveMember, home: LiveMember) -> Placement:
        """Return why `member` is asked where `home` comes first by rendezvous."""
        passed = Decline.NONE
        if member is not home:
            is_unable = lane is not None and not can_ask(lane, home)
            passed = Decline.UNSUITED if is_unable else Decline.BUSY
        return Placement(PlacedBy.RANK, home.node_id, passed)

    def has_room(self, lane: Lane, member: LiveMember) -> bool:
        """Say whether a member that fits may have a slot for a task of this lane, as far as is known."""
        is_busy = lane.busy.get(member.node_id) == self._slots.news(member.node_id)
        return not is_busy and can_ask(lane, member) and self._slots.room(member) > 0

    def able(self, lane: Lane, wants: Wants, first: LiveMember) -> list[LiveMember]:
        """Return who has a slot for a task of this lane, with the slots that are known here. O(n log n).

        `first` is among them, with that slot of it that is counted as asked for this task already. It may have none:
        then it is to be asked for the sake of its word alone, and is no match for the others.
        """
        found = []
        for one in self._view.candidates(wants):
            free = self._slots.unasked(one) + (one is first)
            if one is first or (free > 0 and self.has_room(lane, one)):
                found.append(replace(one, free_slots=max(0, free)))
        return found

    def waits_for(self, lane: Lane) -> str:
        """Say in one sentence what a task that waits in this lane waits for. O(members)."""
        wants, members = lane.key.wants, self._view.members()
        candidates = [member for member in members if fits(member, wants)]
        if not candidates:
            return f"a member that can run it: {lacking(wants, [one.meta for one in members])}"
        if any(self.has_room(lane, member) for member in candidates):
            return self._turn(lane)
        names = ", ".join(member.name for member in candidates[:5])
        more = f" and {len(candidates) - 5} more" if len(candidates) > 5 else ""
        if not any(can_ask(lane, member) for member in candidates):
            return f"a member that can run it: {names}{more} declined it, though it seemed to fit"
        are = "is" if len(candidates) == 1 else "are all"
        return f"a free slot: {names}{more} {are} busy"

    # Inside.

    def _turn(self, lane: Lane) -> str:
        """Say what a task waits for that somebody may have a slot for; whoever sees to it first knows more of slots."""
        ahead = next((one for one in map(self._view.get, lane.key.ahead) if one is not None), None)
        return "its turn" if ahead is None else f"an offer by {ahead.name}, which sees to it first"

    def _idleness(self, member: LiveMember) -> tuple[int, int, int]:
        """Return what is least for the one that is most idle; those of which nothing was heard go round as well."""
        slots, node_id = self._slots, member.node_id
        return -slots.room(member), slots.moved(node_id), (node_id - self._own_id - 1) % (1 << 64)

    def _next_in_round(self, lane: Lane, able: list[LiveMember]) -> LiveMember:
        """Return the next of these, which are sorted by id."""
        key = lane.key.wants
        last = self._rounds.pop(key, self._own_id)
        found = next((one for one in able if one.node_id > last), able[0])
        self._rounds[key] = found.node_id
        if len(self._rounds) > ROUNDS_MAX:
            del self._rounds[next(iter(self._rounds))]
        return found


OLDEST_FIRST: Final = frozenset({Strategy.ROUND_ROBIN, Strategy.PULL})
"""Strategies of queues whose oldest task goes first, whatever it wants, and whose members are ranked by no task's key."""


def can_ask(lane: Lane, member: LiveMember) -> bool:
    """Say whether a member has not said that it cannot run the like of this lane, by the card that it has."""
    return lane.unsuited.get(member.node_id) != member.meta
