"""Numbered pieces that come in any order, and who takes them in the right one: each once, each at its own place.

        taken by all        here            missing   here, early
    ···················│▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓│░░░░░░░░░│▓▓▓│░░░░░░░░░░░│
                    base: the hindmost    want                 base + size

The window begins where the hindmost is: a window's worth is held for each that takes, at most. Pieces below `floor`
that are not here come no more, and are passed over.

Source: our own.
"""

from __future__ import annotations

from typing import Final

SIZE_MAX: Final = 16
"""Pieces that may be on their way, or not taken: a megabyte for each that takes, at most."""


class Window:
    """The pieces of one attempt's output at a node that follows."""

    def __init__(self) -> None:
        self.places: dict[int, int] = {}
        """The next piece that each watcher takes."""

        self._pieces: dict[int, tuple[int, bytes]] = {}
        self._floor = 0

    @property
    def base(self) -> int:
        """The next piece of the hindmost watcher."""
        return self._at(min(self.places.values(), default=0))

    @property
    def want(self) -> int:
        """The first piece that is missing."""
        return self._gap(self.base)

    @property
    def last(self) -> int:
        """The last piece that is here; -1: there is none."""
        return max(self._pieces, default=-1)

    def put(self, seq: int, piece: tuple[int, bytes], first_seq: int, size: int) -> bool:
        """Hold a piece; say whether it was one more, and not too far. `first_seq`: none below it comes any more."""
        self._floor = max(self._floor, first_seq)
        if seq in self._pieces or not self.want <= seq < self.base + size:
            return False
        self._pieces[seq] = piece
        return True

    def has_any(self, watcher_id: int, *, pass_over: bool = False) -> bool:
        """Say whether a watcher can take something; `pass_over`: what is missing is not waited for."""
        return self._next(self.places[watcher_id], pass_over=pass_over) in self._pieces

    def has_up_to(self, watcher_id: int, seq: int) -> bool:
        """Say whether nothing that a watcher has not taken is missing before this piece."""
        return self._gap(self.places[watcher_id]) >= seq

    def take(self, watcher_id: int, *, pass_over: bool = False) -> list[tuple[int, bytes]]:
        """Return what a watcher has not taken of what is here without a gap; `pass_over`: of all that is here."""
        found = []
        place = self._next(self.places[watcher_id], pass_over=pass_over)
        while place in self._pieces:
            found.append(self._pieces[place])
            place = self._next(place + 1, pass_over=pass_over)
        self.places[watcher_id] = place
        self._forget_taken()
        return found

    def leave(self, watcher_id: int) -> None:
        """Let a watcher take nothing more; what was here for it alone can be asked for again."""
        self.places.pop(watcher_id, None)
        self._forget_taken()
        starts = [self._at(place) for place in self.places.values()]
        for seq in list(self._pieces):
            if not any(start <= seq < start + SIZE_MAX for start in starts):
                del self._pieces[seq]

    def check_invariants(self) -> None:
        """Raise AssertionError if more is held than a window for each watcher."""
        assert len(self._pieces) <= SIZE_MAX * max(1, len(self.places))

    # Inside.

    def _at(self, place: int) -> int:
        """Return the next piece from a place on that is here, or may come yet."""
        if place in self._pieces or place >= self._floor:
            return place
        return min((seq for seq in self._pieces if place < seq < self._floor), default=self._floor)

    def _next(self, place: int, *, pass_over: bool) -> int:
        place = self._at(place)
        if not pass_over:
            return place
        return min((seq for seq in self._pieces if seq >= place), default=place)

    def _gap(self, place: int) -> int:
        place = self._at(place)
        while place in self._pieces:
            place = self._at(place + 1)
        return place

    def _forget_taken(self) -> None:
        place = min(self.places.values(), default=0)
        for seq in [seq for seq in self._pieces if seq < place]:
            del self._pieces[seq]
