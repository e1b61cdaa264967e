"""The lifelines of this node: idle streams to its observers, which its kernel closes when it dies.

A stream that nobody uses costs no packet, and its end is known within milliseconds of the process's.
This node opens one to each of its observers, opens another where one ends, and follows the observers
when members come and go. Nothing else is ever sent on it, but for an empty frame with which an observer
tries whether this end is still there; so nobody would notice that it hangs between addresses of which one
is no more: where either end has another now, it is opened anew. Where no observer can be reached so, it
says so once.

Source: our own.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from mesh.core.address import Address
from mesh.core.effects import CloseLifeline, Emit
from mesh.core.events import Event, EventKind
from mesh.core.ids import NodeId
from mesh.core.lines import LineKept, LineLost
from mesh.core.timers import Timers
from mesh.membership.identity import Identity
from mesh.membership.observers import Observers
from mesh.membership.outbox import Outbox
from mesh.membership.table import MemberTable
from mesh.wire.swim_messages import Lifeline

LOOK_S: Final = 0.2
"""After a change of the members, so long (and up to twice that) until the observers are chosen anew."""

AGAIN_S: Final = 0.02
"""A lifeline that was kept and ended is opened again within so long: an observer asks meanwhile whether we live."""

STEADY_S: Final = 5.0
"""One that ends sooner came to nothing as well, from the second time on: something resets it."""

RETRY_S: Final = 0.25
RETRY_S_MAX: Final = 30.0
"""One that came to nothing is tried again after this, then after twice as long each time, up to the maximum."""

FAILURES_SAID: Final = 6
"""When every lifeline has come to nothing so often in a row, about 15 s, it is said. Who is silent is dead by then."""


@dataclass(slots=True)
class _Line:
    to: Address
    lifeline_id: int = 0  # 0: not open, not being opened
    is_kept: bool = False
    kept_at: float = 0.0
    failures: int = 0


class Lifelines:
    """Keeps `count` lifelines, as far as there are others."""

    def __init__(
        self,
        *,
        count: int,
        identity: Identity,
        table: MemberTable,
        observers: Observers,
        outbox: Outbox,
        rng: random.Random,
    ) -> None:
        self._count = count
        self._identity = identity
        self._table = table
        self._observers = observers
        self._outbox = outbox
        self._rng = rng
        self._lines: dict[NodeId, _Line] = {}
        self._observer_of: dict[int, NodeId] = {}  # by lifeline id
        self._timers: Timers[NodeId] = Timers()
        self._look_at: float | None = None
        self._seen_view = 0
        self._last_id = 0
        self._boot = 0
        self._at = identity.address
        self._is_over = count <= 0
        self._has_complained = False

    @property
    def kept(self) -> int:
        """How many are open and answered."""
        return sum(line.is_kept for line in self._lines.values())

    def follow(self, now: float) -> None:
        """Look at the members again in a moment, if they have changed."""
        view = self._table.view_hash
        if self._is_over or view == self._seen_view:
            return
        self._seen_view = view
        if self._look_at is None:
            self._look_at = now + LOOK_S * (1.0 + self._rng.random())

    def next_deadline(self) -> float | None:
        """Return when this machine wants to be called next."""
        deadlines = (self._look_at, self._timers.next_deadline())
        return min((at for at in deadlines if at is not None), default=None)

    def handle_timeout(self, now: float) -> None:
        """Choose observers, or open lifelines, if that is due."""
        if self._look_at is not None and now >= self._look_at:
            self._look_at = None
            self._choose(now)
        for observer in self._timers.take_due(now):
            self._dial(observer)

    def handle(self, now: float, event: LineKept | LineLost) -> None:
        """Take what became of a lifeline."""
        observer = self._observer_of.get(event.lifeline_id)
        if observer is None:
            return
        line = self._lines[observer]
        if isinstance(event, LineKept):
            line.is_kept, line.kept_at = True, now
            return
        del self._observer_of[event.lifeline_id]
        was_kept, line.lifeline_id, line.is_kept = line.is_kept, 0, False
        if self._is_over:
            return
        is_steady = was_kept and now - line.kept_at >= STEADY_S
        if is_steady or (was_kept and not line.failures):
            line.failures = 0 if is_steady else 1
            self._timers.set(observer, now + AGAIN_S * self._rng.random())
            return
        pause_s = min(RETRY_S_MAX, RETRY_S * 2.0**line.failures)
        line.failures = min(line.failures + 1, 16)
        self._timers.set(observer, now + pause_s * (0.5 + self._rng.random()))
        self._complain()

    def stop(self) -> None:
        """Open no more. Those that are open end with the process."""
        self._is_over = True
        self._look_at = None
        for observer in self._lines:
            self._timers.cancel(observer)

    def _choose(self, now: float) -> None:
        boot, at = self._identity.card.boot, self._identity.address
        if (boot, at) != (self._boot, self._at):  # a lifeline says which session it belongs to
            self._boot, self._at = boot, at
            for observer in list(self._lines):
                self._close(observer)
        chosen = dict.fromkeys(self._observers.among(self._table.living, self._count))
        for observer, line in list(self._lines.items()):
            if observer not in chosen or line.to != self._address_of(observer):
                self._close(observer)
        for observer in chosen:
            to = self._address_of(observer)
            if observer not in self._lines and to is not None:
                self._lines[observer] = _Line(to)
                self._timers.set(observer, now + LOOK_S * self._rng.random())

    def _complain(self) -> None:
        if self._has_complained or any(
            line.is_kept or line.failures < FAILURES_SAID for line in self._lines.values()
        ):
            return
        self._has_complained = True
        text = (
            f"none of {len(self._lines)} members keeps a TCP connection of this node open: should it crash, they "
            "find that by its silence, not at once; is something between them closing connections?"
        )
        self._outbox.do(Emit(Event(kind=EventKind.WARN, detail=text)))

    def _address_of(self, observer: NodeId) -> Address | None:
        member = self._table.get(observer)
        return None if member is None else member.address

    def _close(self, observer: NodeId) -> None:
        line = self._lines.pop(observer)
        self._timers.cancel(observer)
        if line.lifeline_id:
            del self._observer_of[line.lifeline_id]
            self._outbox.do(CloseLifeline(line.lifeline_id))

    def _dial(self, observer: NodeId) -> None:
        member = self._table.get(observer)
        if member is None or not member.is_living:
            self._close(observer)  # should it be back before the next look, that one opens another
            return
        self._last_id += 1
        self._lines[observer].lifeline_id = self._last_id
        self._lines[observer].to = member.address
        self._observer_of[self._last_id] = observer
        self._outbox.dial(member.address, Lifeline(self._boot), self._last_id)
