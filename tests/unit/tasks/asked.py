"""What the tests of asking share: a node's clients, short ways to read answers, and an owner."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mesh.core.effects import Answer
from mesh.core.ids import NodeId
from mesh.tasks import changes as ch
from mesh.tasks.body import Result, Terms, task_key
from mesh.tasks.commands import (
    New,
    Submit,
)
from mesh.tasks.form import of_value
from mesh.wire.register_messages import (
    Accept,
    Owner,
    Prepare,
    Promised,
    Standing,
    Value,
)
from tests.unit.tasks.hall import VOTERS, Desk, Hall
from tests.unit.tasks.made import BERT, NOON, SPEC, TOKEN

DORA = Owner(NodeId(4), 44)  # votes on nothing
ID = SPEC.task_id
DONE, FAIL = Result(exit_code=0), Result(exit_code=1)


def hall_of(owner: Owner = DORA) -> tuple[Hall, Desk]:
    hall = Hall()
    return hall, Desk(hall, owner)


def result(answer: Answer | None) -> dict[str, Any]:
    assert answer is not None
    assert answer.error is None, answer.error
    assert isinstance(answer.result, dict)
    return answer.result


def error(answer: Answer | None) -> str:
    assert answer is not None
    assert answer.result is None
    assert answer.error is not None
    return answer.error


def submit(desk: Desk, task_id: str = ID, retries: int = 0) -> None:
    terms = Terms(retries=retries)
    result(desk.give(Submit(900, New(replace(SPEC, task_id=task_id), terms))))
    del desk.answers[900]


class Runner:
    """An owner with its one lease: claims, writes under its token, and is not heard of otherwise."""

    def __init__(self, hall: Hall, owner: Owner = BERT, task_id: str = ID) -> None:
        self.hall = hall
        self.owner = owner
        self.key = task_key(task_id)
        self.desk = Desk(hall, owner)
        self.value = Value(Standing.OPEN, b"")
        self.seq = 0

    def claim(self) -> None:
        hall, n = self.hall, 1_000 + int(self.hall.now)
        ballot = TOKEN._replace(n=n, node_id=self.owner.node_id)
        promises = []
        for voter in VOTERS:
            promises += hall.ask(voter, Prepare(self.key, ballot, self.owner.boot))
        seen = [one for one in promises if isinstance(one, Promised)]
        assert len(seen) >= 2, promises
        found = max(seen, key=lambda one: (one.accepted, one.seq)).value
        value = ch.Claim(NOON + hall.now, self.owner, "bert")(found)
        assert value is not None
        self.token, self.seq = ballot, -1
        self.write(value)

    def write(self, value: Value | None) -> None:
        assert value is not None
        self.seq += 1
        self.value = value
        for voter in VOTERS:
            self.hall.ask(voter, Accept(self.key, 1, self.token, self.seq, value))

    def finish(self, outcome: Result) -> None:
        attempt = of_value(self.value).attempt
        at = NOON + self.hall.now
        self.write(ch.Finish(at, self.owner, attempt, TOKEN, outcome, 0.0)(self.value))

    def release(self) -> None:
        attempt = of_value(self.value).attempt
        at = NOON + self.hall.now
        self.write(ch.Release(at, self.owner, attempt, TOKEN, "to be run elsewhere")(self.value))

    def mark(self) -> None:
        attempt = of_value(self.value).attempt
        at = NOON + self.hall.now
        self.write(ch.MarkCancelled(at, self.owner, attempt, TOKEN)(self.value))


def dead(hall: Hall, desk: Desk, task_id: str = ID) -> None:
    submit(desk, task_id)
    runner = Runner(hall, task_id=task_id)
    runner.claim()
    runner.finish(FAIL)
