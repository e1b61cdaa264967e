"""A task and its attempts, as the node that accepted it keeps them.

        submitted ──> ready ──leased──> leased ──report──> done | failed | cancelled
                        ^                  │
                        └──────lost────────┘     the owner died, left, or knows the attempt no more

An **attempt** is one number that at most one node may run under. Whenever a number may have started
somewhere and did not end there by a report, the next node gets the next number; whatever still comes
in under the old one is stale. A number that was cleanly declined is offered on, and leaves no record.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from mesh.core.ids import NodeId, format_id
from mesh.errors import LocalProtocolError
from mesh.placement.live_view import Wants
from mesh.wire.work_messages import Spec


class TaskState(StrEnum):
    """Where a task is. The values are part of the JSON that programs rely on."""

    READY = "ready"
    LEASED = "leased"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class AttemptCause(StrEnum):
    """Why an attempt was started."""

    FIRST = "first"
    CRASH = "crash"  # the owner before was declared dead, or restarted
    RELEASED = "released"  # the owner before left
    LAPSE = "lapse"  # the owner before no longer answers for its attempt


_R, _L, _D, _F, _C = TaskState
TRANSITIONS: Final = {
    _R: (_L, _D, _F, _C),  # done and failed: a report of an attempt that was believed lost
    _L: (_R, _D, _F, _C),
    _D: (),
    _F: (),
    _C: (),
}
TERMINAL: Final = (_D, _F, _C)


@dataclass(slots=True)
class Attempt:
    """One attempt that started, or may have started, at one session of one node."""

    number: int
    node_id: NodeId
    boot: int
    name: str
    cause: AttemptCause
    started: float  # Unix
    ended: float | None = None
    exit_code: int | None = None
    error: str = ""
    next_seq: int = 0  # the next piece of output that is expected
    heard: float = 0.0  # `now` of the owner's last word

    def json(self) -> dict[str, Any]:
        """Return the attempt as programs see it."""
        return {
            "number": self.number,
            "node": self.name,
            "node_id": format_id(self.node_id),
            "token": None,
            "cause": self.cause.value,
            "started": self.started,
            "ended": self.ended,
            "exit_code": self.exit_code,
            "error": self.error,
        }


@dataclass(slots=True)
class Task:
    """A task: what was asked, where it is, and every attempt.

    Invariant: an attempt without `ended` is the last one, and then the task is leased.
    """

    spec: Spec
    order: int  # counts this keeper's submissions: first come, first served
    created: float  # Unix
    state: TaskState = TaskState.READY
    number: int = 1  # of the attempt that runs, or is offered next
    cause: AttemptCause = AttemptCause.FIRST  # of that attempt
    attempts: list[Attempt] = field(default_factory=list)
    ended: float | None = None  # Unix
    is_cancel_requested: bool = False
    asked: NodeId | None = None  # whom the attempt is offered to just now
    asked_boot: int = 0
    asked_name: str = ""
    asked_at: float = 0.0  # Unix, when it was asked first
    tries: int = 0  # how often it was asked so
    is_doubtful: bool = False  # one of those went unanswered: the attempt may have started there
    home: tuple[int, str | None] = (-1, None)  # the view's version, and who was home in it

    @property
    def task_id(self) -> str:
        """The task's id."""
        return self.spec.task_id

    @property
    def wants(self) -> Wants:
        """What it asks of a member."""
        spec = self.spec
        return Wants(
            key=spec.key or spec.task_id,
            pool=spec.pool,
            node_class=spec.node_class,
            labels=spec.labels,
            needs=spec.needs,
        )

    @property
    def is_terminal(self) -> bool:
        """Say whether its state is final."""
        return self.state in TERMINAL

    @property
    def running_attempt(self) -> Attempt | None:
        """The attempt that was accepted and has not ended, or None."""
        return self.attempts[-1] if self.state is TaskState.LEASED else None

    def become(self, state: TaskState) -> None:
        """Change the state along TRANSITIONS.

        Raises:
            LocalProtocolError: there is no such way; the state is unchanged.
        """
        if state not in TRANSITIONS[self.state]:
            raise LocalProtocolError(
                f"task {self.task_id} cannot become {state}: it is {self.state}"
            )
        self.state = state

    def forget_offer(self) -> None:
        """Note that nobody is being asked."""
        self.asked, self.asked_boot, self.asked_name = None, 0, ""
        self.tries, self.is_doubtful = 0, False

    def check_invariants(self) -> None:
        """Raise AssertionError if two attempts live, or the state contradicts the attempts."""
        live = [attempt.number for attempt in self.attempts if attempt.ended is None]
        numbers = [attempt.number for attempt in self.attempts]
        assert live == ([numbers[-1]] if self.state is TaskState.LEASED else []), (self.state, live)
        assert numbers == sorted(set(numbers)), f"attempt numbers must rise: {numbers}"
        assert not numbers or numbers[-1] <= self.number, (numbers, self.number)
        assert (self.ended is not None) == self.is_terminal, self.state
        assert self.asked is None or self.state is TaskState.READY, self.state
        if self.state is TaskState.LEASED:
            assert numbers[-1] == self.number, (numbers, self.number)
