"""Wrong variants of a desk: each drops one rule of its order, and has to be seen within some seeds."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Final

from mesh.core.ids import NodeId
from mesh.registers.asker import Asked
from mesh.registers.desk import Desk
from mesh.registers.leaseholder import Held
from mesh.registers.outbox import Changed, Commit, Output
from mesh.registers.voter import Step, Store
from mesh.wire.register_messages import Accept, Prepare, Request
from tests.sim.registers.desk_process import DeskHabits

RIGHT: Final = DeskHabits()


class AnswersAtOnce(Desk):
    """Lets answers leave before what they rest on is durable."""

    def _answer(self, now: float, sender: NodeId, steps: list[Step]) -> None:
        for answer in self._store(now, steps):
            self._outbox.send(sender, answer, waits=False)


class WaitsForItsOwn(Desk):
    """Lets an answer wait only if it stores something itself."""

    def _answer(self, now: float, sender: NodeId, steps: list[Step]) -> None:
        waits = any(isinstance(step, Store) for step in steps)
        for answer in self._store(now, steps):
            self._outbox.send(sender, answer, waits=waits)


class HearsItselfAtOnce(Desk):
    """Answers itself before what the answer rests on is durable."""

    def _answer(self, now: float, sender: NodeId, steps: list[Step]) -> None:
        for answer in self._store(now, steps):
            self._outbox.send(sender, answer, waits=sender != self._own_id)


class CreatesBeforeItsCommit(Desk):
    """Sends a creation to the others before it has stored it itself."""

    def _ask(self, now: float, asked: Iterable[Asked], *, waits: bool = False) -> None:
        super()._ask(now, asked)

    def _rests_on_a_commit(self, request: Request) -> bool:
        return isinstance(request, Prepare) and super()._rests_on_a_commit(request)


class RepeatsBeforeItsCommit(Desk):
    """Lets a creation wait for its own commit, but not what is sent again when that takes long."""

    def _rests_on_a_commit(self, request: Request) -> bool:
        return not isinstance(request, Accept) and super()._rests_on_a_commit(request)


class UsesNumbersAtOnce(Desk):
    """Asks under numbers that are not yet set aside durably."""

    def _rests_on_a_commit(self, request: Request) -> bool:
        return not isinstance(request, Prepare) and super()._rests_on_a_commit(request)


class SaysItTooSoon(Desk):
    """Says that a record has changed when it is handed out to be stored."""

    def take(self) -> list[Output]:
        outputs = [one for one in super().take() if not isinstance(one, Changed)]
        commits = [one for one in outputs if isinstance(one, Commit)]
        return outputs + [Changed(*record) for commit in commits for record in commit.records]


class SaysLossLate(Desk):
    """Lets what became of a lease wait for the disk, as if it were an answer."""

    _kept: tuple[Held, ...] = ()

    def take(self) -> list[Output]:
        outputs = super().take()
        held = self._kept + tuple(one for one in outputs if isinstance(one, Held))
        others: list[Output] = [one for one in outputs if not isinstance(one, Held)]
        self._kept = held if self._outbox.is_storing else ()
        return others if self._kept else [*others, *held]


class ReadsAsOwner(Desk):
    """Asks what an owner holds as that owner, past its own lease."""

    def read(self, now: float, key: bytes, tag: Hashable, timeout_s: float) -> None:
        self.propose(now, key, lambda found: found, tag, timeout_s, as_owner=True)


READS_AS_OWNER: Final = replace(RIGHT, desk=ReadsAsOwner)
"""It breaks nothing; it costs leases where nothing had gone wrong."""

OFTEN: Final = {
    "answers leave before their commit": replace(RIGHT, desk=AnswersAtOnce),
    "answers wait for their own commit alone": replace(RIGHT, desk=WaitsForItsOwn),
    "a voter hears itself before its commit": replace(RIGHT, desk=HearsItselfAtOnce),
    "a creation leaves before its own commit": replace(RIGHT, desk=CreatesBeforeItsCommit),
    "numbers are used before they are set aside": replace(RIGHT, desk=UsesNumbersAtOnce),
    "numbers of an earlier session are used again": replace(RIGHT, keeps_numbers=False),
    "a change is told before it is durable": replace(RIGHT, desk=SaysItTooSoon),
    "what became of a lease is told late": replace(RIGHT, desk=SaysLossLate),
}
"""Seen in one seed of ten, or more."""

SELDOM: Final = {
    "a creation is repeated before its own commit": replace(RIGHT, desk=RepeatsBeforeItsCommit),
}
"""Seen in one seed of a hundred."""
