"""Following over a network that loses, doubles, delays and reorders: all output comes to all clients, and then its end."""

from __future__ import annotations

import heapq
import random
from dataclasses import replace

import pytest

from mesh.core.ids import NodeId
from mesh.tasks.effects import Outgoing, Send
from mesh.wire.task_messages import Follow, FollowEnd, Piece
from tests.unit.tasks.crew import A, B, C, Crew, Node
from tests.unit.tasks.followed import Client, chatter, hear, started, write, wrote

P = NodeId(8)

ENDED_EARLY = (26, 35, 37, 42)
"""Seeds one of whose clients once saw the end before the last output."""


class Disorder(Crew):
    """A crew whose questions for output, and the answers, arrive when they like; all else as ever."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__({P: 1})
        self._rng = rng
        self._loss = rng.choice((0.0, 0.1, 0.3))
        self._doubles = rng.choice((0.0, 0.1, 0.5))
        self._delay_s = rng.choice((0.0, 0.1, 1.0, 3.0))
        self._late: list[tuple[float, int, NodeId, NodeId, object]] = []  # when; from, to, what
        self._count = 0

    def wait(self, seconds: float) -> None:
        """Let the time pass, and what is under way arrive in its turn."""
        until = self.now + seconds
        while self._late and self._late[0][0] <= until:
            due, _, sender, to, message = heapq.heappop(self._late)
            super().wait(max(0.0, due - self.now))
            hear(self, to, sender, message)
        super().wait(until - self.now)

    def _deliver(self, sender: Node, send: Send) -> list[tuple[Node, Outgoing]]:
        prompt = []
        for message in send.messages:
            if not isinstance(message, Follow | Piece | FollowEnd):
                prompt.append(message)
            elif self._rng.random() >= self._loss:
                for _ in range(1 + (self._rng.random() < self._doubles)):
                    self._count += 1
                    due = self.now + self._rng.random() ** 3 * self._delay_s  # most come soon
                    late = (due, self._count, sender.card.node_id, send.to, message)
                    heapq.heappush(self._late, late)
        return super()._deliver(sender, replace(send, messages=tuple(prompt))) if prompt else []


@pytest.mark.parametrize("seed", [*range(2), *ENDED_EARLY])
def test_clients_that_come_and_go_get_all_output_before_the_end(seed: int) -> None:
    rng = random.Random(seed)
    crew = Disorder(rng)
    crew.submit("t")
    run_id = started(crew, P).run_id
    output = chatter(rng.choice((1, 30, 100)))  # no more than is held: no piece is dropped
    clients = [Client(crew, rng.choice((A, B, C)), number) for number in range(4)]
    coming, written = list(clients), 0
    until = crew.now + 120
    while coming or not all(client.task for client in clients):
        if written < len(output):
            for stream, data in output[written : written + rng.choice((1, 5, 50))]:
                write(crew, P, run_id, data, stream)
                written += 1
            if written == len(output):
                crew.exit(P, run_id)
        if coming and rng.random() < 0.3:
            coming.pop().follow()
        for client in clients:
            if client not in coming and client.task is None and rng.random() < 0.7:
                client.take()
        crew.wait(rng.choice((0.05, 0.3, 1.0)))
        assert crew.now < until, "all ends are expected in time"
    for client in clients:
        assert client.output == {1: wrote(output, 1), 2: wrote(output, 2)}
