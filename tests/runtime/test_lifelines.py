"""Lifelines over real sockets: kept while nobody speaks, and their end reported at once."""

from __future__ import annotations

import math
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from mesh.core.address import Address
from mesh.core.effects import CloseLifeline, HangUp, KeepOpen, OpenLifeline, TryLine
from mesh.core.lines import HungUp, LineEvent, LineKept, LineLost
from mesh.runtime.door import PlainDoor
from mesh.runtime.lifelines import TRIALS_BURST, LifelineKeeper
from mesh.runtime.listener import Listener, ListenLimits
from mesh.runtime.reach import Reach
from mesh.wire.frames import frame
from tests.runtime.peers import HOST, listening

ALONE_S = 0.3
LIMITS = ListenLimits(idle_s=ALONE_S / 3, frame_s=ALONE_S / 3)


class Ends:
    """An asking and an answering end in one process; `seen` is what both were told, in order."""

    def __init__(self, nursery: trio.Nursery, *, is_kept: bool = True) -> None:
        self.seen: list[LineEvent] = []
        self.source: Address | None = None
        self._more = trio.Event()
        self._is_kept = is_kept
        self.sock = listening()
        self.address = Address(*self.sock.getsockname())
        self.listener = Listener(self.sock, trio.current_time, self._on_request, print, LIMITS)
        self.listener.on_hang_up = lambda source: self._see(HungUp(source))
        self.keeper = LifelineKeeper(
            nursery,
            self._see,
            door=PlainDoor(),
            reach=Reach(),
            keep=self.listener.keep,
            hang_up=self.listener.hang_up,
            try_line=self.listener.try_line,
        )

    def _on_request(self, source: Address, data: bytes) -> bytes:
        if not self._is_kept:
            return b""
        self.source = source
        self.keeper.carry_out(KeepOpen(source))
        return b"kept " + data

    def _see(self, event: LineEvent) -> None:
        self.seen.append(event)
        self._more.set()

    async def until(self, event: LineEvent) -> None:
        with trio.fail_after(10):
            while event not in self.seen:
                self._more = trio.Event()
                await self._more.wait()


@asynccontextmanager
async def ends(*, is_kept: bool = True) -> AsyncIterator[Ends]:
    async with trio.open_nursery() as nursery:
        pair = Ends(nursery, is_kept=is_kept)
        nursery.start_soon(pair.listener.run)
        try:
            yield pair
        finally:
            nursery.cancel_scope.cancel()
            pair.sock.close()


async def test_lifeline_outlives_every_limit_of_silence_and_is_counted_as_no_stranger(
    autojump_clock: trio.testing.MockClock,
) -> None:
    assert autojump_clock.autojump_threshold < math.inf
    del autojump_clock
    async with ends() as pair:
        pair.keeper.carry_out(OpenLifeline(1, pair.address, b"me"))
        await pair.until(LineKept(1))
        await trio.sleep(100 * ALONE_S)
        assert pair.seen == [LineKept(1)]


async def test_lifeline_that_is_tried_stays_and_says_nothing() -> None:
    async with ends() as pair:
        pair.keeper.carry_out(OpenLifeline(1, pair.address, b"me"))
        await pair.until(LineKept(1))
        assert pair.source is not None
        for _ in range(TRIALS_BURST // 2):
            pair.keeper.carry_out(TryLine(pair.source))
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert pair.seen == [LineKept(1)]
        pair.keeper.carry_out(HangUp(pair.source))
        await pair.until(LineLost(1))


async def test_line_that_nobody_keeps_is_not_tried() -> None:
    async with ends() as pair:
        pair.keeper.carry_out(TryLine(Address(HOST, 9)))
        assert pair.seen == []


@pytest.mark.parametrize(
    "data",
    [frame(b"x"), frame(b"") * (2 * TRIALS_BURST), b"\xff" * 8],
    ids=["word", "flood", "garbage"],
)
async def test_keeper_that_sends_anything_but_a_few_empty_frames_is_hung_up_on(data: bytes) -> None:
    async with ends() as pair:
        pair.keeper.carry_out(OpenLifeline(1, pair.address, b"me"))
        await pair.until(LineKept(1))
        (connection,) = pair.listener._kept.values()
        await connection.stream.send_all(data)
        await pair.until(LineLost(1))


async def test_end_at_the_asking_side_is_told_to_the_other_at_once() -> None:
    async with ends() as pair:
        pair.keeper.carry_out(OpenLifeline(1, pair.address, b"me"))
        await pair.until(LineKept(1))
        pair.keeper.carry_out(CloseLifeline(1))
        assert pair.source is not None
        await pair.until(HungUp(pair.source))
        assert pair.seen == [LineKept(1), HungUp(pair.source)]


async def test_end_at_the_answering_side_is_told_to_the_asker_once() -> None:
    async with ends() as pair:
        pair.keeper.carry_out(OpenLifeline(1, pair.address, b"me"))
        await pair.until(LineKept(1))
        assert pair.source is not None
        pair.keeper.carry_out(HangUp(pair.source))
        await pair.until(LineLost(1))
        assert pair.seen == [LineKept(1), LineLost(1)]


def _nobody() -> Address:
    with socket.socket() as free:
        free.bind((HOST, 0))
        return Address(*free.getsockname())


@pytest.mark.parametrize(
    "to", [_nobody, lambda: Address("192.0.2.1", 7946)], ids=["nobody there", "beyond reach"]
)
async def test_lifeline_that_cannot_be_opened_is_lost_once(to: Callable[[], Address]) -> None:
    async with ends() as pair:
        pair.keeper.carry_out(OpenLifeline(1, to(), b"me"))
        await pair.until(LineLost(1))
        assert pair.seen == [LineLost(1)]


async def test_lifeline_that_is_not_let_in_is_lost_and_hangs_up_on_nobody() -> None:
    async with ends(is_kept=False) as pair:
        pair.keeper.carry_out(OpenLifeline(1, pair.address, b"me"))
        await pair.until(LineLost(1))
        assert pair.seen == [LineLost(1)]


async def test_kept_lines_take_no_place_of_others() -> None:
    limits = ListenLimits(connections_max=2)
    async with ends() as pair:
        pair.listener._limits = limits
        for number in range(1, 6):
            pair.keeper.carry_out(OpenLifeline(number, pair.address, b"me"))
            await pair.until(LineKept(number))
        assert pair.listener.counters["dropped_full"] == 0
        streams = [await trio.open_tcp_stream(pair.address.host, pair.address.port) for _ in "12"]
        for stream in streams:
            await stream.aclose()
        assert [event for event in pair.seen if not isinstance(event, LineKept)] == []
