"""One ballot of one asker at one register: read what a majority accepted, and write what follows from it.

    prepare ──promised by a majority──► change(what was accepted last) ──► accept ──by a majority──► chosen
       └─ a majority is out of reach: leased, outbid, or another epoch ─► refused ◄──┘

`change` gets the value that the majority reported, None for a register that does not exist, and returns
what to write in its place; None: it has no business here, and nothing is written. A final value is never
handed to it: it is written back as it is, so that a majority holds it before anybody is told of it.

What was refused after the accept was sent may have been accepted somewhere, and may still become the
register's value when another asker finds it there: whoever creates asks again, under the same key; whoever
claims has no lease and forgets it. Lost messages are sent again by `handle_timeout`, unchanged; copies do
no harm. A proposal is of one ballot, and a ballot of one proposal.

Source: [CASPaxos]: a change function instead of a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from mesh.core.ballot import NO_BALLOT, Ballot
from mesh.core.ids import NodeId
from mesh.wire.register_messages import (
    Accept,
    Accepted,
    Answer,
    Leased,
    Outbid,
    Prepare,
    Promised,
    Standing,
    Value,
    WrongEpoch,
)

Change: TypeAlias = Callable[[Value | None], Value | None]


class Reason(Enum):
    """Why a proposal came to nothing."""

    LEASED = "leased"
    OUTBID = "outbid"
    WRONG_EPOCH = "wrong epoch"
    UNCHANGED = "unchanged"
    """`change` had nothing to write; `Refused.found` is what it was shown, which may not be chosen: tell nobody of it."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing is known to be chosen under this ballot."""

    reason: Reason
    remaining_s: float = 0.0
    """Leased: for how long at most, unless renewed."""

    above: Ballot = NO_BALLOT
    """Outbid: the highest ballot heard of; the next is to be above it."""

    epoch: int = 0
    """Wrong epoch: the highest that a voter named; 0: it votes in none."""

    found: Value | None = None


@dataclass(frozen=True, slots=True)
class Chosen:
    """A majority has accepted this value under this ballot."""

    value: Value
    ballot: Ballot
    sent_at: float | None
    """From before the first accept was sent: a lease is trusted from then; None: from no time before it is renewed."""

    is_found: bool
    """It was there, final, and was only written back."""


Result: TypeAlias = Chosen | Refused
Sent: TypeAlias = list[tuple[NodeId, Prepare | Accept]]

RESEND_S: Final = 0.25
"""A voter that has not answered is asked again after this, then after twice as long each time."""

RESEND_S_MAX: Final = 2.0
"""But after no longer than this: whoever can be reached again is asked soon, however long it could not be."""


def majority(count: int) -> int:
    """Return how many of `count` voters are one."""
    return count // 2 + 1


class Proposal:
    """Asks the voters of one epoch, once."""

    def __init__(
        self, *, key: bytes, ballot: Ballot, boot: int, voters: Iterable[NodeId], change: Change
    ) -> None:
        self.key = key
        self.ballot = ballot
        self.result: Result | None = None
        self._boot = boot
        self._voters = tuple(voters)
        self._change = change
        self._promised: dict[NodeId, Promised] = {}
        self._accepted: set[NodeId] = set()
        self._refusals: dict[NodeId, Leased | Outbid | WrongEpoch] = {}
        self._accept: Accept | None = None
        self._sent_at = 0.0
        self._is_found = False
        self._resend_at: float | None = None
        self._resend_s = RESEND_S

    @property
    def is_accepting(self) -> bool:
        """Say whether an accept was sent: from then on it may be chosen without this asker's knowing."""
        return self._accept is not None

    def start(self, now: float) -> Sent:
        """Ask all voters for their promise. The ballot's number is durable before this is sent."""
        self._resend_at = now + self._resend_s
        return [(voter, Prepare(self.key, self.ballot, self._boot)) for voter in self._voters]

    def start_created(self, now: float, own_id: NodeId, value: Value) -> Sent:
        """Begin with the second step: this node, the first voter, has created the register by itself.

        Its own acceptance is durable before this is sent, and counts when it is heard of, as any other's: not
        before it is durable. `change` is never called.
        """
        return self._accept_all(now, value, but=own_id)

    def handle(self, now: float, sender: NodeId, answer: Answer) -> Sent:
        """Take an answer; return what to send next. Then look at `result`."""
        if self.result is not None or sender not in self._voters or not self._is_mine(answer):
            return []
        if isinstance(answer, Promised):
            return self._on_promised(now, sender, answer)
        if isinstance(answer, Accepted):
            self._on_accepted(sender, answer)
        elif isinstance(answer, Leased | Outbid | WrongEpoch):
            self._on_refusal(sender, answer)
        return []

    def next_deadline(self) -> float | None:
        """Return when voters that have not answered are to be asked again."""
        return None if self.result is not None else self._resend_at

    def handle_timeout(self, now: float) -> Sent:
        """Ask again those that have not answered, and those where another's lease lived: it may have lapsed.

        Where somebody is known to refuse for good, and the rest are silent, give up: a higher ballot may pass.
        """
        if self.result is not None or self._resend_at is None or now < self._resend_at:
            return []
        if not all(isinstance(one, Leased) for one in self._refusals.values()):
            self.result = self._refused()
            return []
        self._resend_s = min(2 * self._resend_s, RESEND_S_MAX)
        self._resend_at = now + self._resend_s
        request: Prepare | Accept = self._accept or Prepare(self.key, self.ballot, self._boot)
        heard = self._accepted if self._accept is not None else self._promised.keys()
        return [(voter, request) for voter in self._voters if voter not in heard]

    # Inside.

    def _is_mine(self, answer: Answer) -> bool:
        if not isinstance(answer, Promised | Accepted | Leased | Outbid | WrongEpoch):
            return False
        return answer.key == self.key and answer.ballot == self.ballot

    def _on_promised(self, now: float, sender: NodeId, answer: Promised) -> Sent:
        if self._accept is not None:
            return []
        self._refusals.pop(sender, None)  # a lease that lapsed meanwhile
        self._promised[sender] = answer
        if len(self._promised) < majority(len(self._voters)):
            return []
        latest = max(self._promised.values(), key=lambda one: (one.accepted, one.seq))
        found = latest.value
        self._is_found = found is not None and found.standing is Standing.FINAL
        value = found if self._is_found else self._change(found)
        if value is None:
            self.result = Refused(Reason.UNCHANGED, found=found)
            return []
        return self._accept_all(now, value)

    def _accept_all(self, now: float, value: Value, but: NodeId | None = None) -> Sent:
        self._accept = Accept(self.key, self.ballot.epoch, self.ballot, 0, value)
        self._refusals.clear()
        self._sent_at = now
        self._resend_s = RESEND_S
        self._resend_at = now + RESEND_S
        self._count()
        return [(voter, self._accept) for voter in self._voters if voter != but]

    def _on_accepted(self, sender: NodeId, answer: Accepted) -> None:
        if self._accept is None or answer.seq != 0 or answer.epoch != self.ballot.epoch:
            return
        self._accepted.add(sender)
        self._count()

    def _count(self) -> None:
        if self._accept is not None and len(self._accepted) >= majority(len(self._voters)):
            self.result = Chosen(self._accept.value, self.ballot, self._sent_at, self._is_found)

    def _is_about_prepare(self, answer: Leased | Outbid | WrongEpoch) -> bool:
        """Say whether this refused the prepare, though it is the accept that is waited for.

        A lease is in no accept's way, and who has promised just this ballot would accept it.
        """
        if self._accept is None or isinstance(answer, WrongEpoch):
            return False
        return isinstance(answer, Leased) or answer.promised == self.ballot

    def _on_refusal(self, sender: NodeId, answer: Leased | Outbid | WrongEpoch) -> None:
        has_answered = self._accepted if self._accept is not None else self._promised
        if sender in has_answered or self._is_about_prepare(answer):
            return  # a copy that comes late
        self._refusals[sender] = answer
        if len(self._voters) - len(self._refusals) < majority(len(self._voters)):
            self.result = self._refused()

    def _refused(self) -> Refused:
        refusals = self._refusals.values()
        outbid = [one.promised for one in refusals if isinstance(one, Outbid)]
        leased = [one.remaining_s for one in refusals if isinstance(one, Leased)]
        epochs = [one.epoch for one in refusals if isinstance(one, WrongEpoch)]
        reason = Reason.OUTBID if outbid else Reason.LEASED
        return Refused(
            Reason.WRONG_EPOCH if epochs else reason,
            remaining_s=max(leased, default=0.0),
            above=max(outbid, default=NO_BALLOT),
            epoch=max(epochs, default=0),
        )
