"""Submitting: new tasks, one or many, and the retry of a dead letter, which is a new task too.

A task is acknowledged when a majority of its voters holds it. The id is the idempotency key: who got no answer
asks again under the same id, and either finds the task or makes it.

An id that is drawn here is drawn so that this node is the task's first voter, where it is one at all: it creates the
task in one round, and may name the first owner in the same write. That is one with a free slot, which begins as soon as
a majority has renewed its lease: nothing is offered, nothing claimed. Of a task that was given its id nobody is named:
something of that name may have been here before, and tokens rise from one to the other.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any, Final

from mesh.core.ids import TASK_ID_CHARS_MAX, new_task_id
from mesh.errors import DecodeError
from mesh.registers.asker import Exists, Late, Outcome
from mesh.registers.proposal import Chosen, Refused
from mesh.registers.roster import ROSTERS
from mesh.tasks.body import (
    DURATION_S_MAX,
    RETRIES_MAX,
    SPEC_BYTES_MAX,
    TIME_MAX,
    Body,
    Terms,
    spec_bytes,
    task_key,
)
from mesh.tasks.changes import Claim, created
from mesh.tasks.commands import New, RetryTask, Submit, SubmitMany
from mesh.tasks.form import of_value, to_value
from mesh.tasks.means import Means, Step
from mesh.tasks.naming import TELL_S
from mesh.tasks.talk import Talk, TaskTalk, refused_text
from mesh.wire.register_messages import Owner, Value
from mesh.wire.task_messages import Named, TaskState
from mesh.wire.work_messages import Spec, check_spec

BATCH_MAX: Final = 1_000
"""Tasks of one command."""

RETRIES_IN_A_ROW_MAX: Final = 1_000
"""Dead letters, each the retry of the one before, that one command looks through."""

DRAWS_MAX: Final = 16
"""Ids that are drawn at most until one is this node's to create: of three voters, one in three is."""

_MARK: Final = "~"
_HASH_CHARS: Final = 32


class Submitting(Talk):
    """`Submit` or `SubmitMany`."""

    def __init__(self, number: int, means: Means, command: Submit | SubmitMany) -> None:
        super().__init__(number, command.command_id, means, command.timeout_s)
        self._is_one = isinstance(command, Submit)
        self._news = (command.new,) if isinstance(command, Submit) else command.news
        self._bodies: dict[int, Body] = {}  # by place; those that are being asked for
        self._written: dict[int, tuple[Value, Value]] = {}  # of those
        self._may_name = True
        self._begun = 0.0
        self._results: dict[int, dict[str, Any]] = {}

    def begin(self, now: float) -> list[Step]:
        """Ask for all of them at once."""
        if len(self._news) > BATCH_MAX:
            return self.end(
                error=f"at most {BATCH_MAX} tasks are expected at once, found {len(self._news)}: submit "
                "them in several commands"
            )
        self._begun = now
        places: dict[str, int] = {}
        for place, new in enumerate(self._news):
            try:
                body = self._body(now, new)
            except DecodeError as error:
                text = f"the task is described wrongly: {error}"
                self._results[place] = {"id": new.spec.task_id, "error": text}
                continue
            if body.task_id in places:
                text = f"another task of this batch, number {places[body.task_id] + 1}, has this id"
                self._results[place] = {"id": body.task_id, "error": text}
                continue
            places[body.task_id] = place
            self._bodies[place] = body
            is_new = not new.spec.task_id
            value = to_value(body)
            first = self._named(body, value) if is_new else value
            self._written[place] = value, first
            self._means.registers.create(
                now,
                task_key(body.task_id),
                value,
                self.tag(place),
                self._timeout_s,
                first=first,
                is_new=is_new,
            )
        return self._look()

    def on_outcome(self, now: float, part: int, outcome: Outcome) -> list[Step]:
        """Note what came of one of them."""
        body, written = self._bodies.pop(part), self._written.pop(part)
        is_own = isinstance(outcome, Chosen) and outcome.value in written
        self._results[part] = (
            {"id": body.task_id}
            if is_own
            else submitted(self._means, body, outcome, self._timeout_s)
        )
        is_made = isinstance(outcome, Chosen | Exists) and outcome.value == written[1]
        return [*(self._name(now, body) if is_made else ()), *self._look()]

    def _name(self, now: float, body: Body) -> list[Step]:
        """Tell whom the creation named, where no steward of this node does: it is the first voter no more."""
        registers, key = self._means.registers, task_key(body.task_id)
        record = registers.voter.record(key)
        is_late = now > self._begun + TELL_S
        if is_late or not record.is_named or registers.place(key) == 0:
            return []
        ballot, value = record.ballot, record.value
        if value is None or value.owner is None or ballot.node_id != self._means.own.node_id:
            return []
        return [(value.owner.node_id, Named(ballot, value))]

    def _look(self) -> list[Step]:
        if self._bodies:
            return []
        if not self._is_one:
            return self.end({"tasks": [self._results[place] for place in range(len(self._news))]})
        result = self._results[0]
        error = result.get("error")
        return self.end(error=error) if error else self.end(result)

    def _body(self, now: float, new: New) -> Body:
        spec = in_order(new.spec)
        check_spec(spec)
        _check_terms(new.terms, new.not_before)
        size = spec_bytes(spec)
        if size > SPEC_BYTES_MAX:
            raise DecodeError(
                f"at most {SPEC_BYTES_MAX} bytes of command and environment are expected, found {size}: "
                "put what is large into a file"
            )
        means = self._means
        return created(
            replace(spec, task_id=spec.task_id or self._draw_id()),
            new.terms,
            means.unix(now),
            not_before=new.not_before,
            origin=means.card().name,
        )

    def _draw_id(self) -> str:
        """Draw an id of which this node is the first voter, or any where it is none."""
        registers, rng = self._means.registers, self._means.rng
        task_id = new_task_id(rng)
        own = self._means.own.node_id
        if own in registers.seats(ROSTERS).voters:
            for _ in range(DRAWS_MAX):
                if registers.place(task_key(task_id)) == 0:
                    break
                task_id = new_task_id(rng)
        return task_id

    def _named(self, body: Body, value: Value) -> Value:
        """Return the task as leased to a member with a free slot; as it is, where none is known, or it is not due."""
        means = self._means
        is_ready = body.state is TaskState.READY
        is_first = means.registers.place(task_key(body.task_id)) == 0
        if not (self._may_name and is_ready and is_first):
            return value
        picked = means.name_home(body.head)
        if picked is None:
            self._may_name = False  # the rest of the batch would wait behind it
            return value
        home, placement = picked
        owner = Owner(home.node_id, home.boot)
        return Claim(body.created, owner, home.name, placement=placement)(value) or value


class Retrying(TaskTalk):
    """`RetryTask`: finds the last of a row of dead letters, and submits the one after it."""

    def __init__(self, number: int, means: Means, command: RetryTask) -> None:
        super().__init__(number, command.command_id, means, command.timeout_s, command.task_id)
        self._old_id = command.task_id
        self._next: Body | None = None
        self._row = 0

    def on_outcome(self, now: float, part: int, outcome: Outcome) -> list[Step]:
        """Go on from what was read, or answer with what was created."""
        del part
        if self._next is not None:
            return self._on_created(now, self._next, outcome)
        if isinstance(outcome, Late):
            return self._late()
        if isinstance(outcome, Refused):
            return self.end(error=refused_text(self._old_id, outcome))
        body = self._body(outcome.value)
        if isinstance(body, str):
            return self.end(error=body)
        if body.state is not TaskState.FAILED:
            return self.end(
                error=f"task {body.task_id} is {body.state.word}: only one that failed for good can be retried"
            )
        return self._create(now, body)

    def _create(self, now: float, dead: Body) -> list[Step]:
        means = self._means
        self._next = body = created(
            replace(dead.spec, task_id=retry_id(dead)),
            dead.terms,
            means.unix(now),
            origin=means.card().name,
            retry_of=dead.task_id,
        )
        key = task_key(body.task_id)
        means.registers.create(now, key, to_value(body), self.tag(), self._timeout_s)
        return []

    def _on_created(self, now: float, body: Body, outcome: Outcome) -> list[Step]:
        found = None if isinstance(outcome, Refused | Late) else _read(outcome.value)
        if found is not None and found.retry_of != body.retry_of:
            return self.end(
                error=f"task {body.task_id}, as the retry of {body.retry_of} would be called, is another task: "
                f"submit what {body.retry_of} was to do under an id of its own"
            )
        if (
            found is not None
            and found.state is TaskState.FAILED
            and self._row < RETRIES_IN_A_ROW_MAX
        ):
            self._row += 1
            return self._create(now, found)
        result = submitted(self._means, body, outcome, self._timeout_s)
        error = result.get("error")
        if error:
            return self.end(error=error)
        return self.end({**result, "retry_of": body.retry_of})


def submitted(means: Means, body: Body, outcome: Outcome, waited_s: float) -> dict[str, Any]:
    """Return what a client is told of a task that it submitted."""
    task_id = body.task_id
    if isinstance(outcome, Late):
        text = means.no_majority(task_key(task_id), waited_s)
        if outcome.may_be_chosen:
            text += (
                f". It may have been taken all the same: submitted again as {task_id}, it runs once"
            )
        return {"id": task_id, "error": text}
    if isinstance(outcome, Refused):
        return {"id": task_id, "error": refused_text(task_id, outcome)}
    value = outcome.value
    if isinstance(outcome, Chosen) and value == to_value(body):
        return {"id": task_id}
    found = _read(value)
    if found is None or found.task_id != task_id:
        text = f"there is a record under id {task_id} that this version of Mesh cannot read: use another id"
        return {"id": task_id, "error": text}
    if isinstance(outcome, Exists | Chosen) and _is_own(found, body):
        return {"id": task_id}
    is_same = (found.spec, found.terms) == (body.spec, body.terms)
    return {"id": task_id, "known": True, "state": found.state.word, "same": is_same}


def retry_id(dead: Body) -> str:
    """Return the id of a dead letter's retry: the first one's, and which retry it is."""
    first, number = dead.task_id, 0
    before, mark, digits = dead.task_id.rpartition(_MARK)
    if dead.retry_of and mark and len(digits) < 10 and digits.isascii() and digits.isdigit():
        first, number = before, int(digits)
    task_id = f"{first}{_MARK}{number + 1}"
    if len(task_id) <= TASK_ID_CHARS_MAX:
        return task_id
    digest = hashlib.blake2b(first.encode("utf-8", "surrogatepass"), digest_size=_HASH_CHARS // 2)
    return f"{first[:64]}-{digest.hexdigest()}{_MARK}{number + 1}"


def in_order(spec: Spec) -> Spec:
    """Return a spec with its pairs sorted, as the wire wants them; of a repeated key the last one counts."""
    return replace(
        spec,
        env=tuple(sorted(dict(spec.env).items())),
        labels=tuple(sorted(dict(spec.labels).items())),
        needs=tuple(sorted(dict(spec.needs).items())),
    )


def _is_own(found: Body, body: Body) -> bool:
    """Say whether what was found is what this command itself wrote, under an earlier ballot."""
    return (found.created, found.origin, found.spec) == (body.created, body.origin, body.spec)


def _read(value: Value | None) -> Body | None:
    try:
        return None if value is None else of_value(value)
    except DecodeError:
        return None


def _check_terms(terms: Terms, not_before: float) -> None:
    if type(terms.retries) is not int or not 0 <= terms.retries <= RETRIES_MAX:
        raise DecodeError(f"0 to {RETRIES_MAX} retries are expected, found {terms.retries!r}")
    limits = {
        "retry_delay_s": DURATION_S_MAX,
        "retry_delay_s_max": DURATION_S_MAX,
        "retain_s": DURATION_S_MAX,
        "not_before": TIME_MAX,
    }
    for name, seconds_max in limits.items():
        seconds: object = not_before if name == "not_before" else getattr(terms, name)
        if not isinstance(seconds, int | float) or not 0 <= seconds <= seconds_max:
            raise DecodeError(
                f"{name}: seconds from 0 to {seconds_max:g} are expected, found {seconds!r}"
            )
