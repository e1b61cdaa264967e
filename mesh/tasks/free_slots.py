"""How many slots each member has for this voter, as was heard last, and how many of them it is being asked for.

    vitals, SlotsFree, an answer ──► known ── less what is asked for ──► room
    a claim that was seen, a naming ──► known, less one

A member with none is asked once all the same, so that it notes this voter and tells it of its next free slot; from
then on it has no room until it, or its vitals, say otherwise.

Source: our own.
"""

from __future__ import annotations

from mesh.core.ids import NodeId
from mesh.placement.live_view import LiveMember, LiveView


class FreeSlots:
    """What is known of all members. O(1) throughout."""

    def __init__(self, view: LiveView) -> None:
        """Begin with what the view says of each."""
        self._view = view
        self._free: dict[NodeId, int] = {}
        self._news: dict[NodeId, int] = {}
        self._noted: set[NodeId] = set()  # members that will tell us of their next free slot
        self._asking: dict[NodeId, int] = {}  # offers under way
        self._moved: dict[NodeId, int] = {}
        self._moves = 0

    def known(self, member: LiveMember) -> int:
        """Return the slots that it has free as far as is known, some of which may be asked for."""
        return self._free.get(member.node_id, member.free_slots)

    def unasked(self, member: LiveMember) -> int:
        """Return those of them that nobody is being asked for; 0 or less: none."""
        return self.known(member) - self._asking.get(member.node_id, 0)

    def room(self, member: LiveMember) -> int:
        """Return for how many more tasks it may be asked; 0 or less: for none."""
        free = self.known(member)
        if free <= 0 and member.node_id not in self._noted:
            free = 1  # ask once, so that it notes us
        return free - self._asking.get(member.node_id, 0)

    def news(self, node_id: NodeId) -> int:
        """Return how often it was heard to have a slot: what was true before, need not be since."""
        return self._news.get(node_id, 0)

    def moved(self, node_id: NodeId) -> int:
        """Return when its room changed last, as a number that grows with every change of anybody's: 0: never yet."""
        return self._moved.get(node_id, 0)

    def hear(self, node_id: NodeId, free: int, *, is_news: bool, is_noted: bool | None) -> None:
        """Take how many it has, if it is a member that may be asked. `is_noted`: whether it will tell of its next one (None: as before)."""
        if self._view.get(node_id) is None:
            return
        if self._free.get(node_id) != free:
            self._move(node_id)
        self._free[node_id] = free
        if is_news and free > 0:
            self._news[node_id] = self._news.get(node_id, 0) + 1
        if is_noted is not None:
            (self._noted.add if is_noted else self._noted.discard)(node_id)

    def take(self, node_id: NodeId) -> None:
        """Count one of its slots as taken."""
        member = self._view.get(node_id)
        free = self._free.get(node_id, 0 if member is None else member.free_slots)
        self.hear(node_id, max(0, free - 1), is_news=False, is_noted=None)

    def ask(self, node_id: NodeId) -> None:
        """Count it as asked for one slot more."""
        self._asking[node_id] = self._asking.get(node_id, 0) + 1
        self._move(node_id)

    def expect(self, before: NodeId, node_id: NodeId) -> None:
        """Count a slot of another member as asked for."""
        self.end(before)
        self.ask(node_id)

    def end(self, node_id: NodeId) -> None:
        """Count it as asked for one slot less."""
        self._asking[node_id] -= 1
        if not self._asking[node_id]:
            del self._asking[node_id]

    def forget(self, node_id: NodeId) -> None:
        """Forget a member that is gone; offers to it end by themselves."""
        self._free.pop(node_id, None)
        self._news.pop(node_id, None)
        self._moved.pop(node_id, None)
        self._noted.discard(node_id)

    def check_invariants(self, offers: int) -> None:
        """Raise AssertionError if more is asked for than so many offers ask for. O(members)."""
        assert sum(self._asking.values()) <= offers
        assert all(count > 0 for count in self._asking.values())

    # Inside.

    def _move(self, node_id: NodeId) -> None:
        self._moves += 1
        self._moved[node_id] = self._moves
