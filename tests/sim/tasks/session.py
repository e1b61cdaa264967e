"""One session of a node: its tasks over its desk, with a disk that takes its time and a view that lags behind."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import msgpack

from mesh.core.address import Address
from mesh.core.effects import (
    Answer,
    FreezeProcess,
    GuardProcess,
    StartProcess,
    StopProcess,
    ThawProcess,
)
from mesh.core.ids import NodeId
from mesh.placement.live_view import LiveMember, LiveView
from mesh.registers.desk import Desk
from mesh.registers.leases import LeaseTimes
from mesh.registers.numbers import Numbers
from mesh.registers.outbox import Commit
from mesh.registers.record import Record
from mesh.registers.voter import Voter
from mesh.tasks.config import TasksConfig
from mesh.tasks.effects import Outgoing, Send
from mesh.tasks.surroundings import Surroundings
from mesh.tasks.tasks import Tasks
from mesh.wire import contest_messages
from mesh.wire.records import Card, Metadata
from mesh.wire.roster_messages import Roster
from mesh.wire.task_messages import SCHEMAS
from tests.sim.tasks.executor import Executor
from tests.sim.tasks.judge import Judge
from tests.sim.tasks.variants import Habits

UNIX_S = 1.7e9
SET_ASIDE = "ballot_numbers"
CHECK_EVERY = 32
"""Invariants are looked at after one of so many events: they take a while."""

_FORMS = dict([*SCHEMAS.values(), *contest_messages.SCHEMAS.values()])


@dataclass(slots=True)
class Disk:
    """What survives a crash."""

    records: dict[bytes, Record] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    boot: int = 0


class Around(Protocol):
    """The host, as a session sees it."""

    own: NodeId
    disk: Disk
    slots: int
    unix_offset_s: float
    rng: random.Random
    judge: Judge
    times: LeaseTimes
    config: TasksConfig
    habits: Habits
    roster: Roster
    is_calm: bool
    executor: Executor

    def clock(self) -> float:
        """Return the host's own time."""

    def later(self, delay_s: float, act: Callable[[], None]) -> None:
        """Do it when so much true time has passed, and the node is not stopped."""

    def send(self, to: NodeId, message: object) -> None:
        """Hand a message to the network."""

    def answered(self, answer: Answer) -> None:
        """Hand a client its answer."""

    def after_own(self, moment: float) -> float:
        """Return for how long, in true time, the host's own clock has not come to this."""


def through_bytes(message: object) -> object:
    """Return a message as it comes out of its bytes."""
    form = _FORMS.get(type(message))
    return (
        message if form is None else form.unpack(msgpack.unpackb(msgpack.packb(form.pack(message))))
    )


class Session:
    """One boot of a node."""

    def __init__(self, around: Around) -> None:
        self._around = around
        disk, own, now = around.disk, around.own, around.clock()
        disk.boot += 1
        self.boot = disk.boot
        self.is_over = False
        self.is_draining = False
        self.view = LiveView()
        self._commits: deque[Commit] = deque()
        self._wakes = 0
        self._wake_at = float("inf")
        self._events = 0
        meta = Metadata(slots=around.slots)
        self.card = Card(
            node_id=own,
            boot=self.boot,
            incarnation=0,
            name=f"n{own}",
            address=Address("127.0.0.1", 1000 + own),
            meta=meta,
        )
        voter = Voter(
            own, around.times, epoch=around.roster.epoch, now=now, records=disk.records.items()
        )
        desk = Desk(
            own_id=own,
            boot=self.boot,
            domain=1,
            times=around.times,
            numbers=Numbers(disk.numbers.get(SET_ASIDE, 0)),
            rng=random.Random(around.rng.random()),
            voter=voter,
            roster=around.roster,
        )
        self._desk = desk
        self.view.put(self.member())
        self.tasks = Tasks(
            desk=desk,
            rng=random.Random(around.rng.random()),
            unix_offset_s=around.unix_offset_s,
            config=around.config,
            claim_for_s=around.times.doubt_s,
            around=Surroundings(
                card=lambda: self.card, view=self.view, name_of=lambda node_id: f"n{node_id}"
            ),
            now=now,
        )
        around.habits.spoil(self.tasks)
        self.do(self.tasks.handle_timeout)

    def member(self) -> LiveMember:
        """Return this node as others may see it."""
        card = self.card
        free = self.tasks.free_slots if hasattr(self, "tasks") else card.meta.slots
        return LiveMember(
            node_id=card.node_id,
            boot=card.boot,
            name=card.name,
            address=card.address,
            meta=card.meta,
            free_slots=free,
        )

    def see(self, node: NodeId, member: LiveMember | None) -> None:
        """Take what the membership says of a host, true or not."""
        if member is None:
            self.view.drop(node)
        else:
            self.view.put(member)
        self.do(lambda now: self.tasks.handle_member(now, node))

    def do(self, call: Callable[[float], list[Outgoing]]) -> None:
        """Let something happen, and carry out what follows."""
        if self.is_over:
            return
        now = self._around.clock()
        outputs = call(now)
        self._events += 1
        if self._events % CHECK_EVERY == 0 and self._around.habits.is_right:
            self.tasks.check_invariants(now)
        for output in outputs:
            self._carry_out(output)
        self._arm(now)

    # Inside.

    def _carry_out(self, output: Outgoing) -> None:
        around = self._around
        match output:
            case Commit():
                self._commits.append(output)
                if len(self._commits) == 1:
                    self._store()
            case Send():
                for message in output.messages:
                    around.send(output.to, through_bytes(message))
            case GuardProcess():
                around.executor.guard(output.run_id, output.freeze_at, output.kill_at)
            case StartProcess():
                around.executor.start(output)
            case FreezeProcess():
                around.executor.freeze(output.run_id)
            case ThawProcess():
                around.executor.thaw(output.run_id)
            case StopProcess():
                around.executor.stop(output.run_id, output.grace_s)
            case Answer():
                around.answered(output)
            case _:
                pass

    def _store(self) -> None:
        rng = self._around.rng
        is_slow = rng.random() < 0.02 and not self._around.is_calm
        takes_s = rng.expovariate(400) + is_slow * rng.uniform(0, 2)
        self._around.later(takes_s, self._stored)

    def _stored(self) -> None:
        if self.is_over:
            return
        commit, disk, around = self._commits.popleft(), self._around.disk, self._around
        for key, record in commit.records:
            disk.records[key] = record
            majority = len(self._desk.seats(key).voters) // 2 + 1
            around.judge.committed(around.own, key, record, majority)
        disk.numbers.update(commit.numbers)
        if self._commits:
            self._store()
        self.do(lambda now: self.tasks.committed(now, commit.number))

    def _arm(self, now: float) -> None:
        due = self.tasks.next_timeout()
        if due is None or due >= self._wake_at - 1e-9:
            return
        self._wakes += 1
        wakes, self._wake_at = self._wakes, due

        def wake() -> None:
            if wakes == self._wakes:
                self._wake_at = float("inf")
                self.do(self.tasks.handle_timeout)

        delay_s = self._around.after_own(max(due, now)) + 0.002
        self._around.later(delay_s, wake)
