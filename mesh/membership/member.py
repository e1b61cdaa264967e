"""One member as this node knows it, and how a change of it looks."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mesh.core.address import Address
from mesh.core.ids import NO_NODE, NodeId
from mesh.core.round_trip import RoundTrip
from mesh.membership.identity import INCARNATION_MAX
from mesh.wire.records import Availability, Card, Cause, Rank, Standing, State, Vitals
from mesh.wire.swim_messages import Dead, Forget

AGE_S_MAX = 0xFFFF_FFFF


@dataclass(slots=True)
class Member:
    """An entry of the table. (boot, incarnation, state, cause) only ever grows; `card` is of that boot."""

    card: Card
    card_bytes: bytes
    boot: int
    incarnation: int
    state: State
    cause: Cause
    since: float  # `now` at which the state was entered, as far as this node knows
    round_trip: RoundTrip | None = None
    vitals: Vitals | None = None
    vitals_at: float | None = None  # `now` at which they came in
    heard_at: float | None = None  # `now` of its last packet or answer
    by: NodeId = NO_NODE  # who asked to forget it
    place: int = -1  # where it is in the table's list of the living; -1: not in it

    @property
    def node_id(self) -> NodeId:
        """The member's id."""
        return self.card.node_id

    @property
    def name(self) -> str:
        """The member's name, for people."""
        return self.card.name

    @property
    def address(self) -> Address:
        """Where to send to."""
        return self.card.address

    @property
    def rank(self) -> Rank:
        """Where this knowledge stands in the order of all knowledge of the member."""
        return (self.boot, self.incarnation, self.state, self.cause)

    @property
    def spoken_incarnation(self) -> int:
        """The incarnation for people: an obituary outranks all that the session may have reached, and names none."""
        is_over = self.incarnation == INCARNATION_MAX
        return self.card.incarnation if is_over else self.incarnation

    @property
    def is_living(self) -> bool:
        """Alive or suspect: still part of the mesh."""
        return self.state <= State.SUSPECT

    def measure(self, rtt_s: float) -> None:
        """Take one more measured round trip into the smoothed one."""
        if self.round_trip is None:
            self.round_trip = RoundTrip.first(rtt_s)
        else:
            self.round_trip.measure(rtt_s)

    @property
    def rtt_s(self) -> float | None:
        """The smoothed round trip; None: none was measured."""
        return None if self.round_trip is None else self.round_trip.mean_s

    def standing(self, now: float) -> Standing:
        """Return what to tell another member of this one."""
        age_s = self._age_s(now)
        state, cause = self.state, self.cause
        return Standing(
            self.boot, self.incarnation, state, cause, age_s, self.card_bytes, by=self.by
        )

    def verdict(self, cause: Cause, accuser: NodeId) -> Dead:
        """Return the verdict of death on this member's session."""
        return Dead(self.node_id, self.boot, self.incarnation, cause, accuser)

    def tombstone(self, now: float) -> Forget:
        """Return what to tell another member of this one, which is forgotten."""
        return Forget(self.node_id, self.boot, self.incarnation, self.by, self._age_s(now))

    def _age_s(self, now: float) -> int:
        age_s = max(0.0, now - self.since)
        whole_s = math.ceil(age_s) if self.state is State.FORGOTTEN else int(age_s)
        return min(whole_s, AGE_S_MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What one piece of news did to the table: a snapshot, true whatever comes after.

    `before` is None for a member met for the first time. `is_card_new`: the member declares
    something else than before, its numbers aside; `moved_from`: its address before, if that is another now.
    """

    card: Card
    after: Rank
    before: Rank | None
    is_card_new: bool
    moved_from: Address | None = None
    was: Availability | None = None
    """Whether it took work before, if it is another word now."""

    @property
    def state(self) -> State:
        """The state after the change."""
        return self.after[2]

    @property
    def state_before(self) -> State | None:
        """The state before the change; None for a member met for the first time."""
        return None if self.before is None else self.before[2]

    @property
    def is_living(self) -> bool:
        """Alive or suspect after the change."""
        return self.state <= State.SUSPECT

    @property
    def is_return(self) -> bool:
        """The member was gone, or ran in an earlier session, and lives."""
        return self.is_living and (self.is_restart or (self.state_before or 0) >= State.DEAD)

    @property
    def is_restart(self) -> bool:
        """The member runs in a later session than was known."""
        return self.before is not None and self.before[0] != self.after[0]

    @property
    def is_verdict_new(self) -> bool:
        """The state, its cause or the session differ; a higher incarnation alone is no change to see."""
        return self.before is None or self.is_restart or self.before[2:] != self.after[2:]
