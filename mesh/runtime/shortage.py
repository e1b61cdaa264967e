"""Runs the hook of a shortage: looks at the load of the node's pool, asks whether it is this node's turn, and says how it ended.

    every second: load ──► short, and it lasts ──► a majority is asked for the turn ──► granted ──► the line is run
                                                        └─ another has run it, or nobody answers ──► later

While a question or a run is under way this node asks for nothing more; another may, once the cool-down is over.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, TypeAlias

import trio

from mesh.core.events import Event, EventKind
from mesh.errors import CommandRefused, LocalProtocolError
from mesh.hooks.commands import TakeTurn
from mesh.hooks.latest import shortage_of
from mesh.hooks.shortage import Shortage
from mesh.hooks.taker import RETRY_S, TurnTaker
from mesh.placement.demand import Demand
from mesh.runtime.clock import Clock
from mesh.runtime.shell import Shell

LOOK_S: Final = 1.0
TIMEOUT_S: Final = 300.0
"""No run of the hook may take longer."""

Ask: TypeAlias = Callable[[Callable[[int], TakeTurn]], Awaitable[Any]]


class Ways(NamedTuple):
    """What the hook has of its node."""

    clock: Clock
    measure: Callable[[], Demand | None]
    ask: Ask
    """The driver's."""

    emit: Callable[[Event], None]
    pool: str
    """Whose load is measured."""

    describe: Callable[[], dict[str, str]]
    """Returns what the line finds in its environment beside the load."""


class ShortageHook:
    """One node's hook. `run` it while the node runs."""

    def __init__(
        self,
        shell: Shell,
        ways: Ways,
        rng: random.Random,
        *,
        short_after_s: float,
        cool_down_s: float,
    ) -> None:
        """`rng` makes what no other node's may make: seed it with entropy."""
        self._shell = shell
        self._ways = ways
        self._shortage = Shortage(rng, short_after_s=short_after_s)
        self._taker = TurnTaker(shortage_of(ways.pool), cool_down_s, rng)
        self._is_refusal_said = False

    async def run(self) -> None:
        """Look until cancelled; a run that is under way then is killed."""
        async with trio.open_nursery() as nursery:
            while True:
                demand = self._ways.measure()
                # None: it has met nobody yet.
                if demand is not None and self._shortage.step(self._ways.clock(), demand.load):
                    nursery.start_soon(self._take_turn, demand)
                await trio.sleep(LOOK_S)

    async def _take_turn(self, demand: Demand) -> None:
        answer = None
        try:
            answer = await self._ways.ask(
                lambda number: self._taker.ask(self._ways.clock(), number)
            )
            self._is_refusal_said = False
        except (CommandRefused, LocalProtocolError) as error:
            self._say_refused(demand, error)
        heard_at = self._ways.clock()
        heard = self._taker.hear(heard_at, answer)
        if heard.may_run:
            await self._run_line(demand)
        now = self._ways.clock()
        self._shortage.answered(now, max(0.0, heard_at + heard.wait_s - now))

    async def _run_line(self, demand: Demand) -> None:
        self._ways.emit(
            Event(
                kind=EventKind.HOOK,
                detail=f"{_words(self._ways.pool, demand)}: runs its --on-shortage",
            )
        )
        load = {
            "MESH_POOL": self._ways.pool,
            "MESH_LOAD": f"{demand.load:.2f}",
            "MESH_USED": str(demand.used),
            "MESH_SLOTS": str(demand.slots),
        }
        begun = self._ways.clock()
        outcome = await self._shell.run(TIMEOUT_S, {**self._ways.describe(), **load})
        kind = EventKind.HOOK if outcome.is_ok else EventKind.WARN
        verb = "has ended" if outcome.is_ok else "has failed"
        text = f"its --on-shortage {verb} after {self._ways.clock() - begun:.1f} s: {outcome.text}"
        self._ways.emit(Event(kind=kind, detail=text))

    def _say_refused(self, demand: Demand, error: Exception) -> None:
        """Say it once, until somebody answers again."""
        if self._is_refusal_said:
            return
        self._is_refusal_said = True
        text = f"{_words(self._ways.pool, demand)}, and its --on-shortage is not run: {error}; asks again {RETRY_S:g} s after each answer"
        self._ways.emit(Event(kind=EventKind.WARN, detail=text))


def _words(pool: str, demand: Demand) -> str:
    use = f"{demand.used} of {demand.slots} in use, load {demand.load:.2f}"
    return f"pool {pool} is short of slots ({use})"
