"""What the attempts that ran here wrote, held for whoever follows: at an owner, within limits.

    ProcessOutput ──► held as a piece ──► Piece to followers that have room ──► ReadOutput: the command goes on
                  └─► no room without what a follower has not got: pending, and the command waits

A command waits for a follower that is behind, as it would before a slow terminal, and for none longer than
`FOLLOW_SILENCE_S`: who is silent for so long is forgotten, and who gets on with nothing for so long is told so, and
holds this attempt up no more. Without a follower the oldest pieces go, and nothing waits, except at the very
beginning: whoever submitted it to see its output needs a moment to ask for it.

An attempt's output is held for a while after its end, so that who asks late gets it all. Where room is short, that
of the attempt that ended first goes first.

Source: our own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from typing import Final, TypeAlias

from mesh.core.effects import ReadOutput
from mesh.core.ids import NodeId
from mesh.core.process import ProcessOutput
from mesh.core.timers import Timers
from mesh.tasks.config import TasksConfig
from mesh.tasks.effects import Step
from mesh.tasks.output_log import PIECE_BYTES, Follower, OutputLog
from mesh.wire.task_messages import FOLLOW_SILENCE_S, Follow, FollowEnd, FollowReason
from mesh.wire.work_messages import OUTPUT_CHUNK_BYTES_MAX

TURNS_MAX: Final = 64
"""Logs of others looked at to make room for one piece."""

ENDING_BYTES_MAX: Final = 2 * (OUTPUT_CHUNK_BYTES_MAX + PIECE_BYTES)
"""Held for an attempt beyond its limit once it is over: what was pending, at most one piece of each stream."""

Key: TypeAlias = tuple[str, int]
Place: TypeAlias = tuple[Key, NodeId]


class HeldOutput:
    """The output of all attempts of this session. Invariant: `held_bytes` is the sum over all, and within its limit."""

    MESSAGES: Final = frozenset({Follow})

    def __init__(self, is_member: Callable[[NodeId], bool], config: TasksConfig) -> None:
        """Begin with nothing; `is_member` says who may follow."""
        self._is_member = is_member
        self._config = config
        self._logs: dict[Key, OutputLog] = {}
        self._by_run: dict[int, OutputLog] = {}  # that are open
        self._ended: OrderedDict[Key, float] = OrderedDict()  # when, the first one first
        self._turns: OrderedDict[Key, None] = OrderedDict()  # of open logs, to give up pieces
        self._waiting: dict[Key, None] = {}  # that have pending output
        self._silent: Timers[Place] = Timers()  # of every follower
        self._behind: Timers[Place] = Timers()  # of those that lack something, and hold it up
        self.held_bytes = 0
        self.dropped_bytes = 0
        """Dropped for want of room, with nobody having received it."""

    # An attempt's life.

    def open(self, task_id: str, attempt: int, run_id: int) -> None:
        """Begin with an attempt: from now on it can be followed.

        One of this number that ended here before is forgotten: there are two where records were lost, and the loss
        was accepted.
        """
        log = OutputLog(task_id, attempt, run_id)
        before = self._logs.get(log.key)
        if before is not None:
            self._drop(before)
        self._logs[log.key] = self._by_run[run_id] = log
        self._turns[log.key] = None

    def write(self, now: float, event: ProcessOutput) -> list[Step]:
        """Hold what an attempt has written, and let it go on if it need not wait."""
        log = self._by_run.get(event.run_id)
        if log is None:
            return [ReadOutput(event.run_id, event.stream)]
        if log.grace_until is None:
            log.grace_until = now + self._config.follow_grace_s
        log.pending.append((event.stream, event.data))
        self._waiting[log.key] = None
        return self._release(now, log)

    def dropped(self, run_id: int) -> int:
        """Return how many bytes of what an open attempt wrote are lost: dropped with nobody having received them."""
        log = self._by_run.get(run_id)
        return 0 if log is None else log.dropped_bytes

    def close(self, now: float, run_id: int) -> list[Step]:
        """Note that an attempt writes no more; what is pending is held at once if all outputs together leave room.

        Beyond the attempt's own limit, for it holds up no command any more: it would only keep who has got
        everything else waiting for who has not.
        """
        log = self._by_run.pop(run_id, None)
        if log is None:
            return []
        log.is_closing = True
        del self._turns[log.key]
        self._ended[log.key] = now
        steps = self._release(now, log) if log.pending else self._tell_end(log)
        while len(self._ended) > self._config.outputs_max and self._drop_oldest(now):
            pass
        return steps

    # Followers.

    def handle_message(self, now: float, sender: NodeId, message: Follow) -> list[Step]:
        """Take what a follower has, and send it what it may get."""
        if not self._is_member(sender):
            return []
        log = self._logs.get((message.task_id, message.attempt))
        if not message.pieces_max:
            return [] if log is None else self._forget(now, log, sender)
        if log is None:
            return [_no_more(sender, message.task_id, message.attempt, 0, FollowReason.UNKNOWN)]
        if message.from_seq > log.end:
            return []  # it cannot have what was never written
        if (
            log.is_ended and message.from_seq < log.first == log.end
        ):  # it lacks what is here no more
            steps = self._forget(now, log, sender)
            return [*steps, _no_more(sender, *log.key, 0, FollowReason.UNKNOWN)]
        follower = log.followers.get(sender)
        if follower is None:
            if len(self._silent) >= self._config.followers_max:
                return [_no_more(sender, *log.key, log.end, FollowReason.CROWDED)]
            follower = log.followers[sender] = Follower(message.from_seq, message.from_seq)
        is_progress = log.hear(follower, message)
        place = (log.key, sender)
        self._silent.set(place, now + FOLLOW_SILENCE_S)
        if is_progress:
            self._behind.cancel(place)
        self._note_behind(now, log)
        return self._send(log, sender, follower) + self._release_all(now)

    def handle_timeout(self, now: float) -> list[Step]:
        """Forget who is silent, wait no more for who gets on with nothing, and drop what was kept long enough."""
        steps: list[Step] = []
        for key, node_id in self._silent.take_due(now):
            steps += self._forget(now, self._logs[key], node_id)
        for key, node_id in self._behind.take_due(now):
            log = self._logs[key]
            log.slow.add(node_id)
            steps += self._forget(now, log, node_id)
            steps.append(_no_more(node_id, *key, log.end, FollowReason.SLOW))
        while self._drop_oldest(now, self._config.output_keep_s):
            pass
        return steps + self._release_all(now)

    def next_timeout(self) -> float | None:
        """Return when `handle_timeout` has something to do, or None."""
        kept = next(iter(self._ended.values()), None)
        graces = (
            self._logs[key].grace_until for key in self._waiting if not self._logs[key].was_followed
        )
        dues = (
            min((one for one in graces if one is not None), default=None),
            self._silent.next_deadline(),
            self._behind.next_deadline(),
            None if kept is None else kept + self._config.output_keep_s,
        )
        return min((due for due in dues if due is not None), default=None)

    def check_invariants(self) -> None:
        """Raise AssertionError if limits are passed, or somebody is remembered for nothing. O(pieces)."""
        config = self._config
        for log in self._logs.values():
            log.check_invariants(self._bytes_max(log))
        assert self.held_bytes == sum(log.held_bytes for log in self._logs.values())
        assert self.held_bytes <= config.output_total_bytes_max
        assert set(self._logs) == set(self._ended) | set(self._turns)
        assert set(self._turns) == {log.key for log in self._by_run.values()}
        assert set(self._waiting) == {key for key, log in self._logs.items() if log.pending}
        assert set(self._silent) == {
            (key, node_id) for key, log in self._logs.items() for node_id in log.followers
        }
        assert len(self._silent) <= config.followers_max
        assert set(self._behind) <= set(self._silent)

    # Inside.

    def _release_all(self, now: float) -> list[Step]:
        return [step for key in list(self._waiting) for step in self._release(now, self._logs[key])]

    def _release(self, now: float, log: OutputLog) -> list[Step]:
        """Hold what is pending as far as there is room, send it on, and let the command go on."""
        steps: list[Step] = []
        while log.pending and self._hold(now, log, *log.pending[0]):
            stream, _ = log.pending.popleft()
            if not log.is_closing:
                steps.append(ReadOutput(log.run_id, stream))
            for node_id, follower in log.followers.items():
                steps += self._send(log, node_id, follower)
        self._note_behind(now, log)
        if not log.pending:
            self._waiting.pop(log.key, None)
        return steps

    def _send(self, log: OutputLog, node_id: NodeId, follower: Follower) -> list[Step]:
        steps: list[Step] = [(node_id, piece) for piece in log.to_send(follower)]
        if log.is_ended and follower.sent >= log.end:
            steps.append(_no_more(node_id, *log.key, log.end, FollowReason.ENDED))
        return steps

    def _tell_end(self, log: OutputLog) -> list[Step]:
        return [
            step
            for node_id, follower in log.followers.items()
            for step in self._send(log, node_id, follower)
        ]

    def _note_behind(self, now: float, log: OutputLog) -> None:
        for node_id, follower in log.followers.items():
            place = (log.key, node_id)
            if follower.arrived >= log.end and not log.pending:
                self._behind.cancel(place)
            elif place not in self._behind and log.holds(node_id):
                self._behind.set(place, now + FOLLOW_SILENCE_S)

    def _forget(self, now: float, log: OutputLog, node_id: NodeId) -> list[Step]:
        """Forget a follower; what waited for it goes on."""
        log.followers.pop(node_id, None)
        self._silent.cancel((log.key, node_id))
        self._behind.cancel((log.key, node_id))
        return self._release_all(now)

    # Room.

    def _hold(self, now: float, log: OutputLog, stream: int, data: bytes) -> bool:
        """Hold a piece, dropping older ones for it; False: a follower needs what it would push out."""
        config = self._config
        cost = len(data) + PIECE_BYTES
        bytes_max = self._bytes_max(log) - cost
        if log.held_bytes > bytes_max and self._is_young(now, log):
            return False
        if not self._shrink(log, bytes_max):
            return False
        over = self.held_bytes + cost - config.output_total_bytes_max
        if over > 0 and not self._make_room(now, log, over):
            if any(map(log.holds, log.followers)):
                return False
            self._shrink(log, 0)
            log.skip(data)
            self.dropped_bytes += len(data)
            return True
        before = log.held_bytes
        log.add(stream, data)
        self.held_bytes += log.held_bytes - before
        return True

    def _bytes_max(self, log: OutputLog) -> int:
        return self._config.output_bytes_max + (ENDING_BYTES_MAX if log.is_closing else 0)

    def _is_young(self, now: float, log: OutputLog) -> bool:
        return not log.was_followed and log.grace_until is not None and now < log.grace_until

    def _make_room(self, now: float, log: OutputLog, bytes_needed: int) -> bool:
        """Drop ended attempts' output, the oldest first, then the oldest of `log`, then that of others in turn."""
        target = self.held_bytes - bytes_needed
        for _ in range(len(self._ended)):
            if self.held_bytes <= target or not self._drop_oldest(now):
                break
        if not self._shrink(log, log.held_bytes - (self.held_bytes - target)):
            return False
        for key in list(islice(self._turns, TURNS_MAX)):
            if self.held_bytes <= target:
                break
            self._turns.move_to_end(key)
            other = self._logs[key]
            self._shrink(other, other.held_bytes - (self.held_bytes - target))
        return self.held_bytes <= target

    def _shrink(self, log: OutputLog, bytes_max: int) -> bool:
        held, dropped = log.held_bytes, log.dropped_bytes
        is_done = log.shrink(bytes_max)
        self.held_bytes += log.held_bytes - held
        self.dropped_bytes += log.dropped_bytes - dropped
        return is_done

    def _drop_oldest(self, now: float, kept_s: float = 0.0) -> bool:
        """Drop the log that ended first and that nobody follows; False: none has been kept for so long.

        Who is followed is as if it ended now.
        """
        for _ in range(len(self._ended)):
            key, ended_at = next(iter(self._ended.items()))
            if ended_at + kept_s > now:
                return False
            log = self._logs[key]
            if not log.followers and not log.pending:
                self._drop(log)
                return True
            self._ended[key] = now
            self._ended.move_to_end(key)
        return False

    def _drop(self, log: OutputLog) -> None:
        """Forget an attempt, and who follows it."""
        for node_id in log.followers:
            self._silent.cancel((log.key, node_id))
            self._behind.cancel((log.key, node_id))
        log.followers.clear()
        self._shrink(log, 0)
        del self._logs[log.key]
        self._by_run.pop(log.run_id, None)
        self._ended.pop(log.key, None)
        self._turns.pop(log.key, None)
        self._waiting.pop(log.key, None)


def _no_more(
    node_id: NodeId, task_id: str, attempt: int, next_seq: int, reason: FollowReason
) -> Step:
    return node_id, FollowEnd(task_id, attempt, next_seq, reason)
