"""Streams that are kept open for the sake of their end: those that this node opened, and those it was asked to keep.

An own one is opened, its one request is answered, and then nothing is sent on it any more. What comes in is
empty frames, by which its keeper tries whether this end is still there; anything else is an error. An empty
frame says nothing, so it is not sealed. Its end is reported at once. Those of others live in the listener, which reports their end.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Final, assert_never

import trio

from mesh.core import effects as fx
from mesh.core.address import Address
from mesh.core.lines import LineEvent, LineKept, LineLost
from mesh.core.pace import Pace
from mesh.errors import DecodeError, SealError
from mesh.runtime.door import Door
from mesh.runtime.reach import Reach
from mesh.runtime.streams import FIRST_FRAME_BYTES_MAX, connect
from mesh.wire.frames import FrameKind, FrameReader, exchange_body, frame, split_exchange

OPEN_S: Final = 5.0
"""How long it may take until a lifeline is answered."""

TRIALS_S: Final = 10.0
TRIALS_BURST: Final = 100
"""Empty frames are let pass at this pace; a keeper that sends more is hung up on."""

_READ_BYTES: Final = 4_096


class LifelineKeeper:
    """Carries out the effects about lines. `keep`, `hang_up` and `try_line` are the listener's."""

    def __init__(
        self,
        nursery: trio.Nursery,
        report: Callable[[LineEvent], None],
        *,
        door: Door,
        reach: Reach,
        keep: Callable[[Address], None],
        hang_up: Callable[[Address], None],
        try_line: Callable[[Address], None],
    ) -> None:
        self._nursery = nursery
        self._report = report
        self._door = door
        self._reach = reach
        self._keep = keep
        self._hang_up = hang_up
        self._try_line = try_line
        self._open: dict[int, trio.CancelScope] = {}

    def carry_out(self, effect: fx.LineEffect) -> None:
        """Carry out one effect."""
        match effect:
            case fx.OpenLifeline():
                scope = self._open[effect.lifeline_id] = trio.CancelScope()
                self._nursery.start_soon(self._hold, effect, scope)
            case fx.CloseLifeline(lifeline_id):
                scope_or_none = self._open.pop(lifeline_id, None)
                if scope_or_none is not None:
                    scope_or_none.cancel()
            case fx.KeepOpen(source):
                self._keep(source)
            case fx.TryLine(source):
                self._try_line(source)
            case fx.HangUp(source):
                self._hang_up(source)
            case _:
                assert_never(effect)

    async def _hold(self, effect: fx.OpenLifeline, scope: trio.CancelScope) -> None:
        with (
            scope,
            contextlib.suppress(
                OSError,
                trio.BrokenResourceError,
                trio.ClosedResourceError,
                trio.TooSlowError,
                DecodeError,
                SealError,
            ),
        ):
            await self._open_and_wait(effect)
        if self._open.pop(effect.lifeline_id, None) is not None:
            self._report(LineLost(effect.lifeline_id))

    async def _open_and_wait(self, effect: fx.OpenLifeline) -> None:
        if not self._reach.admits(effect.to.host):
            return
        with trio.fail_after(OPEN_S):
            stream = await connect(effect.to)
        try:
            with trio.fail_after(OPEN_S):
                passage = await self._door.enter(stream)
                body = exchange_body(1, FrameKind.REQUEST, effect.data)
                await stream.send_all(frame(passage.seal(body)))
                reader = FrameReader(FIRST_FRAME_BYTES_MAX)
                bodies: list[bytes] = []
                while not bodies:
                    data = await stream.receive_some(_READ_BYTES)
                    if not data:
                        return
                    bodies = reader.feed(data)
                _, kind, _ = split_exchange(passage.open(bodies[0]))
                if kind is not FrameKind.REPLY:
                    return
            self._report(LineKept(effect.lifeline_id))
            await _wait_ended(stream, reader, bodies[1:])
        finally:
            stream.socket.close()


async def _wait_ended(stream: trio.SocketStream, reader: FrameReader, bodies: list[bytes]) -> None:
    """Return at the end of a lifeline, or when something comes that is no empty frame."""
    trials = Pace(rate_s=TRIALS_S, burst=TRIALS_BURST)
    while not any(bodies):
        for _ in bodies:
            if not trials.allows(trio.current_time()):
                return
        data = await stream.receive_some(_READ_BYTES)
        if not data:
            return
        bodies = reader.feed(data)
