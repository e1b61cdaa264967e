"""What this session was named for by the writes that created tasks: each is taken up once.

    first voter ── creates the task, leased to this session ──► the other voters
                └─ Named ──► here: a slot is reserved, a renewal asked of a majority ── given ─► started
                                └─ no slot, unfit, draining ─► released under the token, for others to run

Its creator says so, and nobody else: as its steward, once it is on disk, or, where the voters changed meanwhile and it
is the first of them no more, once it is chosen. Another first voter cannot know how old the word is that it would say.

Whoever is named is the only one who writes under that token, and starts that attempt. So a copy of the word that
comes late, when all may be over here, is not taken up again: what was is remembered for longer than a message lives.

Source: our own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mesh.core.ageing import take_aged
from mesh.core.ids import NodeId
from mesh.errors import DecodeError
from mesh.registers.upkeep import MESSAGE_LIFE_S
from mesh.tasks.body import Body, task_key
from mesh.tasks.changes import Claim
from mesh.tasks.form import of_value
from mesh.wire.records import Card
from mesh.wire.register_messages import Owner
from mesh.wire.task_messages import Decline, Named, Offer

TELL_S: Final = 2.0
"""So long after its creation a naming is told at most: voters wait no longer for whoever is named."""

TAKEN_S: Final = MESSAGE_LIFE_S + TELL_S
"""So long a naming is remembered: no copy of its word comes later."""

TAKEN_MAX: Final = 100_000
"""Namings that are remembered; with so many in mind no more are taken up, and those tasks are offered."""

DECLINED: Final = {
    Decline.BUSY: "it had no slot free any more",
    Decline.UNSUITED: "it cannot run this",
    Decline.DRAINING: "its node is leaving",
    Decline.UNSURE: "it cannot renew at a majority of the task's voters",
}
"""Why whoever is named lets a task go unstarted; completes 'it was released: …'."""


class Namings:
    """Those that were taken up, and when."""

    def __init__(self, card: Callable[[], Card]) -> None:
        self._card = card
        self._taken: dict[bytes, float] = {}  # oldest first

    def __len__(self) -> int:
        return len(self._taken)

    def take(self, now: float, sender: NodeId, message: Named) -> Body | None:
        """Return the task that this session is to take up; None: it is not named for it, or was before."""
        try:
            body = of_value(message.value)
        except DecodeError:
            return None
        card, ballot = self._card(), message.ballot
        is_first_voters = ballot.n == 0 and ballot.node_id == sender
        own, running = Owner(card.node_id, card.boot), body.running
        if not is_first_voters or running is None or (running.owner, running.number) != (own, 1):
            return None
        take_aged(self._taken, now, TAKEN_S)
        key = task_key(body.task_id)
        if key in self._taken or len(self._taken) >= TAKEN_MAX:
            return None
        self._taken[key] = now
        return body


def offer_of(body: Body, message: Named) -> Offer:
    """Return the offer that this would be, had the task been created without an owner."""
    head = body.head
    return Offer(
        task_id=head.task_id,
        ballot=message.ballot,
        seq=0,
        attempt=head.attempt,
        cause=head.cause,
        queue=head.queue,
        pool=head.pool,
        node_class=head.node_class,
        labels=head.labels,
        needs=head.needs,
        has_more=True,  # whoever names wants to hear of the next free slot
        placement=None if body.running is None else body.running.placement,
    )


def claim_of(body: Body) -> Claim:
    """Return the claim that would have written this attempt."""
    running = body.running
    assert running is not None
    return Claim(running.claimed, running.owner, running.name, placement=running.placement)


def claim_for(offer: Offer, card: Card, at: float) -> Claim:
    """Return the claim that answers an offer, made at a time of day (Unix)."""
    owner = Owner(card.node_id, card.boot)
    lost_attempt, placement = offer.attempt - 1, offer.placement
    return Claim(at, owner, card.name, offer.cause, lost_attempt, placement)
