"""Askers and voters side by side: what the tests of questions share."""

from __future__ import annotations

import random
from collections.abc import Callable

from mesh.core.ballot import Ballot
from mesh.core.effects import Persist
from mesh.core.ids import NodeId
from mesh.registers.asker import Asked, Asker, Done, Outcome
from mesh.registers.leases import local
from mesh.registers.numbers import Numbers
from mesh.registers.voter import Forget, Store, StoreEpoch, Voter
from mesh.wire.register_messages import (
    Accept,
    Answer,
    Owner,
    Request,
    Standing,
    Value,
)
from mesh.wire.roster_messages import Page, Roster, Sealed

A, B, C = (NodeId(number) for number in (1, 2, 3))
VOTERS = (A, B, C)
ME, OTHER = NodeId(8), NodeId(9)
KEY = b"k"
READY = Value(Standing.OPEN, b"ready")
DONE = Value(Standing.FINAL, b"done")
TIMES = local()


def owned(node_id: NodeId = OTHER) -> Value:
    return Value(Standing.LEASED, b"runs", Owner(node_id, 1))


def answers(voter: Voter, now: float, request: Request) -> list[Answer]:
    steps = voter.handle(now, request)
    return [
        step for step in steps if not isinstance(step, Store | StoreEpoch | Forget | Sealed | Page)
    ]


class World:
    """Askers and voters; whom a message reaches is up to `reaches`."""

    def __init__(self) -> None:
        self.voters = {voter: Voter(voter, TIMES, epoch=1, now=0.0) for voter in VOTERS}
        self.roster = Roster(1, VOTERS)
        self.askers = {node: self._asker(node) for node in (ME, OTHER)}
        self.now = 0.0
        self.reaches: Callable[[NodeId, Request], bool] = lambda _to, _request: True
        self.persisted: list[Persist] = []
        self.done: dict[object, Outcome] = {}
        self.sent = 0

    def _asker(self, node: NodeId) -> Asker:
        return Asker(
            boot=1,
            own_id=node,
            domain=0,
            numbers=Numbers(0),
            seats=lambda _key: self.roster,
            rng=random.Random(node),
        )

    def carry(self, out: list[Asked], asker: NodeId = ME) -> None:
        """Carry everything out, and what follows from it."""
        queue = list(out)
        while queue:
            one = queue.pop(0)
            if isinstance(one, Persist):
                self.persisted.append(one)
            elif isinstance(one, Done):
                self.done[one.tag] = one.outcome
            else:
                queue += self._deliver(asker, *one)

    def _deliver(self, asker: NodeId, to: NodeId, request: Request) -> list[Asked]:
        self.sent += 1
        if not self.reaches(to, request):
            return []
        out: list[Asked] = []
        for answer in answers(self.voters[to], self.now, request):
            out += self.askers[asker].handle(self.now, to, answer)
        return out

    def wait(self, asker: NodeId = ME) -> None:
        """Let the time pass until the asker wants to be called."""
        due = self.askers[asker].next_deadline()
        assert due is not None
        self.now = max(self.now, due)
        self.carry(self.askers[asker].handle_timeout(self.now), asker)

    def settle(self, tag: object, asker: NodeId = ME) -> Outcome:
        while tag not in self.done:
            self.wait(asker)
        return self.done[tag]

    def put(self, value: Value, *voters: NodeId, n: int = 1, node: NodeId = A) -> None:
        for voter in voters or VOTERS:
            self.voters[voter].handle(self.now, Accept(KEY, 1, Ballot(0, 1, n, node), 0, value))

    def create(self, value: Value = READY) -> Outcome:
        self.carry(self.askers[ME].create(self.now, KEY, value, "create", 5.0))
        return self.settle("create")
