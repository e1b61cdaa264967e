"""Output that is held for tasks, and who follows it.

A log keeps the latest pieces of one task's current attempt. A **watcher** has a place in it. What a
living watcher has not taken is not pushed out by new output: the piece is refused for the moment, the
owner stops reading the command's pipe, and the command waits, as it would before a slow terminal. A
watcher that takes nothing at all for a while is dropped instead, and told so.

When an attempt follows another one, the log starts anew: watchers see the new attempt's output from
its start, and the task's JSON says how many attempts there were.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from mesh.work.config import WorkConfig

STDOUT: Final = 1
STDERR: Final = 2
TURNS_MAX: Final = 64  # logs looked at to make room for one piece
PIECE_BYTES: Final = 64  # what a piece costs beside its bytes: many tiny pieces are bounded too


@dataclass(slots=True)
class Watcher:
    """A client that follows a task: `place` is the number of the next piece it takes."""

    watcher_id: int
    task_id: str
    place: int
    error: str = ""


class OutputLog:
    """The latest output of one attempt. Pieces are numbered through all attempts of the task."""

    def __init__(self) -> None:
        self.pieces: deque[tuple[int, bytes]] = deque()  # (stream, data)
        self.first = 0  # the number of pieces[0]
        self.held_bytes = 0
        self.output_bytes = 0  # all that the attempt ever wrote
        self.dropped_bytes = 0  # of those, what went before any watcher took it
        self.taken = 0  # a watcher took everything that was held of the pieces before this number
        self.watchers: dict[int, Watcher] = {}

    @property
    def end(self) -> int:
        """The number that the next piece will get."""
        return self.first + len(self.pieces)

    def tail(self, stream: int, chars_max: int) -> str:
        """Return the end of one stream as text; what is no UTF-8 is replaced."""
        parts: list[bytes] = []
        size = 0
        for kind, data in reversed(self.pieces):
            if kind == stream:
                parts.append(data)
                size += len(data)
                if size >= chars_max * 4:
                    break
        joined = b"".join(reversed(parts))[-chars_max * 4 :]
        return joined.decode("utf-8", "replace")[-chars_max:]


@dataclass(slots=True)
class OutputStore:
    """The logs of all tasks, within a total.

    Invariant: `held_bytes` is the sum over all logs, and at most output_total_bytes_max.
    """

    config: WorkConfig
    held_bytes: int = 0
    dropped_bytes: int = 0  # that somebody might still have wanted, of all tasks there were
    logs: dict[str, OutputLog] = field(default_factory=dict)
    watchers: dict[int, Watcher] = field(default_factory=dict)
    _finished: OrderedDict[str, None] = field(default_factory=OrderedDict)
    _running: OrderedDict[str, None] = field(default_factory=OrderedDict)  # that hold output

    def log(self, task_id: str) -> OutputLog:
        """Return the task's log, an empty one if it has none."""
        return self.logs.get(task_id) or self.logs.setdefault(task_id, OutputLog())

    def start_attempt(self, task_id: str) -> None:
        """Forget what an earlier attempt wrote. O(pieces)."""
        log = self.logs.get(task_id)
        if log is not None:
            self._clear(log)
            log.output_bytes = log.dropped_bytes = 0
            for watcher in log.watchers.values():
                watcher.place = log.end

    def append(self, task_id: str, stream: int, data: bytes) -> list[int] | None:
        """Hold a piece, dropping older ones for it.

        Returns:
            The watchers that had taken everything before it, or None if it was refused because a
            watcher has not taken what it would push out.
        """
        log = self.log(task_id)
        config = self.config
        cost = len(data) + PIECE_BYTES
        if not self._shrink(log, config.output_bytes_max - cost):
            return None
        over = self.held_bytes + cost - config.output_total_bytes_max
        is_room = cost <= config.output_bytes_max and (over <= 0 or self._make_room(log, over))
        if not is_room and log.watchers and cost <= config.output_bytes_max:
            return None
        log.output_bytes += len(data)
        if not is_room:
            self._drop(log, data)
            return []
        waiting = [w.watcher_id for w in log.watchers.values() if w.place == log.end]
        log.pieces.append((stream, data))
        log.held_bytes += cost
        self.held_bytes += cost
        if task_id not in self._finished:
            self._running[task_id] = None
        return waiting

    def finish(self, task_id: str) -> None:
        """Note that the task has ended: its output may go when room is needed."""
        self._running.pop(task_id, None)
        if task_id in self.logs:
            self._finished[task_id] = None

    def forget(self, task_id: str) -> None:
        """Drop the task's log; its watchers keep what they can take no more."""
        log = self.logs.pop(task_id, None)
        self._finished.pop(task_id, None)
        self._running.pop(task_id, None)
        if log is not None:
            self._clear(log)
            for watcher_id in log.watchers:
                self.watchers.pop(watcher_id, None)

    def watch(self, watcher_id: int, task_id: str) -> None:
        """Let a watcher follow the task from the first piece that is still held."""
        log = self.log(task_id)
        self.unwatch(watcher_id)
        watcher = Watcher(watcher_id, task_id, log.first)
        log.watchers[watcher_id] = self.watchers[watcher_id] = watcher

    def unwatch(self, watcher_id: int) -> None:
        """Forget a watcher; nothing happens if there is none."""
        watcher = self.watchers.pop(watcher_id, None)
        if watcher is not None and watcher.task_id in self.logs:
            self.logs[watcher.task_id].watchers.pop(watcher_id, None)

    def drop_watcher(self, watcher_id: int, error: str) -> None:
        """Let a watcher hold nothing up any more; `error` says why, the next time it takes."""
        watcher = self.watchers[watcher_id]
        watcher.error = error
        if watcher.task_id in self.logs:
            self.logs[watcher.task_id].watchers.pop(watcher_id, None)

    def take(self, watcher: Watcher) -> list[tuple[int, bytes]]:
        """Return the pieces that the watcher has not taken, in order."""
        log = self.logs.get(watcher.task_id)
        if log is None or watcher.error:
            return []
        skipped = max(0, watcher.place - log.first)
        watcher.place = log.taken = log.end
        return list(log.pieces)[skipped:]

    def check_invariants(self) -> None:
        """Raise AssertionError if the counts contradict the logs. O(pieces)."""
        for log in self.logs.values():
            assert log.held_bytes == sum(len(data) + PIECE_BYTES for _, data in log.pieces)
            assert log.held_bytes <= self.config.output_bytes_max
            assert log.taken <= log.end
            assert 0 <= log.dropped_bytes <= log.output_bytes
            assert all(watcher.place <= log.end for watcher in log.watchers.values())
        assert self.held_bytes == sum(log.held_bytes for log in self.logs.values())
        assert self.held_bytes <= self.config.output_total_bytes_max

    def _shrink(self, log: OutputLog, bytes_max: int) -> bool:
        """Drop the log's oldest pieces down to `bytes_max`; False and nothing if a watcher needs one."""
        count, left = 0, log.held_bytes
        for _, data in log.pieces:
            if left <= max(0, bytes_max):
                break
            left -= len(data) + PIECE_BYTES
            count += 1
        if any(watcher.place < log.first + count for watcher in log.watchers.values()):
            return False
        for number in range(log.first, log.first + count):
            _, data = log.pieces.popleft()
            if number >= log.taken:
                self._drop(log, data)
        log.first += count
        self.held_bytes -= log.held_bytes - left
        log.held_bytes = left
        return True

    def _make_room(self, log: OutputLog, bytes_needed: int) -> bool:
        """Drop finished tasks' output, oldest first, then the oldest of `log`, then that of others in turn."""
        target = self.held_bytes - bytes_needed
        for _ in range(len(self._finished)):
            if self.held_bytes <= target:
                return True
            task_id, _ = self._finished.popitem(last=False)
            if not self._shrink(self.logs[task_id], 0):
                self._finished[task_id] = None
        if not self._shrink(log, log.held_bytes - (self.held_bytes - target)):
            return False
        for task_id in list(islice(self._running, TURNS_MAX)):
            if self.held_bytes <= target:
                break
            self._running.move_to_end(task_id)
            other = self.logs[task_id]
            self._shrink(other, other.held_bytes - (self.held_bytes - target))
        return self.held_bytes <= target

    def _drop(self, log: OutputLog, data: bytes) -> None:
        log.dropped_bytes += len(data)
        self.dropped_bytes += len(data)

    def _clear(self, log: OutputLog) -> None:
        self.held_bytes -= log.held_bytes
        log.first = log.end
        log.pieces.clear()
        log.held_bytes = 0
