"""Laws of followed output: however messages are lost, doubled and late, each byte comes once, and in order."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.core.effects import ReadOutput
from mesh.core.ids import NodeId
from mesh.core.process import ProcessOutput
from mesh.tasks.config import TasksConfig
from mesh.tasks.effects import Step
from mesh.tasks.feed import Feed
from mesh.tasks.output import HeldOutput
from mesh.tasks.window import SIZE_MAX
from mesh.wire.task_messages import Follow, FollowEnd, FollowReason, Piece

OWNER, FOLLOWER = NodeId(1), NodeId(2)
DEADLINE_S = 3_000.0

_writes = st.lists(
    st.tuples(st.sampled_from([1, 2]), st.binary(min_size=1, max_size=40)), max_size=60
)


class Wire:
    """Two nodes, and a network that loses, doubles and reorders what they say to each other."""

    def __init__(self, rng: random.Random, writes: list[tuple[int, bytes]], window: int) -> None:
        self.rng = rng
        self.window = window
        self.now = 0.0
        self.doubling = rng.uniform(0, 0.5)
        self.delay_s = rng.choice([0.001, 0.05, 1.0])
        # Either so little room that the command is held up most of the time, or messages are lost: who is not heard
        # for long is held up for no more.
        is_tight = rng.random() < 0.5
        self.loss = 0.0 if is_tight else rng.uniform(0, 0.5)
        config = TasksConfig(output_bytes_max=500) if is_tight else TasksConfig()
        self.output = HeldOutput(lambda _: True, config)
        self.output.open("t", 1, 1)
        self.writes, self.waiting = writes, {1: False, 2: False}
        self.has_closed = False
        self.feed = Feed("t", 1, OWNER)
        self.taken: dict[int, bytes] = {1: b"", 2: b""}
        self.flying: list[tuple[float, int, Follow | Piece | FollowEnd]] = []
        self.sent = 0
        self.feed.join(0.0, 7)
        self.carry_out(self.output.handle_message(0.0, FOLLOWER, Follow("t", 1, 0, window)))
        self.speak()

    def run(self) -> None:
        """Go on until all is said and taken."""
        while not self.feed.is_over:
            self.write()
            if self.rng.random() < 0.5:
                self.take()
            self.step()
            assert self.now < DEADLINE_S, "all of it is expected in time"
        self.take()

    def write(self) -> None:
        """Let the command write what it may, and end after that."""
        if self.writes and not self.waiting[self.writes[0][0]]:
            stream, data = self.writes.pop(0)
            self.waiting[stream] = True
            self.carry_out(self.output.write(self.now, ProcessOutput(1, stream, data)))
        elif not self.writes and not any(self.waiting.values()) and not self.has_closed:
            self.has_closed = True
            self.carry_out(self.output.close(self.now, 1))

    def take(self) -> None:
        for stream, data in self.feed.window.take(7):
            self.taken[stream] += data

    def step(self) -> None:
        """Let the next thing happen: a message arrives, or something is due."""
        dues = [self.feed.due, self.output.next_timeout() or float("inf")]
        if not self.has_closed and not all(self.waiting.values()):
            dues.append(self.now + 0.001)
        at, _, message = min(self.flying, default=(float("inf"), 0, None))
        self.now = max(self.now, min(at, *dues))
        if message is not None and at <= self.now:
            self.flying.remove(min(self.flying))
            self.arrive(message)
        self.carry_out(self.output.handle_timeout(self.now))
        self.speak()
        self.output.check_invariants()
        self.feed.check_invariants()

    def arrive(self, message: Follow | Piece | FollowEnd) -> None:
        if isinstance(message, Follow):
            self.carry_out(self.output.handle_message(self.now, FOLLOWER, message))
        elif isinstance(message, Piece):
            self.feed.add(self.now, message, self.window)
        elif message.reason is FollowReason.ENDED:
            self.feed.end_at(self.now, message.next_seq)

    def speak(self) -> None:
        message = self.feed.speak(self.now, self.window)
        if message is not None:
            self.send(message)

    def carry_out(self, steps: list[Step]) -> None:
        for step in steps:
            if isinstance(step, ReadOutput):
                assert self.waiting[step.stream], "a stream is read on once for each piece"
                self.waiting[step.stream] = False
            elif isinstance(step, tuple):
                assert isinstance(step[1], Piece | FollowEnd)
                self.send(step[1])

    def send(self, message: Follow | Piece | FollowEnd) -> None:
        if self.rng.random() < self.loss:
            return
        for _ in range(2 if self.rng.random() < self.doubling else 1):
            self.sent += 1
            self.flying.append((self.now + self.rng.uniform(0, self.delay_s), self.sent, message))


@given(_writes, st.integers(0, 2**32), st.integers(1, SIZE_MAX))
@settings(max_examples=60, deadline=None)
def test_each_byte_comes_once_and_in_order(
    writes: list[tuple[int, bytes]], seed: int, window: int
) -> None:
    wanted = {
        stream: b"".join(data for kind, data in writes if kind == stream) for stream in (1, 2)
    }
    wire = Wire(random.Random(seed), list(writes), window)
    wire.run()
    assert wire.taken == wanted
