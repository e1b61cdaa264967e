"""What a majority holds of a register, asked without a ballot: it disturbs nobody.

What a majority holds alike is chosen. What was found at some only may be chosen or not: it has to be
written back, or changed, under a ballot, before anybody is told of it.

Source: our own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mesh.core.ballot import NO_BALLOT
from mesh.core.ids import NodeId
from mesh.registers.proposal import RESEND_S, RESEND_S_MAX, majority
from mesh.wire.register_messages import Answer, Held, Read, Value, WrongEpoch


@dataclass(frozen=True, slots=True)
class Seen:
    """What a majority reported last. No value: it reported none, so none was chosen before this was asked."""

    value: Value | None
    is_chosen: bool
    """A majority holds just this; else it is to be written back before it is relied on."""

    is_known: bool
    """A majority holds some value of this register, so that it exists for good."""


class Reading:
    """One question about one register to the voters of one epoch."""

    def __init__(self, key: bytes, epoch: int, voters: Iterable[NodeId], tag: int) -> None:
        self._read = Read(key, epoch, tag)
        self._voters = tuple(voters)
        self._held: dict[NodeId, Held] = {}
        self._resend_s = RESEND_S
        self._resend_at: float | None = None
        self.result: Seen | None = None
        self.epoch: int | None = None
        """A voter said that it votes in this epoch, not in the one asked."""

    def start(self, now: float) -> list[tuple[NodeId, Read]]:
        """Ask all voters."""
        self._resend_at = now + self._resend_s
        return [(voter, self._read) for voter in self._voters]

    def handle(self, sender: NodeId, answer: Answer) -> None:
        """Take an answer; then look at `result`, or at `epoch`."""
        if self.result is not None or sender not in self._voters:
            return
        if isinstance(answer, WrongEpoch):
            if self._is_about_this(answer):
                self.epoch = max(answer.epoch, self.epoch or 0)
            return
        if not isinstance(answer, Held):
            return
        asked = (self._read.key, self._read.epoch, self._read.tag)
        if (answer.key, answer.epoch, answer.tag) != asked:
            return
        self._held[sender] = answer
        enough = majority(len(self._voters))
        if len(self._held) < enough:
            return
        answers = self._held.values()
        latest = max(answers, key=lambda one: (one.ballot, one.seq))
        same = sum((one.ballot, one.seq) == (latest.ballot, latest.seq) for one in answers)
        known = sum(one.value is not None for one in answers)
        self.result = Seen(latest.value, same >= enough, known >= enough)

    def _is_about_this(self, answer: WrongEpoch) -> bool:
        """Say whether it refuses this read: prepares name their ballot, reads before this one may have an older epoch."""
        is_of_a_read = (answer.key, answer.ballot) == (self._read.key, NO_BALLOT)
        return is_of_a_read and answer.epoch != self._read.epoch

    def next_deadline(self) -> float | None:
        """Return when those that have not answered are to be asked again."""
        return None if self.result is not None else self._resend_at

    def handle_timeout(self, now: float) -> list[tuple[NodeId, Read]]:
        """Ask those again that have not answered."""
        if self.result is not None or self._resend_at is None or now < self._resend_at:
            return []
        self._resend_s = min(2 * self._resend_s, RESEND_S_MAX)
        self._resend_at = now + self._resend_s
        return [(voter, self._read) for voter in self._voters if voter not in self._held]
