"""Wrong variants of the machines: each drops one rule, and has to be seen within some seeds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from mesh.core.ballot import Ballot
from mesh.core.effects import GuardProcess
from mesh.core.ids import NodeId
from mesh.placement.live_view import LiveMember
from mesh.registers.asker import Done
from mesh.registers.proposal import Chosen
from mesh.registers.trust import Hold
from mesh.tasks import submitting
from mesh.tasks.body import task_key
from mesh.tasks.claiming import Claiming
from mesh.tasks.effects import Step
from mesh.tasks.entry import Entry
from mesh.tasks.form import of_value, to_value
from mesh.tasks.run import Run, Stage
from mesh.tasks.steward import Steward
from mesh.tasks.tasks import Tasks
from mesh.wire.register_messages import Value
from mesh.wire.task_messages import Named, Offer


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """The machines of all hosts; the defaults are right."""

    claiming: type[Claiming] = Claiming
    steward: type[Steward] = Steward
    retries_once: bool = True
    """The id of a dead letter's retry follows from its own."""

    @property
    def is_right(self) -> bool:
        """Say whether nothing is wrong with them: then they are asked for their invariants."""
        return self.claiming is Claiming and self.steward is Steward

    def spoil(self, tasks: Tasks) -> None:
        """Put these machines in the place of the right ones; they have the same parts."""
        tasks._claiming.__class__ = self.claiming
        tasks._steward.__class__ = self.steward


RIGHT: Final = Habits()


class Unchecked(Claiming):
    """A wrong owner, which is not asked for its invariants: the judge has to see it."""

    def check_invariants(self, now: float) -> None:
        """Hold nothing."""

    def take_unasked(self, now: float, task_id: str) -> list[Step]:
        """Take a claim for granted: what its own voter holds is leased to itself, and nobody is asked."""
        run = self._runs.get(task_key(task_id))
        if run is None or run.stage is not Stage.CLAIMING:
            return []
        found = self._desk.voter.record(run.key)
        value = run.claim(found.value)
        if value is None or value.owner is None:
            return []
        n = max(found.ballot.n, found.promised.n) + 1
        ballot = Ballot(1, found.ballot.epoch, n, run.owner.node_id)
        return self._on_granted(now, run, Chosen(value, ballot, now, is_found=False))


class RunsInDoubt(Unchecked):
    """Freezes nothing in doubt, and tells the guardian so."""

    def _on_held(self, now: float, run: Run, hold: Hold) -> list[Step]:
        return [] if hold is Hold.DOUBT else super()._on_held(now, run, hold)

    def _guard(self, run: Run) -> list[Step]:
        return [
            replace(one, freeze_at=float("inf"), kill_at=float("inf"))
            if isinstance(one, GuardProcess)
            else one
            for one in super()._guard(run)
        ]


class OffersAlways(Steward):
    """Offers what is leased, though the lease lives."""

    def _watch(self, now: float, key: bytes, entry: Entry) -> None:
        self._wait(now, key, entry, now)

    def _offer(self, now: float, key: bytes, member: LiveMember) -> list[Step]:
        owner, self._tasks[key].owner = self._tasks[key].owner, None
        try:
            return super()._offer(now, key, member)
        finally:
            self._tasks[key].owner = owner


class ClaimsUnasked(Unchecked):
    """Takes an offer for the grant."""

    def _on_offer(self, now: float, sender: NodeId, offer: Offer) -> list[Step]:
        steps = super()._on_offer(now, sender, offer)
        return steps + self.take_unasked(now, offer.task_id)


class StartsNamed(RunsInDoubt):
    """Starts what it is named for at once: no majority has renewed that, or may even hold it."""

    def _on_named(self, now: float, sender: NodeId, message: Named) -> list[Step]:
        steps = super()._on_named(now, sender, message)
        body = of_value(message.value) if steps else None
        run = None if body is None else self._runs.get(task_key(body.task_id))
        if run is not None and run.stage is Stage.UNSURE:
            steps += self._start(now, run)
        return steps


class WritesWithoutToken(Unchecked):
    """Writes a verdict over whatever is there, and tries until it may."""

    def _settle(self, now: float, run: Run, value: Value) -> list[Step]:
        self._desk.drop(now, run.key)
        self._insist(now, run.key, value)
        return self._end(now, run)

    def _insist(self, now: float, key: bytes, value: Value) -> None:
        tag = ("insist", key, value)
        self._desk.propose(now, key, lambda _: value, tag, 2.0, as_owner=True)

    def handle_done(self, now: float, done: Done) -> list[Step]:
        """Try again."""
        assert isinstance(done.tag, tuple)
        if done.tag[0] != "insist":
            return super().handle_done(now, done)
        if not isinstance(done.outcome, Chosen):
            self._insist(now, *done.tag[1:])
        return []


class SpendsReleased(Unchecked):
    """Counts an attempt that was let go as one that failed."""

    def _let_go(self, now: float, run: Run, reason: str) -> list[Step]:
        left = run.body.retries_left
        run.know(to_value(replace(run.body, retries_left=max(0, left - 1))))
        return super()._let_go(now, run, reason)


@contextmanager
def spoiled(habits: Habits) -> Iterator[None]:
    """Let every retry have an id of its own for a while, if these are the habits."""
    right, count = submitting.retry_id, itertools.count()
    if not habits.retries_once:
        submitting.retry_id = lambda dead: f"{right(dead)}-{next(count)}"
    try:
        yield
    finally:
        submitting.retry_id = right


WRONG: Final = {
    "an owner does not freeze in doubt": replace(RIGHT, claiming=RunsInDoubt),
    "what is leased is offered, and claimed without asking": replace(
        RIGHT, steward=OffersAlways, claiming=ClaimsUnasked
    ),
    "who is named starts before a majority renewed its lease": replace(RIGHT, claiming=StartsNamed),
    "a verdict is written without the token": replace(RIGHT, claiming=WritesWithoutToken),
    "a released attempt is spent": replace(RIGHT, claiming=SpendsReleased),
    "a retry is created twice": replace(RIGHT, retries_once=False),
}
