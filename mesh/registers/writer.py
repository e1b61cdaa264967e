"""An owner's writes under the ballot that it was granted: one round each, numbered.

Progress, checkpoints and results need no promise: while the ballot is the highest, nobody else writes. The
token decides, not the clock: what is written after the lease lapsed counts, if nobody was promised since.
A later write replaces one that is still under way; only the latest is waited for, and sent again until a
majority has it, or a voter has promised or accepted more: then the writer is fenced off, for good.

Source: our own.
"""

from __future__ import annotations

from collections.abc import Iterable

from mesh.core.ballot import NO_BALLOT, Ballot
from mesh.core.ids import NodeId
from mesh.errors import LocalProtocolError
from mesh.registers.proposal import RESEND_S, RESEND_S_MAX, majority
from mesh.wire.register_messages import Accept, Accepted, Answer, Outbid, Standing, Value


class Writer:
    """The writes of one grant."""

    def __init__(self, key: bytes, token: Ballot) -> None:
        self._key = key
        self._token = token
        self._latest: Accept | None = None
        self._voters: tuple[NodeId, ...] = ()
        self._accepted: set[NodeId] = set()
        self._fenced_at: set[NodeId] = set()
        self._resend_at: float | None = None
        self._resend_s = RESEND_S
        self.seq = 0
        """Of the latest write; the grant itself was 0."""

        self.chosen_seq = 0
        """Of the latest write that a majority has."""

        self.fenced_by: Ballot = NO_BALLOT
        """The higher ballot that keeps this writer off; NO_BALLOT: none that a majority may have promised."""

    @property
    def is_settled(self) -> bool:
        """Say whether the latest write is chosen."""
        return self.chosen_seq == self.seq

    def write(
        self, now: float, value: Value, epoch: int, voters: Iterable[NodeId]
    ) -> list[tuple[NodeId, Accept]]:
        """Write a value in place of the one before; nothing is sent by a writer that is fenced off.

        Raises:
            LocalProtocolError: a final value was written: no voter would refuse to lose it; nothing is sent.
        """
        if self._latest is not None and self._latest.value.standing is Standing.FINAL:
            raise LocalProtocolError(
                f"nothing is expected after a final value, found a write of a value {value.standing.name}"
            )
        if self.fenced_by != NO_BALLOT:
            return []
        self.seq += 1
        self._latest = Accept(self._key, epoch, self._token, self.seq, value)
        return self._send(now, voters)

    def move(self, now: float, epoch: int, voters: Iterable[NodeId]) -> list[tuple[NodeId, Accept]]:
        """Write the latest again to the voters of another epoch: acceptances of two are never counted together."""
        latest = self._latest
        if latest is None or self.is_settled or self.fenced_by != NO_BALLOT:
            return []
        self._latest = Accept(self._key, epoch, self._token, latest.seq, latest.value)
        return self._send(now, voters)

    def handle(self, sender: NodeId, answer: Answer) -> None:
        """Take a voter's answer; then look at `is_settled` and `fenced_by`."""
        latest = self._latest
        if latest is None or sender not in self._voters:
            return
        if isinstance(answer, Accepted):
            is_it = (answer.key, answer.ballot) == (self._key, self._token)
            if not is_it or (answer.epoch, answer.seq) != (latest.epoch, latest.seq):
                return
            self._accepted.add(sender)
            if len(self._accepted) >= majority(len(self._voters)):
                self.chosen_seq = latest.seq
                self._resend_at = None
        elif isinstance(answer, Outbid) and (answer.key, answer.ballot) == (self._key, self._token):
            self._on_outbid(sender, answer)

    def next_deadline(self) -> float | None:
        """Return when the latest write is to be sent again."""
        return self._resend_at

    def handle_timeout(self, now: float) -> list[tuple[NodeId, Accept]]:
        """Send the latest write again to those that have not answered."""
        if self._resend_at is None or now < self._resend_at or self._latest is None:
            return []
        self._resend_s = min(2 * self._resend_s, RESEND_S_MAX)
        self._resend_at = now + self._resend_s
        silent = [voter for voter in self._voters if voter not in self._accepted]
        return [(voter, self._latest) for voter in silent]

    # Inside.

    def _send(self, now: float, voters: Iterable[NodeId]) -> list[tuple[NodeId, Accept]]:
        assert self._latest is not None
        self._voters = tuple(voters)
        self._accepted, self._fenced_at = set(), set()
        self._resend_s = RESEND_S
        self._resend_at = now + RESEND_S
        return [(voter, self._latest) for voter in self._voters]

    def _on_outbid(self, sender: NodeId, answer: Outbid) -> None:
        if answer.promised <= self._token:
            return  # a copy of an earlier write of its own
        self._fenced_at.add(sender)
        # One voter that promised more does not stop a majority of the others.
        if len(self._voters) - len(self._fenced_at) < majority(len(self._voters)):
            self.fenced_by = answer.promised
            self._resend_at = None
