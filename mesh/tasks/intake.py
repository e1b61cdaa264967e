"""What this node may take on: its slots, who waits for one, and when it takes nothing.

    an offer ─► draining? known to be taken? never able? unsure of these voters? no slot? ─► declined
             └► else a slot is reserved

Source: our own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mesh.contest.estimate import wants_of
from mesh.core.effects import Emit
from mesh.core.events import Event, EventKind
from mesh.core.ids import NodeId
from mesh.core.rest import Rest
from mesh.placement.live_view import suits
from mesh.registers.record import Record
from mesh.tasks.config import TasksConfig
from mesh.tasks.effects import Step
from mesh.tasks.slots import Needs, Slots
from mesh.wire.records import Availability, Card
from mesh.wire.register_messages import LEASES_MAX, Standing
from mesh.wire.task_messages import Decline, Offer
from mesh.wire.work_messages import SlotsFree


class Intake:
    """Slots, the line for them, and rest."""

    def __init__(self, card: Callable[[], Card], config: TasksConfig) -> None:
        meta = card().meta
        self._card = card
        # Whoever has a slot has a lease, or is to get one; and all leases are renewed by one message.
        self._slots = Slots(min(meta.slots, LEASES_MAX), dict(meta.offers), config)
        self._rest = Rest()
        self.is_draining = False
        """Nothing is taken any more."""

    @property
    def free(self) -> int:
        """Slots that an offer could get."""
        return 0 if self.is_draining else self._slots.free

    @property
    def used(self) -> int:
        """Slots that are reserved, or held by runs."""
        return self._slots.used

    def judge(self, sender: NodeId, offer: Offer, known: Record) -> Decline:
        """Say whether an offer may be taken; `known` is what this node keeps of the task itself, as a voter."""
        if self.is_draining:
            return Decline.DRAINING
        is_later = (known.ballot, known.seq) > (offer.ballot, offer.seq)
        if is_later and known.value is not None and known.value.standing is Standing.LEASED:
            # Of an end that is known here a majority may know nothing yet: a claim finds it, and writes it back.
            return Decline.TAKEN
        meta, wants = self._card().meta, wants_of(offer)
        opened = replace(meta, availability=Availability.OPEN)
        if not suits(opened, wants) or not self._slots.can_ever_run(offer.needs):
            return Decline.UNSUITED
        if not suits(meta, wants):
            return Decline.BUSY  # for now: who asks may know an older card of this node, and asks again once it is open
        can_now = self._slots.can_run_now(offer.needs, sender)
        return Decline.NONE if can_now else Decline.BUSY

    def take(self, sender: NodeId, offer: Offer) -> None:
        """Reserve a slot for an offer; its sender waits in line if it has more and gets no more."""
        self._slots.take(offer.needs)
        self._slots.forget((sender,))
        if offer.has_more and not self._slots.free_for(sender):
            self._slots.note(sender)

    def note(self, sender: NodeId) -> None:
        """Let a voter wait for a slot."""
        self._slots.note(sender)

    def free_for(self, sender: NodeId) -> int:
        """Return how many slots a voter may try for."""
        return min(self._slots.free_for(sender), 0xFFFF)

    def give_back(self, now: float, needs: Needs) -> list[Step]:
        """Free a slot; return whom to tell."""
        self._slots.give_back(needs)
        return self._tell(now)

    def judge_start(self, now: float, run_id: int, latest: int, shortage: str) -> list[Step]:
        """Take that a run has started, or that the host was too short of something (`shortage`) to start it: then rest.

        `latest` is the run that was taken on last.
        """
        if not shortage:
            self._rest.note_started(run_id)
            return []
        if not self._rest.begin(now, latest):
            return []
        self._slots.is_closed = True
        detail = f"this host ran short, and takes no work for {self._rest.pause_s:g} s: {shortage}"
        return [Emit(Event(kind=EventKind.WARN, detail=detail))]

    def handle_timeout(self, now: float) -> list[Step]:
        """End a rest, and tell more voters of free slots."""
        if self._rest.end(now):
            self._slots.is_closed = False
        return self._tell(now)

    def next_timeout(self) -> float | None:
        """Return when `handle_timeout` has something to do."""
        # Who drains tells nobody of its slots.
        dues = (None if self.is_draining else self._slots.next_timeout(), self._rest.until)
        return min((due for due in dues if due is not None), default=None)

    def check_invariants(self) -> None:
        """Raise AssertionError if slots and rest disagree."""
        self._slots.check_invariants()
        assert self._slots.is_closed == (self._rest.until is not None)

    def _tell(self, now: float) -> list[Step]:
        if self.is_draining:
            return []
        return [(voter, SlotsFree(self.free_for(voter))) for voter in self._slots.take_told(now)]
