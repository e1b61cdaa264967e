"""One attempt that this node claims, runs and writes the verdict of, and how far it has come.

    claiming ─granted─► unsure ─sure─► running ─its process ended─► settling ─written, or fenced─► over
        │                  │              │ lost, or fenced
        └─ somebody's ─────┴─ lost ─┐     └──► doomed ─its process ended─► over
                                    └► over

Source: our own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from mesh.core.ballot import NO_BALLOT, Ballot
from mesh.core.effects import GuardProcess, StopProcess
from mesh.core.ids import NodeId
from mesh.core.process import ProcessExit, ProcessOutput
from mesh.registers.trust import Hold
from mesh.tasks.body import TAIL_BYTES_MAX, Body, Result
from mesh.tasks.changes import Change, Claim, Finish, MarkCancelled, Release
from mesh.tasks.effects import Step
from mesh.tasks.form import of_value
from mesh.tasks.slots import Needs
from mesh.wire.register_messages import Owner, Value
from mesh.wire.task_messages import CancelAnswer, CancelVerdict

KILLED: Final = 137
"""The exit code of what ended by SIGKILL."""


class Stage(Enum):
    """How far an attempt has come here."""

    CLAIMING = "claiming"
    UNSURE = "unsure"
    """It is leased to this session, which may not trust that yet: nothing was started."""

    RUNNING = "running"
    SETTLING = "settling"
    """Its process has ended, or never was; what came of it is being written."""

    DOOMED = "doomed"
    """The lease is lost, and its process is being killed."""


@dataclass(slots=True)
class Tails:
    """The end of what an attempt wrote: what its result holds."""

    ends: tuple[bytearray, bytearray] = field(default_factory=lambda: (bytearray(), bytearray()))
    output_bytes: int = 0

    def take(self, event: ProcessOutput) -> None:
        """Keep the end of each stream."""
        tail = self.ends[event.stream - 1]
        tail += event.data
        del tail[:-TAIL_BYTES_MAX]
        self.output_bytes += len(event.data)

    def result(self, end: ProcessExit, dropped_bytes: int) -> Result:
        """Return what came of the attempt; `dropped_bytes` of its output were lost before anybody received them."""
        return Result(
            exit_code=end.exit_code & 0xFF,
            error=end.error,
            output_bytes=self.output_bytes,
            output_dropped_bytes=dropped_bytes,
            stdout_tail=bytes(self.ends[0]),
            stderr_tail=bytes(self.ends[1]),
        )


@dataclass(slots=True, eq=False)
class Run:
    """One attempt. Invariant: its process lives exactly while it is running or doomed."""

    run_id: int
    key: bytes
    task_id: str
    needs: Needs
    claim: Claim
    began: float
    senders: dict[NodeId, int] = field(default_factory=dict)
    """Who offered it, and as which attempt; they hear of it if the claim comes to nothing."""

    offered: Ballot = NO_BALLOT
    """What its voter held when it offered it."""

    stage: Stage = Stage.CLAIMING
    hold: Hold = Hold.DOUBT
    token: Ballot = NO_BALLOT
    value: Value | None = None
    """As this session wrote it last; `know` sets it."""

    seq: int = 0
    """Of the write that settles it."""

    mark_seq: int = 0
    """Of the write that says it is to be cancelled; 0: none was asked for."""

    cancellers: dict[NodeId, None] = field(default_factory=dict)
    """Who waits to hear that it is written down."""

    is_fenced: bool = False
    is_stopped: bool = False
    """Its process was asked to end, for another reason than its lease."""

    is_frozen: bool = False
    has_slot: bool = True
    release_because: str = ""
    guarded: tuple[float, float] = (0.0, 0.0)
    """What its guardian was told last."""

    tails: Tails = field(default_factory=Tails)
    _body: Body | None = None
    since: float | None = None
    """Unix: when its process was started; None: it was not."""

    @property
    def owner(self) -> Owner:
        """The session that claims it."""
        return self.claim.owner

    @property
    def body(self) -> Body:
        """The task, as this session wrote it last. It has been granted."""
        assert self._body is not None
        return self._body

    def know(self, value: Value) -> None:
        """Take what was granted, or is written."""
        self.value, self._body = value, of_value(value)

    def finished(self, at: float, result: Result, jitter: float) -> Value:
        """Take and return the task with a verdict on this attempt."""
        attempt, token = self.body.attempt, self.token
        change = Finish(at, self.owner, attempt, token, result, jitter, started=self.since)
        return self._change(change)

    def released(self, at: float, reason: str) -> Value:
        """Take and return the task as this attempt lets it go."""
        attempt, token = self.body.attempt, self.token
        return self._change(Release(at, self.owner, attempt, token, reason, started=self.since))

    def marked(self, at: float) -> Value:
        """Take and return the task as it is to be cancelled."""
        attempt, token = self.body.attempt, self.token
        return self._change(MarkCancelled(at, self.owner, attempt, token, started=self.since))

    def _change(self, change: Change) -> Value:
        value = change(self.value)
        assert value is not None, (self, change)
        self.know(value)
        return value

    def json(self) -> dict[str, Any]:
        """Return it as programs see it."""
        return {
            "id": self.task_id,
            "attempt": self.body.attempt,
            "token": str(
                self.token.token
            ),  # in text, as in a task's JSON: no transport takes so long a number
            "is_frozen": self.is_frozen,
            "since": self.since,
            "argv": list(self.body.spec.argv),
        }

    def environment(self) -> Mapping[str, str]:
        """Return what its command finds in its environment."""
        body = self.body
        return {
            **dict(body.spec.env),
            "MESH_TASK_ID": body.task_id,
            "MESH_TOKEN": str(self.token.token),
            "MESH_ATTEMPT": str(body.attempt),
            "MESH_IDEMPOTENCY_KEY": body.task_id,
        }

    def stop(self, grace_s: float) -> list[Step]:
        """Ask its process to end, once, for another reason than its lease."""
        if self.stage is not Stage.RUNNING or self.is_stopped:
            return []
        self.is_stopped = True
        return [StopProcess(self.run_id, grace_s)]

    def guard(self, until: float | None, given_up_at: float | None) -> list[Step]:
        """Tell its guardian the deadlines of its lease, where they have moved."""
        if until is None or given_up_at is None or self.guarded == (until, given_up_at):
            return []
        self.guarded = until, given_up_at
        return [GuardProcess(self.run_id, until, given_up_at)]

    def cancel(self, sender: NodeId, attempt: int) -> CancelVerdict | None:
        """Return what to answer at once to whoever wants it cancelled; None: it hears when that is written down."""
        if self.stage in {Stage.CLAIMING, Stage.DOOMED} or self.body.attempt != attempt:
            return CancelVerdict.UNKNOWN
        if self.stage is Stage.SETTLING:
            return CancelVerdict.OVER
        self.cancellers[sender] = None
        return None

    def tell_cancellers(self, verdict: CancelVerdict) -> list[Step]:
        """Answer all who want it cancelled, and forget them."""
        answer = CancelAnswer(self.task_id, self.body.attempt, verdict)
        steps: list[Step] = [(sender, answer) for sender in self.cancellers]
        self.cancellers.clear()
        return steps
