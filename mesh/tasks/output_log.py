"""What one attempt has written: its latest pieces by number, and how far each follower has come.

      dropped     sent to somebody      not sent yet
    ·············│▓▓▓▓▓▓▓▓│▓▓▓▓▓▓▓▓│▓▓▓▓▓▓▓▓│░░░░░░░│ ◄── written, pending: it would push out what is needed
               first    arrived   sealed           end

A piece that was sent is never changed. One that was not takes up what is written next to the same stream: the
farther its followers are behind, the longer its pieces, and the fewer.

Source: our own.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from mesh.core.ids import NodeId
from mesh.wire.task_messages import Follow, Piece
from mesh.wire.work_messages import OUTPUT_CHUNK_BYTES_MAX

PIECE_BYTES: Final = 64
"""What a piece costs beside its bytes: many tiny ones are bounded too."""


@dataclass(slots=True)
class Follower:
    """A node that follows. All before `arrived` has come to it; `sent` is the next piece to send."""

    arrived: int
    sent: int
    pieces_max: int = 0

    def hear(self, message: Follow) -> bool:
        """Take what has arrived there, and say whether that is more than before; if not, some was lost on the way."""
        is_progress = message.from_seq > self.arrived
        self.sent = max(self.sent, message.from_seq) if is_progress else message.from_seq
        self.arrived, self.pieces_max = message.from_seq, message.pieces_max
        return is_progress


@dataclass(slots=True)
class _Held:
    stream: int
    data: bytearray

    @property
    def cost(self) -> int:
        return len(self.data) + PIECE_BYTES


class OutputLog:
    """The latest output of one attempt. Invariant: what is needed (`needed`) is not dropped."""

    def __init__(self, task_id: str, attempt: int, run_id: int) -> None:
        self.task_id = task_id
        self.attempt = attempt
        self.run_id = run_id
        self.first = 0
        """The number of the first piece that is held."""

        self.held_bytes = 0
        self.followers: dict[NodeId, Follower] = {}
        self.slow: set[NodeId] = set()
        """Who held this attempt up for too long once, and does so no more."""

        self.pending: deque[tuple[int, bytes]] = deque()
        """Written, but with no number yet: there was no room. At most one of each stream."""

        self.dropped_bytes = 0
        """Dropped with nobody having received it."""

        self.grace_until: float | None = None
        """Until when it waits for a first follower; None: it has written nothing yet."""

        self.was_followed = False
        self.is_closing = False
        self._pieces: deque[_Held] = deque()
        self._sealed = 0  # all before this one was sent to somebody
        self._received = 0  # all before this one has arrived somewhere

    @property
    def key(self) -> tuple[str, int]:
        """The task and the number of the attempt."""
        return self.task_id, self.attempt

    @property
    def end(self) -> int:
        """One more than the number of the last piece."""
        return self.first + len(self._pieces)

    @property
    def is_ended(self) -> bool:
        """Say whether no piece comes any more."""
        return self.is_closing and not self.pending

    @property
    def needed(self) -> int:
        """The first piece that a follower has not got and that is held for it; `end` if there is none."""
        arrived = [one.arrived for node_id, one in self.followers.items() if self.holds(node_id)]
        return min(arrived, default=self.end)

    def holds(self, node_id: NodeId) -> bool:
        """Say whether what this follower lacks is held for it."""
        return node_id not in self.slow

    def add(self, stream: int, data: bytes) -> None:
        """Hold what was written as a piece, or in the last one."""
        last = self._pieces[-1] if self.end > max(self._sealed, self.first) else None
        is_one = last is not None and last.stream == stream
        if last is None or not is_one or len(last.data) + len(data) > OUTPUT_CHUNK_BYTES_MAX:
            last = _Held(stream, bytearray())
            self._pieces.append(last)
            self.held_bytes += PIECE_BYTES
        last.data += data
        self.held_bytes += len(data)

    def skip(self, data: bytes) -> None:
        """Let a piece that is not held have had its number. Nothing is held."""
        assert not self._pieces
        self.first += 1
        self.dropped_bytes += len(data)

    def shrink(self, bytes_max: int) -> bool:
        """Drop the oldest pieces down to `bytes_max`; False, and nothing is dropped, where a follower needs one of them."""
        count, left = 0, self.held_bytes
        for held in self._pieces:
            if left <= max(0, bytes_max):
                break
            left -= held.cost
            count += 1
        if count and self.needed < self.first + count:
            return False
        for number in range(self.first, self.first + count):
            held = self._pieces.popleft()
            self.dropped_bytes += len(held.data) if number >= self._received else 0
        self.first += count
        self.held_bytes = left
        return True

    def hear(self, follower: Follower, message: Follow) -> bool:
        """Take what has arrived at a follower; say whether that is more than before."""
        self.was_followed = True
        self._received = max(self._received, message.from_seq)
        return follower.hear(message)

    def to_send(self, follower: Follower) -> list[Piece]:
        """Return the pieces that a follower may get now, as sent."""
        base = max(follower.arrived, self.first)
        until = min(base + follower.pieces_max, self.end)
        start = max(follower.sent, self.first)
        pieces = []
        for number in range(start, until):
            held = self._pieces[number - self.first]
            pieces.append(
                Piece(self.task_id, self.attempt, self.first, number, held.stream, bytes(held.data))
            )
        follower.sent = max(start, until)
        self._sealed = max(self._sealed, until)
        return pieces

    def check_invariants(self, bytes_max: int) -> None:
        """Raise AssertionError if counts are wrong, or more is held than may be."""
        assert self.held_bytes == sum(held.cost for held in self._pieces) <= bytes_max
        assert all(0 < len(held.data) <= OUTPUT_CHUNK_BYTES_MAX for held in self._pieces)
        assert self._sealed <= self.end
        assert self._received <= self.end
        assert all(one.arrived <= self.end for one in self.followers.values())
        assert len(self.pending) <= 2
