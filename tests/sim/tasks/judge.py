"""What must never be seen of tasks, whatever happened to their hosts.

It sees what is on disks, which runs execute when, what they exited with, and what clients were told; never the
machines' insides. It remembers the first thing that was wrong:

    two runs of one task at one true time; a token not above those before; a run after the end
    two values under one number, or a final value written over; an end that was told, and is another
    an acknowledgement of what no majority holds
    a run that the task's record does not tell of, or of another attempt, or with another cause than its
    predecessor's end; a verdict that no run gave; a retry spent by anything but a failure
"""

from __future__ import annotations

from collections.abc import Iterable

from mesh.core.ballot import Ballot
from mesh.core.effects import Answer
from mesh.core.ids import NodeId
from mesh.registers.record import Record
from mesh.sim.executions import Execution, Executions
from mesh.tasks.body import Attempt, Body, End, task_key
from mesh.tasks.commands import GetTask, RetryTask, Submit, SubmitMany, TaskCommand
from mesh.tasks.form import of_value
from mesh.wire.register_messages import Standing, Value
from mesh.wire.task_messages import AttemptCause, TaskState


class Judge:
    """Sees everything from outside."""

    def __init__(self, *, is_calm: bool) -> None:
        self.fault = ""
        self._executions = Executions(lambda _task_id, text: self._blame(text))
        self.starts = self._executions.starts
        self.finals: dict[bytes, Value] = {}
        self.acknowledged: dict[str, None] = {}
        self.cancelled: set[str] = set()
        self.over: set[tuple[NodeId, int]] = set()
        """Sessions that run nothing any more."""

        self.causes: dict[AttemptCause, int] = dict.fromkeys(AttemptCause, 0)
        self.poisoned = 0
        self._is_calm = is_calm
        self._held: dict[bytes, dict[tuple[Ballot, int], tuple[Value, set[NodeId]]]] = {}
        self._latest: dict[bytes, dict[NodeId, Value]] = {}
        self._there: set[bytes] = set()

    # Disks.

    def committed(self, voter: NodeId, key: bytes, record: Record, majority: int) -> None:
        """Take that a voter's disk holds this."""
        if record.value is None:
            return
        number = (record.ballot, record.seq)
        value, holders = self._held.setdefault(key, {}).setdefault(number, (record.value, set()))
        if value != record.value:
            self._blame(f"two values of {key!r} under {number}")
        holders.add(voter)
        latest = self._latest.setdefault(key, {})
        latest[voter] = record.value
        # Whatever the ballots: who asks any majority finds it there, and writes it back.
        if len(latest) >= majority:
            self._there.add(key)
        same = sum(one == record.value for one in latest.values())
        is_final = record.value.standing is Standing.FINAL and max(same, len(holders)) >= majority
        if is_final and self.finals.setdefault(key, record.value) != record.value:
            self._blame(f"the end of {key!r} was written over")

    # Clients.

    def told(self, command: TaskCommand, answer: Answer, *, was_acknowledged: bool) -> None:
        """Take what a client was told. `was_acknowledged`: the task it asks for was, when it asked."""
        if answer.error is not None:
            if isinstance(command, GetTask) and answer.error.startswith("no task"):
                self.told_missing(command.task_id, was_acknowledged)
            return
        assert isinstance(answer.result, dict), (command, answer)
        if isinstance(command, Submit | RetryTask):
            self.told_created(answer.result["id"])
        if isinstance(command, SubmitMany):
            for each in answer.result["tasks"]:
                if "error" not in each:
                    self.told_created(each["id"])
        if "state" in answer.result:
            self.told_state(answer.result["id"], answer.result["state"])

    def told_created(self, task_id: str) -> None:
        """Take that a client was told that its task is there."""
        self.acknowledged[task_id] = None
        if task_key(task_id) not in self._there:
            self._blame(f"{task_id} was acknowledged, and no majority holds it")

    def told_state(self, task_id: str, state: str) -> None:
        """Take that a client was told how a task stands."""
        if state in {"done", "failed", "cancelled"}:
            final = self.finals.get(task_key(task_id))
            if final is None or of_value(final).state.word != state:
                self._blame(f"a client was told that {task_id} is {state}, and it is not")

    def told_missing(self, task_id: str, was_acknowledged: bool) -> None:
        """Take that a client was told that there is no such task."""
        if was_acknowledged:
            self._blame(f"{task_id} was acknowledged, and then not found")

    # Runs.

    def started(self, execution: Execution) -> None:
        """Take that a process was started."""
        self._executions.started(execution)
        if task_key(execution.task_id) in self.finals:
            self._blame(f"{execution} was started after the task's end")

    def executes(self, execution: Execution) -> None:
        """Take that a process goes on from now on."""
        self._executions.executes(execution)

    def rests(self, execution: Execution) -> None:
        """Take that a process is frozen, or has ended."""
        self._executions.rests(execution)

    # At the end.

    def unfinished(self) -> list[str]:
        """Return the acknowledged tasks that have no end yet."""
        return [one for one in self.acknowledged if task_key(one) not in self.finals]

    def close(self) -> None:
        """Compare what was recorded with what was seen."""
        retries: dict[str, str] = {}
        for value in self.finals.values():
            body = of_value(value)
            body.check_invariants()
            self._audit(body)
            if body.retry_of:
                if body.retry_of in retries:
                    self._blame(f"{body.retry_of} has two retries: {body.task_id} and another")
                retries[body.retry_of] = body.task_id
        for task_id in self.starts:
            if task_key(task_id) not in self._there:
                self._blame(f"{task_id} was started, and no majority ever held it")

    def _audit(self, body: Body) -> None:
        recorded = {attempt.number: attempt for attempt in body.attempts}
        ran = {one.attempt: one for one in self.starts.get(body.task_id, ())}
        for number, execution in ran.items():
            attempt = recorded.get(number)
            if attempt is None or attempt.node_id != execution.node:
                self._blame(f"{execution} is not among the attempts {body.attempts}")
            elif attempt.token is not None and attempt.token.token != execution.token:
                self._blame(f"{execution} is recorded with another token: {attempt}")
        for before, attempt in zip((None, *body.attempts), body.attempts, strict=False):
            self.causes[attempt.cause] += 1
            self._check_cause(body, before, attempt)
            self._check_verdict(body, attempt, ran.get(attempt.number))
        self._check_end(body)

    def _check_cause(self, body: Body, before: Attempt | None, attempt: Attempt) -> None:
        ends = {
            AttemptCause.RETRY: End.VERDICT,
            AttemptCause.LAPSE: End.LOST,
            AttemptCause.CRASH: End.LOST,
            AttemptCause.RELEASED: End.RELEASED,
        }
        if before is None:
            is_right = attempt.cause is AttemptCause.FIRST and attempt.number == 1
        else:
            is_right = attempt.cause in ends and ends[attempt.cause] is before.end
            if attempt.cause is AttemptCause.CRASH and before.owner not in self.over:
                self._blame(f"{body.task_id}: {before} was no crash, and is taken for one")
        if not is_right:
            self._blame(f"{body.task_id}: {attempt} has another cause, after {before}")
        if self._is_calm and attempt.end is End.LOST:
            self._blame(f"{body.task_id}: {attempt} was lost in calm weather")

    def _check_verdict(self, body: Body, attempt: Attempt, ran: Execution | None) -> None:
        if attempt.end is not End.VERDICT or (ran is None and body.task_id in self.cancelled):
            return
        if ran is None or ran.exit_code != attempt.exit_code:
            self._blame(f"{body.task_id}: {attempt} has a verdict of its own, beside {ran}")

    def _check_end(self, body: Body) -> None:
        verdicts = [one for one in body.attempts if one.end is End.VERDICT]
        failures = sum(one.exit_code != 0 for one in verdicts)
        used = body.terms.retries - body.retries_left
        if body.state is TaskState.DONE and (not verdicts or verdicts[-1].exit_code != 0):
            self._blame(f"{body.task_id} is done, without a run that ended well: {body}")
        if body.state is TaskState.CANCELLED and body.task_id not in self.cancelled:
            self._blame(f"{body.task_id} is cancelled, and nobody asked for it")
        if body.state is TaskState.FAILED:
            is_poison = _lost_in_a_row(body) >= 3
            self.poisoned += is_poison
            if not is_poison:
                failures -= 1  # the last one had no retry left to spend
                if body.retries_left:
                    self._blame(f"{body.task_id} failed with retries left: {body}")
        if body.state is not TaskState.CANCELLED and failures != used:
            self._blame(f"{body.task_id}: {failures} failures spent {used} retries: {body}")

    def _blame(self, text: str) -> None:
        self.fault = self.fault or text


def _lost_in_a_row(body: Body) -> int:
    ends: Iterable[End] = (
        one.end for one in reversed(body.attempts) if one.end is not End.RELEASED
    )
    count = 0
    for end in ends:
        if end is not End.LOST:
            break
        count += 1
    return count
