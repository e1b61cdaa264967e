"""What the tests of following share: commands that write, and clients that take."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mesh.core.effects import Answer, ReadOutput, StartProcess
from mesh.core.ids import NodeId
from mesh.core.process import ProcessOutput
from mesh.tasks.commands import Follow, Unfollow
from tests.unit.tasks.crew import Crew

KIB = 1024
ABSURD = 2**32 - 1


@dataclass
class Client:
    """A client at a node, that follows one task."""

    crew: Crew
    own: NodeId
    watcher_id: int
    task_id: str = "t"
    output: dict[int, bytes] = field(default_factory=lambda: {1: b"", 2: b""})
    task: dict[str, Any] | None = None

    def follow(self) -> Answer | None:
        return self.crew.give(
            self.own, lambda number: Follow(number, self.watcher_id, self.task_id)
        )

    def take(self) -> int:
        """Take what is there; return how many pieces that was."""
        pieces, task = self.crew.nodes[self.own].tasks.take_watch(self.watcher_id)
        for stream, data in pieces:
            self.output[stream] += data
        self.task = task or self.task
        return len(pieces)

    def take_all(self, seconds: float = 60.0, every_s: float = 0.1) -> None:
        """Take now and then until the task's JSON comes."""
        until = self.crew.now + seconds
        while self.task is None:
            assert self.crew.now < until, (self.output, "the task's JSON is expected, none came")
            self.take()
            self.crew.wait(every_s)

    def leave(self) -> None:
        node = self.crew.nodes[self.own]
        self.crew.do(node, lambda tasks, now: tasks.handle_command(now, Unfollow(self.watcher_id)))


@dataclass
class Command:
    """A process that writes as fast as it is read, and ends with its output: what an executor does of it."""

    crew: Crew
    own: NodeId
    run_id: int
    output: list[tuple[int, bytes]]
    code: int = 0
    written: int = 0
    has_ended: bool = False
    _may_write: dict[int, bool] = field(default_factory=lambda: {1: True, 2: True})

    def go_on(self) -> int:
        """Write until it is held up, or has ended; return how many pieces that was."""
        node, before = self.crew.nodes[self.own], self.written
        while not self.has_ended:
            for read in node.said(ReadOutput):
                assert isinstance(read, ReadOutput)
                assert read.run_id == self.run_id
                assert not self._may_write[read.stream], "a stream that waits is read on"
                self._may_write[read.stream] = True
            if self.written == len(self.output):
                if not all(self._may_write.values()):
                    break  # the exit comes after all output
                self.has_ended = True
                self.crew.exit(self.own, self.run_id, self.code)
                break
            stream, data = self.output[self.written]
            if not self._may_write[stream]:
                break
            self._may_write[stream] = False
            self.written += 1
            piece = ProcessOutput(self.run_id, stream, data)
            self.crew.do(node, lambda tasks, now: tasks.handle_process(now, piece))  # noqa: B023 - done at once
        return self.written - before


def started(crew: Crew, own: NodeId) -> StartProcess:
    """Return the one process that was started at a node since this was asked last."""
    (start,) = crew.nodes[own].starts()
    return start


def wrote(output: list[tuple[int, bytes]], stream: int) -> bytes:
    """Return all of one stream."""
    return b"".join(data for kind, data in output if kind == stream)


def running(slots: dict[NodeId, int], retries: int = 0) -> tuple[Crew, NodeId, int]:
    """Return a crew in which task t runs, where, and the run's id."""
    crew = Crew(slots)
    crew.submit("t", retries=retries)
    (own,) = (own for own, node in crew.nodes.items() if node.tasks.used)
    return crew, own, started(crew, own).run_id


def write(crew: Crew, own: NodeId, run_id: int, data: bytes, stream: int = 1) -> None:
    piece = ProcessOutput(run_id, stream, data)
    crew.do(crew.nodes[own], lambda tasks, now: tasks.handle_process(now, piece))


def hear(crew: Crew, own: NodeId, sender: NodeId, message: object) -> None:
    crew.do(crew.nodes[own], lambda tasks, now: tasks.handle_message(now, sender, message))


def chatter(count: int, piece_bytes: int = KIB) -> list[tuple[int, bytes]]:
    return [
        (1 + number % 5 // 4, b"%07d\n" % number * (piece_bytes // 8)) for number in range(count)
    ]
