"""Some whole nodes on one wire: bytes arrive at once and in order, commits are durable at once, time passes when told to."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from mesh.core.address import Address
from mesh.core.effects import (
    Answer,
    Commit,
    Effect,
    Resolve,
    SendDatagram,
    StartExchange,
    StartProcess,
)
from mesh.core.process import ProcessExit
from mesh.errors import TransportError
from mesh.node.commands import Command
from mesh.node.node import Node
from tests.unit.membership.pump import address
from tests.unit.node.talk import NOW, Disk, config

T = TypeVar("T")
SEED = str(address(1))


class Neighbours:
    """Hosts by number. Host 1 founds the mesh; the others know its address."""

    def __init__(self) -> None:
        self.now = NOW
        self.nodes: dict[int, Node] = {}
        self.disks: dict[int, Disk] = {}
        self.away: set[int] = set()
        """Who hears nothing, and is heard by nobody; as if killed, if it is not asked anything."""

        self.said: dict[int, list[Effect]] = {}
        """Every effect of each since it was begun."""

        self.loses: Callable[[int, int, bytes], bool] = lambda _from, _to, _data: False
        """Says which packet is lost."""

        self._todo: deque[tuple[int, Effect]] = deque()
        self._commands = 0

    def begin(self, number: int, **changed: Any) -> Node:  # noqa: ANN401 - what a config takes
        """Start a session of a host, with what those before it have committed."""
        seeds = () if number == 1 else (SEED,)
        parts = {"is_founder": number == 1, "seeds": seeds, **changed}
        disk = self.disks.setdefault(number, Disk())
        node = Node(config(number, **parts), seed=number, kept=disk.kept())
        self.nodes[number], self.said[number] = node, []
        self.do(number, lambda at, now: at.start(now))
        return node

    def do(self, number: int, call: Callable[[Node, float], list[Effect]]) -> None:
        """Let something happen at a host, and all that follows."""
        self._add(number, call(self.nodes[number], self.now))
        while self._todo:
            self._carry_out(*self._todo.popleft())
        for node in self.nodes.values():
            node.check_invariants()

    def give(self, number: int, make: Callable[[int], Command]) -> int:
        """Give a command to a host; return its number."""
        self._commands += 1
        command = make(self._commands)
        self.do(number, lambda node, now: node.handle_command(now, command))
        return self._commands

    def answer(self, command_id: int) -> Answer | None:
        """Return the answer to a command, if there is one yet."""
        said = (effect for effects in self.said.values() for effect in effects)
        found = [e for e in said if isinstance(e, Answer) and e.command_id == command_id]
        return found[0] if found else None

    def heard(self, number: int, kind: type[T]) -> list[T]:
        """Return what a host has asked of its driver so far, of one kind, and forget it."""
        found: list[T] = [effect for effect in self.said[number] if isinstance(effect, kind)]
        self.said[number] = [effect for effect in self.said[number] if not isinstance(effect, kind)]
        return found

    def started(self) -> dict[int, list[StartProcess]]:
        """Return which hosts have started something that was not looked at yet."""
        found = {number: self.heard(number, StartProcess) for number in self.nodes}
        return {number: starts for number, starts in found.items() if starts}

    def exit(self, number: int, run_id: int, code: int = 0) -> None:
        """Let a process end."""
        self.do(number, lambda node, now: node.handle_process(now, ProcessExit(run_id, code)))

    def run(self, seconds: float, until: Callable[[], object] = lambda: False) -> None:
        """Let time pass, at most so long, or until something is so."""
        end = self.now + seconds
        while not until():
            due = min((at, number) for number in self.nodes for at in self._due(number))
            if due[0] > end:
                self.now = end
                return
            self.now = max(self.now, due[0])
            self.do(due[1], lambda node, now: node.handle_timeout(now))

    # Inside.

    def _due(self, number: int) -> list[float]:
        at = self.nodes[number].next_timeout()
        return [] if at is None or number in self.away else [at]

    def _add(self, number: int, effects: list[Effect]) -> None:
        self._todo.extend((number, effect) for effect in effects)

    def _carry_out(self, number: int, effect: Effect) -> None:
        node, now = self.nodes[number], self.now
        if isinstance(effect, Commit):
            self.disks[number].take(effect)
            self._add(number, node.handle_committed(now, effect.number))
        elif isinstance(effect, SendDatagram):
            to = self._reached(number, effect.to, effect.data)
            if to is not None:
                self._add(to, self.nodes[to].handle_datagram(now, address(number), effect.data))
        elif isinstance(effect, StartExchange):
            self._add(
                number, node.handle_exchange(now, effect.exchange_id, self._ask(number, effect))
            )
        elif isinstance(effect, Resolve):
            found = tuple(address(n) for n in self.nodes if str(address(n)) == effect.seed)
            self._add(number, node.handle_resolved(now, effect.seed, found))
        else:
            self.said[number].append(effect)

    def _ask(self, number: int, asked: StartExchange) -> bytes | TransportError:
        to = self._reached(number, asked.to, asked.data)
        if to is None:
            return TransportError("nobody is there")
        reply, effects = self.nodes[to].handle_request(self.now, address(number), asked.data)
        self._add(to, effects)
        return reply or TransportError("it hung up")

    def _reached(self, number: int, to: Address, data: bytes) -> int | None:
        found = [n for n in self.nodes if address(n) == to and not {n, number} & self.away]
        return found[0] if found and not self.loses(number, found[0], data) else None
