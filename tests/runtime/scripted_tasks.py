"""A node that answers commands about tasks as it is told, behind the real driver, services and control socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import trio

from mesh.core import effects as fx
from mesh.core.address import Address
from mesh.core.lines import LineEvent
from mesh.core.process import ProcessEvent
from mesh.errors import TransportError
from mesh.node.commands import Command, SetLoad
from mesh.node.view import View
from mesh.runtime.control import ControlServer
from mesh.runtime.driver import Driver, Hands
from mesh.runtime.eventlog import EventLog
from mesh.runtime.services import Services
from mesh.runtime.status import Status
from mesh.tasks.commands import Follow, Unfollow

Answers: TypeAlias = Callable[[Command], list[fx.Effect]]


def ok(command: Any, result: object) -> list[fx.Effect]:  # noqa: ANN401 - of whatever command
    return [fx.Answer(command.command_id, result, None)]


def refusal(command: Any, error: str) -> list[fx.Effect]:  # noqa: ANN401 - of whatever command
    return [fx.Answer(command.command_id, None, error)]


@dataclass
class Output:
    """What one watcher has to take."""

    pieces: list[tuple[int, bytes]] = field(default_factory=list)
    task: dict[str, Any] | None = None


class ScriptedNode:
    """Gives each command to `answers`, and remembers it. A watcher gets what `output` holds."""

    def __init__(self, answers: Answers) -> None:
        self.commands: list[Command] = []
        self.output = Output()
        self.watchers: set[int] = set()
        self._answers = answers

    def handle_command(self, now: float, command: Command) -> list[fx.Effect]:
        if isinstance(command, SetLoad):
            return []
        self.commands.append(command)
        if isinstance(command, Follow):
            self.watchers.add(command.watcher_id)
        if isinstance(command, Unfollow):
            self.watchers.discard(command.watcher_id)
        return self._answers(command)

    def take_watch(self, watcher_id: int) -> tuple[list[tuple[int, bytes]], dict[str, Any] | None]:
        if watcher_id not in self.watchers:
            return [], {"watch_error": "nobody follows under this number"}
        pieces, self.output.pieces = self.output.pieces, []
        return pieces, self.output.task

    def kinds(self) -> list[str]:
        """Return the commands that came, by name."""
        return [type(command).__name__ for command in self.commands]

    def view(self, now: float) -> View:
        node = {"name": "scripted", "counters": {}, "registers": {"votes": True, "voters": ["a"]}}
        member = {"name": "scripted", "node_id": "0" * 15 + "a", "state": "alive", "self": True}
        return View(node, [member], list, {}, [])

    def start(self, now: float) -> list[fx.Effect]:
        return []

    def handle_datagram(self, now: float, source: Address, data: bytes) -> list[fx.Effect]:
        return []

    def handle_request(
        self, now: float, source: Address, data: bytes
    ) -> tuple[bytes, list[fx.Effect]]:
        return b"", []

    def handle_exchange(
        self, now: float, exchange_id: int, reply: bytes | TransportError
    ) -> list[fx.Effect]:
        return []

    def handle_line(self, now: float, event: LineEvent) -> list[fx.Effect]:
        return []

    def handle_resolved(
        self, now: float, seed: str, addresses: tuple[Address, ...]
    ) -> list[fx.Effect]:
        return []

    def handle_process(self, now: float, event: ProcessEvent) -> list[fx.Effect]:
        return []

    def handle_committed(self, now: float, number: int) -> list[fx.Effect]:
        return []

    def handle_timeout(self, now: float) -> list[fx.Effect]:
        return []

    def next_timeout(self) -> float | None:
        return None

    def check_invariants(self) -> None:
        return


@asynccontextmanager
async def serving(node: ScriptedNode, data_dir: Path) -> AsyncIterator[Driver]:
    """Serve the node's requests on the control socket of a directory."""
    driver = Driver(node, trio.current_time)
    dropped: list[object] = []
    driver.attach(
        Hands(
            send=lambda to, data: dropped.append((to, data)),
            exchange=dropped.append,
            keep_line=dropped.append,
            resolve=dropped.append,
            persist=dropped.append,
            commit=dropped.append,
            remember=dropped.append,
            bequeath=dropped.append,
            emit=dropped.append,
            run=dropped.append,
            say=dropped.append,
            look=lambda: None,
        )
    )
    status = Status(node.view, trio.current_time, [], {"data": str(data_dir)})

    async def no_keys(request: object, client: object) -> None:
        raise AssertionError("nobody asks for keys here")

    services = Services(driver, node.take_watch, status, EventLog(lambda: "scripted"), no_keys)
    server = ControlServer(data_dir, services.table(), dropped.append)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.run)
            nursery.start_soon(driver.run)
            yield driver
            nursery.cancel_scope.cancel()
    finally:
        server.close()
    assert driver.counters["dropped_bug"] == 0, dropped


def tell(driver: Driver, task_id: str) -> None:
    """Wake whoever waits for a task."""
    driver.changes.announce(task_id)
