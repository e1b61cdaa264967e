"""A follower's talk with the owner of one attempt: what has come, what is wanted next, and when that is said.

    Piece ──► in the window, and new? ──► held, and taken by watchers
                                              │ room
    Follow ◄── a moment later, or at once ◄───┘
           ◄── nothing came for a while: the same again, more and more seldom while it may have written nothing

How long it waits before it asks again follows from what it sees: a piece that comes twice was asked for too early.

Once the attempt is over its owner has an answer to every question, so silence means that one of the two was lost.
It is asked steadily then, and `times_in_vain` counts: the clock alone cannot tell an owner that is silent from one
that nobody asked.

Source: our own.
"""

from __future__ import annotations

from typing import Final

from mesh.core.ids import NodeId
from mesh.tasks.window import Window
from mesh.wire.task_messages import FOLLOW_SILENCE_S, Follow, Piece

WORD_S: Final = 0.05
"""So soon after a piece its owner hears that it has come, and a full window is looked at again."""

PATIENCE_S: Final = 0.25
PATIENCE_S_MAX: Final = 4.0
"""Before the same is asked again for the first time; then twice as long each time, up to `PAUSE_S_MAX`."""

PAUSE_S_MAX: Final = FOLLOW_SILENCE_S / 3

OVER_PAUSE_S_MAX: Final = 0.5
"""The same once the attempt is over, where `PATIENCE_S` was found long enough."""

UNKNOWN_TIMES: Final = 2
"""An owner that says so often in a row that it knows nothing of an attempt that is over is believed.

Its first such word may be the late answer to a question from before it had heard that it is the owner.
"""

QUIET_S_MAX: Final = 2.0
"""So seldom an owner is asked that knows nothing of an attempt, though a majority holds that it is its own."""

STREAMS: Final = (1, 2)

_NOTHING: Final = (0, 0)


class Feed:
    """The output of one attempt, for all watchers of this node that are at it."""

    def __init__(self, task_id: str, attempt: int, owner: NodeId) -> None:
        self.task_id = task_id
        self.attempt = attempt
        self.owner = owner
        self.window = Window()
        self.heard_at = float("-inf")
        """When something new has come last, or was not wanted for want of room, or the attempt was over."""

        self.times_in_vain = 0
        """How often it was asked, and nothing new came of it; since it was over, once that is so."""

        self.over_at: float | None = None
        """When it was first known that the attempt is over; None: it is not, or nobody asked since."""

        self.was_heard_since_over = False
        """Something new has come since: whatever is said of its owner, it was alive."""

        self.is_given_up = False
        """No more is expected: what is here is taken over what is missing."""

        self.give_up_at = float("inf")
        self.due = float("-inf")
        """When `speak` has something to say; `give_up_at` is its user's own."""

        self._next_seq: int | None = None
        self._said = _NOTHING  # from where, and up to where, was asked last
        self._said_at = float("-inf")
        self._quiet_until = float("-inf")
        self._times_turned_away = 0  # in a row
        self._times_unknown = 0  # in a row, since it is over
        self._patience_s = PATIENCE_S
        self._pause_s = PATIENCE_S
        self._repeated: int | None = None  # the piece that was asked for again
        self._repeated_until = 0.0  # if it comes later than this, that says nothing
        self._is_repeat_met = False

    @property
    def is_over(self) -> bool:
        """Say whether nothing more is expected."""
        return self.is_given_up or (
            self._next_seq is not None and self.window.want >= self._next_seq
        )

    @property
    def has_asked(self) -> bool:
        """Say whether its owner may take this node for a follower."""
        return self._said != _NOTHING

    def has_all(self, watcher_id: int) -> bool:
        """Say whether nothing more comes for a watcher, beside what it can take."""
        if self.is_given_up:
            return True
        return self._next_seq is not None and self.window.has_up_to(watcher_id, self._next_seq)

    def join(self, now: float, watcher_id: int) -> None:
        """Let a watcher take it from the first piece on: what is here no more is asked for again."""
        self.window.places[watcher_id] = 0
        self.is_given_up, self.over_at = False, None
        self.due = self._quiet_until = now
        self._said = _NOTHING
        self._wait_anew(now)

    def note_over(self, now: float) -> None:
        """Note that the attempt is over: its owner can say now how much there is, and is asked at once."""
        self.over_at = self.due = self._quiet_until = now
        self._said = _NOTHING
        self._wait_anew(now)

    # What its owner says.

    def add(self, now: float, piece: Piece, size: int) -> bool:
        """Take a piece; say whether that is one more. `size` is that of the window."""
        is_possible = piece.first_seq <= piece.seq and piece.stream in STREAMS and piece.data
        if not is_possible or (self._next_seq is not None and piece.seq >= self._next_seq):
            return False
        self._note_repeated(now, piece.seq)
        want = self.window.want
        if not self.window.put(piece.seq, (piece.stream, piece.data), piece.first_seq, size):
            return False
        self._hear(now)
        is_next = self.window.want > want
        self.due = min(self.due, now + (WORD_S if is_next else self._patience_s))
        return True

    def end_at(self, now: float, next_seq: int) -> None:
        """Take the word that there are no pieces from this one on."""
        if self._next_seq is None and next_seq > self.window.last:
            self._next_seq = next_seq
            self._hear(now)

    def note_unknown(self, now: float, pause_s: float) -> None:
        """Take its owner's word that it knows nothing of this attempt: no more of it, or nothing yet."""
        if self.over_at is not None and self._said_at >= self.over_at:
            self._times_unknown += 1
        self.is_given_up = self.is_given_up or self._times_unknown >= UNKNOWN_TIMES
        self.turned_away(now, pause_s)

    def turned_away(self, now: float, pause_s: float) -> None:
        """Ask anew after a pause, or a longer one where that is not the first time: its owner sends nothing now."""
        self.times_in_vain += 1
        pause_s = max(pause_s, min(pause_s * 2**self._times_turned_away, QUIET_S_MAX))
        self._times_turned_away = min(self._times_turned_away + 1, 16)
        self._said = _NOTHING
        self.due = self._quiet_until = now + pause_s

    # What it is told.

    def speak(self, now: float, size: int) -> Follow | None:
        """Return what to say now, if anything; `due` says when to look again. `size` is that of the window."""
        if self.is_over:
            self.due = float("inf")
            return self.stop() if self.has_asked else None
        if now < self._quiet_until:
            self.due = self._quiet_until
            return None
        want, until = self.window.want, self.window.base + size
        if self.has_asked and want == self._said[0] and now >= self.due:
            self.times_in_vain += 1
        if until <= want:  # full; and a word now and then that somebody is there
            self.heard_at, self.times_in_vain = now, 0  # it is not its owner that is silent
            if now < self._said_at + PAUSE_S_MAX:
                self.due = now + WORD_S
                return None
            until = want + 1
        elif (want, until) == self._said:
            if now < self.due:
                return None
            self._pause_s = min(2 * self._pause_s, self._pause_s_max)
            self._repeated, self._is_repeat_met = want, False
            self._repeated_until = now + PAUSE_S_MAX
        elif now < self.due and until - self._said[1] < max(1, size // 2):
            return None
        self._said, self._said_at = (want, until), now
        self.due = now + self._pause_s
        return Follow(self.task_id, self.attempt, want, until - want)

    def stop(self) -> Follow:
        """Return the word that nothing more is wanted."""
        self._said = _NOTHING
        return Follow(self.task_id, self.attempt, 0, 0)

    def check_invariants(self) -> None:
        """Raise AssertionError if more is held than watchers may lag, or than there is."""
        self.window.check_invariants()
        assert self._next_seq is None or self.window.last < self._next_seq

    # Inside.

    @property
    def _pause_s_max(self) -> float:
        return PAUSE_S_MAX if self.over_at is None else max(self._patience_s, OVER_PAUSE_S_MAX)

    def _hear(self, now: float) -> None:
        self.was_heard_since_over = self.was_heard_since_over or self.over_at is not None
        self._wait_anew(now)

    def _wait_anew(self, now: float) -> None:
        self.heard_at = now
        self.times_in_vain = self._times_unknown = self._times_turned_away = 0
        self._pause_s = self._patience_s

    def _note_repeated(self, now: float, seq: int) -> None:
        if seq != self._repeated or now > self._repeated_until:
            return
        if self._is_repeat_met:
            self._patience_s = min(2 * self._patience_s, PATIENCE_S_MAX)
            self._repeated = None
        self._is_repeat_met = True
