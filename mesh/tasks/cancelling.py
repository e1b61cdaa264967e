"""Cancelling: at the register if nobody runs the task, else by its owner, who alone may write it.

    read ─ has ended, or is to be cancelled already ─► answered as it is
        ├─ nobody has it ─► propose ─► answered
        └─ leased ─► ask the owner ─ stopping, or over ─► read again, and answer
                          └─ knows nothing, or is silent ─► propose ─ the lease lives ─► ask the owner again …

A dead owner's lease lapses, and then the proposal passes. Until then the task cannot be cancelled by anybody: the
answer after `timeout_s` says so, and for how long.
"""

from __future__ import annotations

from typing import Final

from mesh.core.ids import NodeId
from mesh.registers.asker import Late, Outcome
from mesh.registers.proposal import Reason, Refused
from mesh.tasks.body import Body
from mesh.tasks.changes import Cancel
from mesh.tasks.commands import CancelTask
from mesh.tasks.means import Means, Step
from mesh.tasks.talk import Reply, TaskTalk
from mesh.wire.register_messages import Owner
from mesh.wire.task_messages import CancelAnswer, CancelRun, CancelVerdict

ASK_AGAIN_S: Final = 0.5
"""An owner that has not answered is asked again after this,"""

PATIENCE: Final = 3
"""and after so many times the voters are, whether its lease still lives."""

_READ: Final = 0
_PROPOSE: Final = 1


class Cancelling(TaskTalk):
    """`CancelTask`."""

    def __init__(self, number: int, means: Means, command: CancelTask) -> None:
        super().__init__(number, command.command_id, means, command.timeout_s, command.task_id)
        self._deadline = 0.0
        self._owner: Owner | None = None  # who is being asked
        self._attempt = 0
        self._asked = 0  # how often
        self._ended = 0  # the attempt whose verdict is on its way, says its owner
        self._remaining_s = 0.0  # of the owner's lease, as the voters said last
        self._denied: tuple[Owner, int] | None = None
        """A session, and the attempt that it said it does not run: of a later one it has said nothing."""

    def begin(self, now: float) -> list[Step]:
        """Read what a majority holds."""
        self._deadline = now + self._timeout_s
        return super().begin(now)

    def on_outcome(self, now: float, part: int, outcome: Outcome) -> list[Step]:
        """Go on from what was read, or from what came of the proposal."""
        if isinstance(outcome, Late):
            return self._late()
        if isinstance(outcome, Refused):
            return self._on_refused(now, outcome)
        value = outcome.value
        body = self._body(value)
        if isinstance(body, str) or value is None:
            return self.end(error=str(body))
        if body.state.is_terminal or body.is_cancel_requested or part == _PROPOSE:
            strategy = self._means.strategy(now, body.spec.queue)
            return self.end(self._means.json(self._key, value, strategy=strategy))
        return self._go_on(now, body)

    def on_reply(self, now: float, sender: NodeId, reply: Reply) -> list[Step]:
        """Take the owner's answer."""
        owner = self._owner
        if not isinstance(reply, CancelAnswer) or owner is None or sender != owner.node_id:
            return []
        if reply.attempt != self._attempt:
            return []
        self._owner, self.due = None, None
        if reply.verdict is CancelVerdict.UNKNOWN:
            # It lost the task, or has not heard of its grant yet: the voters know whether its lease lives.
            self._denied = owner, reply.attempt
            return self._propose(now)
        if reply.verdict is CancelVerdict.OVER:
            self._ended = reply.attempt
        return self._read(now)

    def on_timeout(self, now: float) -> list[Step]:
        """Ask the owner again, or the voters, or give up."""
        self.due = None
        if now >= self._deadline:
            return self._give_up()
        if self._owner is None:
            return self._read(now)
        return self._ask_owner(now, self._owner) if self._asked < PATIENCE else self._propose(now)

    # Inside.

    def _go_on(self, now: float, body: Body) -> list[Step]:
        running = body.running
        if running is None or (running.owner, running.number) == self._denied:
            return self._propose(now)
        if running.number == self._ended:
            return self._pause(now)
        self._attempt, self._asked = running.number, 0
        return self._ask_owner(now, running.owner)

    def _ask_owner(self, now: float, owner: Owner) -> list[Step]:
        self._owner = owner
        self._asked += 1
        self.due = min(self._deadline, now + ASK_AGAIN_S)
        return [(owner.node_id, CancelRun(self._task_id, self._attempt))]

    def _read(self, now: float) -> list[Step]:
        self._owner = None
        left_s = max(0.0, self._deadline - now)
        self._means.registers.read(now, self._key, self.tag(_READ), left_s)
        return []

    def _propose(self, now: float) -> list[Step]:
        means = self._means
        if means.registers.standing(now, self._key) is not None:
            # This node's own lease lives: no ballot is asked for in its way. If nothing runs under it, it is
            # about to end, and is waited for.
            if self._denied == (means.own, self._attempt):
                return self._pause(now)
            return self._ask_owner(now, means.own)
        self._owner, self.due = None, None
        change = Cancel(means.unix(now))
        left_s = max(0.0, self._deadline - now)
        means.registers.propose(now, self._key, change, self.tag(_PROPOSE), left_s)
        return []

    def _on_refused(self, now: float, refused: Refused) -> list[Step]:
        """A lease lives, or nothing was to be written: look again in a moment."""
        self._remaining_s = refused.remaining_s if refused.reason is Reason.LEASED else 0.0
        self._denied = None  # whoever knew nothing of it may know by now
        if refused.reason is Reason.UNCHANGED and refused.found is None:
            return self.end(error=str(self._body(None)))
        return self._give_up() if now >= self._deadline else self._pause(now)

    def _pause(self, now: float) -> list[Step]:
        self.due = min(self._deadline, now + ASK_AGAIN_S)
        return []

    def _give_up(self) -> list[Step]:
        text = f"task {self._task_id} was not cancelled within {self._timeout_s:g} s"
        if self._remaining_s:
            return self.end(
                error=f"{text}: its owner did not answer, and its lease may live for {self._remaining_s:.1f} s "
                "more; try again after that"
            )
        return self.end(error=f"{text}: its owner did not answer; try again in a moment")
