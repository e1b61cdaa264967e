"""One attempt's output as it comes to a node that follows: each piece once and in order, however it travels.

    Piece ──► in the window, and new? ──► held ──► taken by each watcher at its own place
                 ▲                          │ room
                 └────────── Follow ◄───────┴─ nothing came for a while: the same again

The window begins where the hindmost watcher is: all that is held at once is a window for each watcher, at most.
What its owner holds no more (`floor`) is passed over. How long it waits before it asks again follows from what it
sees: a piece that comes twice was asked for too early.

Source: our own.
"""

from __future__ import annotations

from typing import Final

from mesh.core.ids import NodeId
from mesh.wire.task_messages import FOLLOW_SILENCE_S, Follow, Piece

WORD_S: Final = 0.05
"""So soon after a piece its owner hears that it has come, and a full window is looked at again."""

PATIENCE_S: Final = 0.25
PATIENCE_S_MAX: Final = 4.0
"""Before the same is asked again for the first time; then twice as long each time, up to `PAUSE_S_MAX`."""

PAUSE_S_MAX: Final = FOLLOW_SILENCE_S / 3

QUIET_S_MAX: Final = 2.0
"""So seldom an owner is asked that knows nothing of an attempt, though a majority holds that it is its own."""

WINDOW_MAX: Final = 16
"""Pieces that may be on their way, or not taken: a megabyte for each watcher, at most."""

STREAMS: Final = (1, 2)


class Feed:
    """The output of one attempt, for all watchers of this node that are at it."""

    def __init__(self, task_id: str, attempt: int, owner: NodeId) -> None:
        self.task_id = task_id
        self.attempt = attempt
        self.owner = owner
        self.places: dict[int, int] = {}
        """The next piece that each watcher takes."""

        self.heard_at = float("-inf")
        """When something new has come last."""

        self.over_at: float | None = None
        """When it was first known that the attempt is over; None: it is not, or nobody asked since."""

        self.is_given_up = False
        self.give_up_at = float("inf")
        self.due = float("-inf")
        self._pieces: dict[int, tuple[int, bytes]] = {}
        self._floor = 0
        self._next_seq: int | None = None
        self._said = (0, 0)  # from where, and up to where, was asked last; up to 0: nothing is
        self._said_at = float("-inf")
        self._quiet_until = float("-inf")
        self._times_turned_away = 0  # in a row
        self._patience_s = PATIENCE_S
        self._pause_s = PATIENCE_S
        self._repeated: int | None = None  # the piece that was asked for again
        self._is_repeat_met = False

    # Watchers.

    def join(self, now: float, watcher_id: int) -> None:
        """Let a watcher take it from the first piece on: what is here no more is asked for again."""
        self.places[watcher_id] = 0
        self.is_given_up, self.over_at = False, None
        self.heard_at = self.due = self._quiet_until = now
        self._said, self._pause_s = (0, 0), self._patience_s

    def leave(self, watcher_id: int) -> None:
        """Let a watcher take nothing more."""
        self.places.pop(watcher_id, None)
        self._forget_taken()
        starts = [self._at(place) for place in self.places.values()]
        for seq in list(self._pieces):
            if not any(start <= seq < start + WINDOW_MAX for start in starts):
                del self._pieces[seq]  # it was for this one, and can be asked for again

    def has_any(self, watcher_id: int) -> bool:
        """Say whether a watcher can take something."""
        return self._at(self.places[watcher_id]) in self._pieces

    def has_all(self, watcher_id: int) -> bool:
        """Say whether nothing more comes for a watcher, beside what it can take."""
        return self._ends_at(self._gap(self.places[watcher_id]))

    def take(self, watcher_id: int) -> list[tuple[int, bytes]]:
        """Return what a watcher has not taken of what has come without a gap."""
        found = []
        place = self._at(self.places[watcher_id])
        while place in self._pieces:
            found.append(self._pieces[place])
            place = self._at(place + 1)
        self.places[watcher_id] = place
        self._forget_taken()
        return found

    # Its owner.

    @property
    def is_over(self) -> bool:
        """Say whether nothing more is expected."""
        return self._ends_at(self._want())

    @property
    def has_asked(self) -> bool:
        """Say whether its owner may take this node for a follower."""
        return self._said != (0, 0)

    @property
    def was_asked_since_over(self) -> bool:
        """Say whether its owner was asked since the attempt is known to be over."""
        return self.over_at is not None and self._said_at >= self.over_at

    def add(self, now: float, piece: Piece, window: int) -> bool:
        """Take a piece from its owner; say whether that is one more."""
        is_possible = piece.first_seq <= piece.seq and piece.stream in STREAMS and piece.data
        if not is_possible or (self._next_seq is not None and piece.seq >= self._next_seq):
            return False
        self._note_repeated(piece.seq)
        self._floor = max(self._floor, piece.first_seq)
        want = self._want()
        if piece.seq in self._pieces or not want <= piece.seq < self._base() + window:
            return False
        self._pieces[piece.seq] = (piece.stream, piece.data)
        self.heard_at = now
        self._times_turned_away = 0
        self._pause_s = self._patience_s
        self.due = min(self.due, now + (WORD_S if piece.seq == want else self._patience_s))
        return True

    def end_at(self, now: float, next_seq: int) -> None:
        """Take its owner's word that there are no pieces from this one on."""
        if self._next_seq is None and next_seq > max(self._pieces, default=-1):
            self._next_seq = next_seq
            self.heard_at = now

    def turned_away(self, now: float, pause_s: float) -> None:
        """Ask anew after a pause, or a longer one where that is not the first time: its owner sends nothing now."""
        pause_s = max(pause_s, min(pause_s * 2**self._times_turned_away, QUIET_S_MAX))
        self._times_turned_away = min(self._times_turned_away + 1, 16)
        self._said = (0, 0)
        self.due = self._quiet_until = now + pause_s

    def stop(self) -> Follow:
        """Return the word that nothing more is wanted."""
        self._said = (0, 0)
        return Follow(self.task_id, self.attempt, 0, 0)

    def speak(self, now: float, window: int) -> Follow | None:
        """Return what to say to its owner now, if anything; `due` says when to look again."""
        if self.is_over:
            self.due = float("inf")
            return self.stop() if self.has_asked else None
        if now < self._quiet_until:
            self.due = self._quiet_until
            return None
        want, until = self._want(), self._base() + window
        if until <= want:  # full; and a word now and then that somebody is there
            self.heard_at = now  # it is not its owner that is silent
            if now < self._said_at + PAUSE_S_MAX:
                self.due = now + WORD_S
                return None
            until = want + 1
        elif (want, until) == self._said:
            if now < self.due:
                return None
            self._pause_s = min(2 * self._pause_s, PAUSE_S_MAX)
            self._repeated, self._is_repeat_met = want, False
        elif now < self.due and until - self._said[1] < max(1, window // 2):
            return None
        self._said, self._said_at = (want, until), now
        self.due = now + self._pause_s
        return Follow(self.task_id, self.attempt, want, until - want)

    def check_invariants(self) -> None:
        """Raise AssertionError if more is held than watchers may lag."""
        assert len(self._pieces) <= WINDOW_MAX * max(1, len(self.places))
        assert self._next_seq is None or all(seq < self._next_seq for seq in self._pieces)

    # Inside.

    def _at(self, place: int) -> int:
        """Return the next piece from a place on that is here, or may come yet."""
        if place in self._pieces or place >= self._floor:
            return place
        return min((seq for seq in self._pieces if place < seq < self._floor), default=self._floor)

    def _base(self) -> int:
        """Return where the window begins: at the next piece of the hindmost watcher."""
        return self._at(min(self.places.values(), default=0))

    def _want(self) -> int:
        """Return the first piece that is missing."""
        return self._gap(self._base())

    def _gap(self, place: int) -> int:
        """Return the first piece from a place on that is missing."""
        place = self._at(place)
        while place in self._pieces:
            place = self._at(place + 1)
        return place

    def _ends_at(self, place: int) -> bool:
        return self.is_given_up or (self._next_seq is not None and place >= self._next_seq)

    def _forget_taken(self) -> None:
        place = min(self.places.values(), default=0)
        for seq in [seq for seq in self._pieces if seq < place]:
            del self._pieces[seq]

    def _note_repeated(self, seq: int) -> None:
        if seq != self._repeated:
            return
        if self._is_repeat_met:
            self._patience_s = min(2 * self._patience_s, PATIENCE_S_MAX)
            self._repeated = None
        self._is_repeat_met = True
