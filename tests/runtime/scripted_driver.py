"""A scripted node and hands that remember, and a driver between the two."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import trio
import trio.testing

from mesh.core import effects as fx
from mesh.core.address import Address
from mesh.core.lines import LineEvent
from mesh.core.process import ProcessEvent, ProcessExit
from mesh.errors import TransportError
from mesh.node.commands import Command, SetLoad
from mesh.runtime.driver import Driver, Hands

PEER = Address("127.0.0.1", 9)
Script = Callable[..., list[fx.Effect]]


class ScriptedNode:
    """Answers each input with what its script says; remembers what it was given."""

    def __init__(self, **scripts: Script) -> None:
        self.inputs: list[tuple[Any, ...]] = []
        self.deadline: float | None = None
        self._scripts = scripts

    def _play(self, name: str, *given: object) -> list[fx.Effect]:
        self.inputs.append((name, *given))
        script = self._scripts.get(name)
        return script(*given) if script else []

    def start(self, now: float) -> list[fx.Effect]:
        return self._play("start")

    def handle_datagram(self, now: float, source: Address, data: bytes) -> list[fx.Effect]:
        return self._play("datagram", data)

    def handle_request(
        self, now: float, source: Address, data: bytes
    ) -> tuple[bytes, list[fx.Effect]]:
        return b"reply", self._play("request", data)

    def handle_exchange(
        self, now: float, exchange_id: int, reply: bytes | TransportError
    ) -> list[fx.Effect]:
        return self._play("exchange", exchange_id, reply)

    def handle_line(self, now: float, event: LineEvent) -> list[fx.Effect]:
        return self._play("line", event)

    def handle_resolved(
        self, now: float, seed: str, addresses: tuple[Address, ...]
    ) -> list[fx.Effect]:
        return self._play("resolved", seed, addresses)

    def handle_process(self, now: float, event: ProcessEvent) -> list[fx.Effect]:
        return self._play("process", event)

    def handle_committed(self, now: float, number: int) -> list[fx.Effect]:
        return self._play("committed", number)

    def handle_command(self, now: float, command: Command) -> list[fx.Effect]:
        return [] if isinstance(command, SetLoad) else self._play("command", command)

    def handle_timeout(self, now: float) -> list[fx.Effect]:
        self.deadline = None
        return self._play("timeout", now)

    def next_timeout(self) -> float | None:
        return self.deadline

    def check_invariants(self) -> None:
        return


class Hand:
    """Writes down what the driver does."""

    def __init__(self, driver: Driver) -> None:
        self.did: list[Any] = []
        self.disk_error: Exception | None = None
        self.failing = ""
        self.looks = 0
        self.moved_to: Address | None = None

        def run(effect: fx.ProcessEffect) -> None:
            self.did.append(effect)
            if isinstance(effect, fx.StartProcess):
                driver.handle_process(ProcessExit(effect.run_id, 127, "no such command: x"))

        driver.attach(
            Hands(
                send=lambda to, data: self.did.append(data),
                exchange=self.did.append,
                keep_line=self.did.append,
                resolve=self._resolve,
                persist=self._persist,
                commit=self._commit,
                remember=self.did.append,
                bequeath=self.did.append,
                emit=lambda event: self.did.append(event.kind),
                run=run,
                say=self.did.append,
                look=self._look,
            )
        )

    def _look(self) -> Address | None:
        self.looks += 1
        return self.moved_to

    def _resolve(self, seed: str) -> None:
        if seed == self.failing:
            raise RuntimeError("no thread left")
        self.did.append(seed)

    def _commit(self, effect: fx.Commit) -> None:
        if self.disk_error is not None:
            raise self.disk_error
        self.did.append(effect)

    def _persist(self, values: Mapping[str, int]) -> None:
        if self.disk_error is not None:
            raise self.disk_error
        self.did.append(dict(values))


@asynccontextmanager
async def driven(node: ScriptedNode) -> AsyncIterator[tuple[Driver, Hand, list[fx.Stop]]]:
    driver = Driver(node, trio.current_time)
    hand = Hand(driver)
    stops: list[fx.Stop] = []

    async def run() -> None:
        stops.append(await driver.run())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await trio.testing.wait_all_tasks_blocked()
        yield driver, hand, stops
        nursery.cancel_scope.cancel()
