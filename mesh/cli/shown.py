"""What of a task's output has been written already, so that another node's telling does not write it twice.

    written       one two thr|              the node was lost here
    told anew     one two three four        equal as far as it was written: only the rest is new
    told anew     one 2 three               the run began again, and differs: from there on all is written

The one who tells begins with what it still holds. If that is not what was written, the output is repeated, and
`is_repeating` says so: a line too many is better than one that is missing.
"""

from __future__ import annotations

from typing import Final

REMEMBERED_BYTES_MAX: Final = 8 * 1024 * 1024
"""So much of each stream is remembered; of one that wrote more, another telling is written whole."""


class Shown:
    """The bytes of each stream that were written."""

    def __init__(self) -> None:
        self.is_repeating = False
        """Whether something was, or may be, written twice."""

        self.total = 0
        """Bytes written, of all streams."""

        self._written: dict[int, bytearray] = {}
        self._forgotten: set[int] = set()
        self._places: dict[int, int] = {}  # how far a new telling was equal to what was written

    def begin_again(self) -> None:
        """Note that the output is told anew from here on."""
        self._places = {stream: 0 for stream, data in self._written.items() if data}
        self.is_repeating = bool(self._forgotten)

    def rest(self, stream: int, data: bytes) -> bytes:
        """Return what of the next piece of a stream is to be written, and count it as written."""
        data = self._unseen(stream, data)
        self.total += len(data)
        self._remember(stream, data)
        return data

    def _unseen(self, stream: int, data: bytes) -> bytes:
        place = self._places.pop(stream, None)
        if place is None:
            return data
        written = self._written[stream]
        known = bytes(written[place : place + len(data)])
        equal = len(known) if data.startswith(known) else _equal(known, data)
        place += equal
        if equal == len(data):
            if place < len(written):
                self._places[stream] = place
            return b""
        if place < len(written):  # another run's: its line is written from the beginning
            self.is_repeating = True
            begin = written.rfind(b"\n", 0, place) + 1
            data = bytes(written[begin:place]) + data[equal:]
            del written[begin:]
            return data
        return data[equal:]

    def _remember(self, stream: int, data: bytes) -> None:
        if stream in self._forgotten:
            return
        written = self._written.setdefault(stream, bytearray())
        written += data
        if len(written) > REMEMBERED_BYTES_MAX:
            self._forgotten.add(stream)
            written.clear()


def _equal(one: bytes, other: bytes) -> int:
    """Return how many bytes two pieces that differ begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
