"""What a session wants of its registers: each is created, claimed, worked on, and written its end.

It knows nothing but what its desk tells it, and acts on that alone.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from mesh.core.ballot import Ballot
from mesh.registers.asker import Done, Exists, Late
from mesh.registers.desk import Desk
from mesh.registers.leaseholder import Held
from mesh.registers.outbox import Fenced, Written
from mesh.registers.proposal import Chosen, Reason, Refused
from mesh.registers.reading import Seen
from mesh.registers.trust import Hold
from mesh.wire.register_messages import Owner, Standing, Value
from tests.sim.registers.desk_judge import DeskJudge
from tests.sim.registers.hosts import TICK_S

GRACE_S: Final = 0.01
"""So much later than it said a question may end: it wakes up at the end of its time."""


@dataclass(slots=True)
class _Job:
    next_at: float
    creates: bool
    knows_end: bool = False
    # What is asked.
    asks: str = ""
    ends_by: float = 0.0
    known_before: int = 0
    # What is held.
    token: Ballot | None = None
    hold: Hold = Hold.LOST
    is_granted: bool = False
    value: Value | None = None
    work_left_s: float = 0.0
    is_ending: bool = False


class Client:
    """Asks its desk for every register until it knows the end of it."""

    def __init__(
        self, owner: Owner, desk: Desk, judge: DeskJudge, rng: random.Random, now: float
    ) -> None:
        self._owner = owner
        self._desk = desk
        self._judge = judge
        self._rng = rng
        self._asked = 0
        self._jobs = {
            key: _Job(now + rng.uniform(0, 1), creates=rng.random() < 0.5) for key in judge.of
        }

    @property
    def is_owner(self) -> bool:
        return any(job.token is not None for job in self._jobs.values())

    def held(self) -> Iterable[tuple[bytes, Ballot]]:
        """Return what it believes that it may work on."""
        return [
            (key, job.token)
            for key, job in self._jobs.items()
            if job.token is not None and job.hold is Hold.SURE and not job.is_ending
        ]

    def tick(self, now: float) -> None:
        for key, job in self._jobs.items():
            if job.asks and now > job.ends_by + GRACE_S:
                self._judge.blame(f"{self._owner} is still asked to {job.asks} {key!r}")
            if job.token is not None:
                self._work(now, key, job)
            elif job.asks or now < job.next_at:
                continue
            elif not job.knows_end or self._rng.random() < 0.02:
                self._ask(now, key, job)

    def on(self, now: float, event: Done | Held | Written | Fenced) -> None:
        """Take what the desk says."""
        if isinstance(event, Done):
            assert isinstance(event.tag, tuple)
            self._on_done(now, event.tag[0], event)
            return
        job = self._jobs[event.key]
        if job.token != event.token:
            return
        if isinstance(event, Held):
            job.hold = event.hold
            if event.hold is Hold.LOST:
                self._judge.of[event.key].let_go(self._owner)
                if not job.is_ending:  # else the last word may come through
                    self._let_go(now, event.key, job)
        elif isinstance(event, Fenced):
            self._let_go(now, event.key, job)
        else:
            assert job.value is not None
            self._judge.of[event.key].told(self._owner, job.value)
            if job.value.standing is not Standing.LEASED:
                job.knows_end = job.value.standing is Standing.FINAL
                self._forget(now, event.key, job)

    def end(self) -> None:
        """Crash."""
        for judge in self._judge.of.values():
            judge.let_go(self._owner)

    # Asking.

    def _ask(self, now: float, key: bytes, job: _Job) -> None:
        rng, desk = self._rng, self._desk
        self._asked += 1
        tag, timeout_s = (key, self._asked), rng.choice((0.5, 2, 5))
        job.ends_by, job.known_before = now + timeout_s, self._judge.of[key].known_count
        if job.creates:
            job.asks = "create"
            body = b"made by %d in %d as %d" % (*self._owner, self._asked)
            desk.create(now, key, Value(Standing.OPEN, body), tag, timeout_s)
        elif rng.random() < 0.2 or job.knows_end or job.token is not None:
            job.asks = "read"
            desk.read(now, key, tag, timeout_s)
        else:
            job.asks = "claim"
            owner = self._owner

            def change(found: Value | None) -> Value | None:
                return None if found is None else Value(Standing.LEASED, found.body, owner)

            desk.propose(now, key, change, tag, timeout_s, as_owner=True)

    def _on_done(self, now: float, key: bytes, done: Done) -> None:
        job, judge, outcome = self._jobs[key], self._judge.of[key], done.outcome
        asked, job.asks = job.asks, ""
        job.next_at = now + self._rng.uniform(0.02, 0.5)
        if isinstance(outcome, Late):
            return
        if isinstance(outcome, Refused):
            if outcome.reason is Reason.UNCHANGED:
                judge.absent(self._owner, job.known_before)
                job.creates = True
            return
        if isinstance(outcome, Exists):
            judge.exists()
        elif isinstance(outcome, Seen) and outcome.value is None:
            judge.absent(self._owner, job.known_before)
            job.creates = True
            return
        elif outcome.value is not None:
            judge.told(self._owner, outcome.value)
            job.knows_end = outcome.value.standing is Standing.FINAL
        job.creates = False
        if asked == "claim" and isinstance(outcome, Chosen) and not job.knows_end:
            self._take(now, key, job, outcome)

    # Owning.

    def _take(self, now: float, key: bytes, job: _Job, chosen: Chosen) -> None:
        job.token, job.value = chosen.ballot, chosen.value
        job.work_left_s, job.is_ending = self._rng.uniform(0.5, 15), False
        job.is_granted = False
        job.hold = self._desk.hold(now, key, chosen)
        if job.hold is Hold.LOST:
            self._let_go(now, key, job)

    def _work(self, now: float, key: bytes, job: _Job) -> None:
        if job.hold is not Hold.SURE or job.is_ending or job.value is None:
            return
        if not job.is_granted:
            job.is_granted = True
            assert job.token is not None
            self._judge.of[key].granted(self._owner, job.token)
        if not job.asks and self._rng.random() < 0.02:  # what it has is asked for at its node, too
            job.creates = self._rng.random() < 0.5
            self._ask(now, key, job)
        job.work_left_s -= TICK_S
        body, chance = job.value.body, self._rng.random()
        if job.work_left_s <= 0:
            job.is_ending = True
            end = b"%s, done by %d in %d" % (body.split(b",")[0], *self._owner)
            self._write(now, key, job, Value(Standing.FINAL, end))
        elif chance < 0.03:
            self._write(now, key, job, replace(job.value, body=body + b", on"))
        elif chance < 0.04:
            job.is_ending = True
            self._write(now, key, job, Value(Standing.OPEN, body + b", released"))

    def _write(self, now: float, key: bytes, job: _Job, value: Value) -> None:
        job.value = value
        if (
            job.is_ending
        ):  # its work is done: anybody may have it before this is known to be written
            self._judge.of[key].let_go(self._owner)
        self._desk.write(now, key, value)

    def _let_go(self, now: float, key: bytes, job: _Job) -> None:
        self._judge.lost(self._owner, key)
        self._desk.drop(now, key)
        self._forget(now, key, job)

    def _forget(self, now: float, key: bytes, job: _Job) -> None:
        job.token, job.value, job.hold = None, None, Hold.LOST
        job.next_at = now + self._rng.uniform(0.02, 1)
        self._judge.of[key].let_go(self._owner)
