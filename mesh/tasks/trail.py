"""One task that is followed at this node: what a majority holds of it, which attempt each watcher is at, what comes of that.

    no attempt yet ─► the last one ─► the next one … ─► the task has ended, and so has its last attempt's output
                          │ everything came, or its owner is gone, or knows nothing of it
                          └─ nothing came at all: the tails that the result holds

Watchers share what is read and what comes. An owner that is not seen alive is waited for a moment once its attempt
is over, one that is silent for a while, and either is asked again and again meanwhile: that an answer is lost, or
that this node stood still itself, is not its owner's silence. What came by then is what there is.

Source: our own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from mesh.core.ids import NodeId
from mesh.tasks.body import Attempt, Body
from mesh.tasks.feed import WORD_S, Feed
from mesh.tasks.means import Step
from mesh.wire.task_messages import FollowEnd, FollowReason, Notice, Piece, TaskState

GONE_S: Final = 1.0
GONE_TIMES: Final = 3
"""So long the owner of an attempt that is over is waited for where nobody sees it alive, and so often asked in vain."""

SILENT_S: Final = 10.0
SILENT_TIMES: Final = 20
"""The same where it seems alive, or has said something since.

Where three messages of ten are lost each way, that many questions in vain are one case in half a million.
"""

UNKNOWN_PAUSE_S: Final = 0.1
"""An owner that knows nothing of an attempt may not have heard yet that it was granted."""

CROWDED_PAUSE_S: Final = 2.0

NOTICED_MAX: Final = 8

NEVER: Final = float("inf")


@dataclass(slots=True)
class Watcher:
    """A client that follows."""

    watcher_id: int
    task_id: str
    command_id: int | None
    """What is to be answered once the task is known; None: it was."""

    attempt: int = 0
    """The attempt that it is at; 0: none yet."""

    has_output: bool = False
    """Something of this attempt was taken."""

    rest: list[tuple[int, bytes]] = field(default_factory=list)
    """What is left to take once the task has ended."""

    task: dict[str, Any] | None = None
    """The task's JSON once it has ended and nothing more than `rest` comes."""

    error: str = ""
    """Why it was dropped."""

    has_ended: bool = False
    """It took the JSON."""


class Trail:
    """One task, its watchers and its feeds."""

    def __init__(self, number: int, task_id: str, key: bytes) -> None:
        self.number = number
        self.task_id = task_id
        self.key = key
        self.watchers: dict[int, Watcher] = {}
        self.feeds: dict[int, Feed] = {}
        self.body: Body | None = None
        """What a majority was seen to hold last."""

        self.json: dict[str, Any] = {}
        """The same as programs see it."""

        # Of reading it.
        self.is_reading = False
        self.noticed: list[tuple[TaskState, int]] = []
        """State and attempt, as voters have said since this reading began."""

        self.read_due = NEVER
        self.pause_s = 0.0
        self.watched_until = 0.0

        self._took_due = NEVER
        """When to see whether a watcher has taken what it had to before it goes on."""

    @property
    def due(self) -> float | None:
        """When there is something to do, or None."""
        dues = [self._took_due, self.read_due]
        dues += [min(feed.due, feed.give_up_at) for feed in self.feeds.values()]
        due = min(dues)
        return None if due == NEVER else due

    @property
    def is_terminal(self) -> bool:
        """Say whether the task was seen to have ended."""
        return self.body is not None and self.body.state.is_terminal

    def note(self, notice: Notice) -> None:
        """Remember what a voter says while it is being read."""
        if len(self.noticed) < NOTICED_MAX:
            self.noticed.append((notice.state, notice.attempt))

    def differs(self, state: TaskState, attempt: int) -> bool:
        """Say whether this is something else than was read last."""
        return self.body is None or (self.body.state, self.body.attempt) != (state, attempt)

    def has_any(self, watcher: Watcher) -> bool:
        """Say whether there is something for a watcher to take."""
        if watcher.task is not None:
            return not watcher.has_ended
        feed = self.feeds.get(watcher.attempt)
        return feed is not None and _has_any(feed, watcher)

    def take(self, watcher: Watcher) -> list[tuple[int, bytes]]:
        """Return what a watcher has not taken."""
        if watcher.task is not None:
            pieces, watcher.rest = watcher.rest, []
            watcher.has_ended = True
            return pieces
        feed = self.feeds.get(watcher.attempt)
        pieces = (
            [] if feed is None else feed.window.take(watcher.watcher_id, pass_over=feed.is_given_up)
        )
        watcher.has_output = watcher.has_output or bool(pieces)
        return pieces

    def add(self, now: float, sender: NodeId, piece: Piece, size: int) -> bool:
        """Take a piece if it is its owner's and one more."""
        feed = self.feeds.get(piece.attempt)
        return feed is not None and feed.owner == sender and feed.add(now, piece, size)

    def end(self, now: float, sender: NodeId, message: FollowEnd) -> bool:
        """Take an owner's word that no more comes, or not now; say whether it was that."""
        feed = self.feeds.get(message.attempt)
        if feed is None or feed.owner != sender:
            return False
        if message.reason is not FollowReason.ENDED and not feed.has_asked:
            return False  # the same again: the question that it answers was answered
        match message.reason:
            case FollowReason.ENDED:
                feed.end_at(now, message.next_seq)
            case FollowReason.UNKNOWN:
                feed.note_unknown(now, UNKNOWN_PAUSE_S)
            case FollowReason.CROWDED:
                feed.turned_away(now, CROWDED_PAUSE_S)
            case FollowReason.SLOW:
                feed.turned_away(now, 0.0)
        return True

    def leave(self, watcher: Watcher) -> list[Step]:
        """Let a watcher follow no more; return what its owner is told."""
        feed = self.feeds.get(watcher.attempt)
        if feed is None:
            return []
        feed.window.leave(watcher.watcher_id)
        if feed.window.places:
            return []
        del self.feeds[watcher.attempt]
        return [(feed.owner, feed.stop())] if feed.has_asked else []

    def advance(self, now: float, size: int, lost: frozenset[NodeId]) -> list[Step]:
        """Let watchers go on as far as they can, and say what is to be said to owners; `lost`: those not seen alive."""
        for feed in self.feeds.values():
            self._judge(now, feed, feed.owner in lost)
        steps: list[Step] = []
        self._took_due = NEVER
        for watcher in self.watchers.values():
            if self.body is not None and watcher.task is None and not watcher.error:
                steps += self._go_on(now, self.body, watcher)
        for feed in self.feeds.values():
            self._judge(now, feed, feed.owner in lost)
            message = feed.speak(now, size)
            if message is not None:
                steps.append((feed.owner, message))
        return steps

    # Inside.

    def _judge(self, now: float, feed: Feed, is_lost: bool) -> None:
        if feed.is_over or self.body is None or not _is_over(self.body, feed.attempt):
            feed.give_up_at = NEVER
            return
        if feed.over_at is None:
            feed.note_over(now)
        is_gone = is_lost and not feed.was_heard_since_over
        patience_s, times = (GONE_S, GONE_TIMES) if is_gone else (SILENT_S, SILENT_TIMES)
        if feed.times_in_vain < times:
            feed.give_up_at = NEVER  # it is asked before anything else, and `due` says when
            return
        feed.give_up_at = feed.heard_at + patience_s
        if now >= feed.give_up_at:
            feed.is_given_up, feed.give_up_at = True, NEVER

    def _go_on(self, now: float, body: Body, watcher: Watcher) -> list[Step]:
        steps: list[Step] = []
        while True:
            feed = self.feeds.get(watcher.attempt)
            if feed is not None and not feed.has_all(watcher.watcher_id):
                return steps
            following = _next(body, watcher.attempt)
            if following is None and not body.state.is_terminal:
                return steps
            if following is None:
                return steps + self._finish(body, watcher)
            if feed is not None and _has_any(feed, watcher):
                self._took_due = now + WORD_S  # one attempt after the other
                return steps
            steps += self.leave(watcher)
            watcher.attempt, watcher.has_output = following.number, False
            self._join(now, watcher, following)

    def _join(self, now: float, watcher: Watcher, attempt: Attempt) -> None:
        feed = self.feeds.get(attempt.number)
        if feed is None:
            feed = self.feeds[attempt.number] = Feed(self.task_id, attempt.number, attempt.node_id)
        feed.join(now, watcher.watcher_id)

    def _finish(self, body: Body, watcher: Watcher) -> list[Step]:
        watcher.rest = self.take(watcher)
        if not watcher.has_output and body.result is not None:
            tails = (body.result.stdout_tail, body.result.stderr_tail)
            watcher.rest = [(place + 1, tail) for place, tail in enumerate(tails) if tail]
        watcher.task = self.json
        return self.leave(watcher)


def _has_any(feed: Feed, watcher: Watcher) -> bool:
    return feed.window.has_any(watcher.watcher_id, pass_over=feed.is_given_up)


def _next(body: Body, attempt: int) -> Attempt | None:
    """Return the attempt that a watcher goes on with: the last one if it is at none, else the next."""
    if not attempt:
        return body.attempts[-1] if body.attempts else None
    return next((one for one in body.attempts if one.number > attempt), None)


def _is_over(body: Body, attempt: int) -> bool:
    return body.state is not TaskState.LEASED or body.attempt != attempt
