"""One run: an attempt that this node executes, from the start of its process to the taken report.

    process:  running ──exit──> ended
    output:   pieces are sent to the keeper one at a time, in order; the next read waits for the answer
    report:   sent when the process has ended and every piece was taken; repeated until it is answered

A **stale** run counts no more: it is stopped, and nothing is sent. An **orphan** has lost its keeper: it
runs to its end, and its report waits in case the keeper was wrongly believed dead and asks again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from mesh.core.effects import Emit
from mesh.core.events import Event, EventKind
from mesh.core.ids import NodeId
from mesh.core.process import ProcessExit
from mesh.wire.work_messages import OutputPiece, Released, Report, Spec

IDS_SHOWN_MAX: Final = 5


class RunKey(NamedTuple):
    """What makes it the same run: whoever offers this again gets no second one."""

    keeper: NodeId
    keeper_boot: int
    task_id: str
    attempt: int


@dataclass(slots=True)
class Run:
    """One attempt here. `pending` holds at most one piece of each stream: the driver waits."""

    run_id: int
    keeper: NodeId
    keeper_boot: int
    keeper_name: str
    spec: Spec
    attempt: int
    since: float  # Unix
    pending: deque[OutputPiece] = field(default_factory=deque)
    next_seq: int = 0
    exit: ProcessExit | None = None
    is_sending: bool = False  # a piece or the report is under way
    is_stale: bool = False
    is_orphan: bool = False
    has_slot: bool = True  # until its process ended and its output is with the keeper
    released_because: str = ""  # why another node is to run it: this one leaves, or ran short
    tries: int = 0

    @property
    def key(self) -> RunKey:
        """What makes it the same run."""
        return RunKey(self.keeper, self.keeper_boot, self.spec.task_id, self.attempt)

    def next_message(self, free_slots: int) -> OutputPiece | Report | Released | None:
        """Return what the keeper should hear next, or None if there is nothing just now."""
        if self.is_stale or self.is_orphan:
            return None
        if self.pending:
            return self.pending[0]
        if self.exit is None:
            return None
        task_id = self.spec.task_id
        if self.released_because:
            return Released(task_id, self.attempt, self.released_because[:2000])
        code, error = self.exit.exit_code & 0xFF, self.exit.error[:2000]
        return Report(task_id, self.attempt, code, error, min(free_slots, 0xFFFF))


def orphan_warning(run: Run) -> Emit:
    """Return what people are told of a run that ended with nobody to report to."""
    code = 0 if run.exit is None else run.exit.exit_code
    return Emit(
        Event(
            kind=EventKind.WARN,
            member_id=run.keeper,
            member=run.keeper_name,
            task_id=run.spec.task_id,
            detail=f"attempt {run.attempt} ended with exit code {code}, but its keeper {run.keeper_name} "
            "is gone: nobody takes the report",
        )
    )


def leaving_warning(runs: Sequence[Run]) -> Emit:
    """Return what people are told of the runs that are stopped because this node leaves."""
    some = ", ".join(_with_keeper(run) for run in runs[:IDS_SHOWN_MAX])
    more = ", …" if len(runs) > IDS_SHOWN_MAX else ""
    count = "1 task that runs" if len(runs) == 1 else f"{len(runs)} tasks that run"
    detail = f"stopping {count} here: {some}{more}; a keeper that stays has them run elsewhere"
    return Emit(Event(kind=EventKind.WARN, detail=detail))


def _with_keeper(run: Run) -> str:
    gone = ", which is gone" if run.is_orphan else ""
    return f"{run.spec.task_id} (kept by {run.keeper_name}{gone})"
