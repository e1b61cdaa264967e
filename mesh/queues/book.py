"""What one node knows of the queues that it is asked about, kept fresh while it is asked.

    strategy_of ──► known? its strategy (or weights), at once ─┐ else what this node's own voter holds, else `DEFAULT`
         │                                        └─► not heard of for REFRESH_S ──► due
         └─ asked about lately: due again, every REFRESH_S ──────────────────────────► due
    due ──pace──► a majority is asked ──► known
    own voter stores a setting · a command here has set or read it ──────────────────► known

A strategy decides who asks for a task, never who has it: an old one costs a detour, and nothing else. So it is answered
without waiting, and a change is known where it was made at once, at the voters of its register as soon as they
store it, and wherever the queue is in use after REFRESH_S and a round trip.

Of queues that nobody asks about nothing is asked, and the ones asked about longest ago are forgotten first. However
many are in use, so many questions a second are asked: beyond READS_S * REFRESH_S queues each is asked of more seldom.

Pure, and harmless to be asked at any time; `ask_due` does the asking.

Source: our own.
"""

from __future__ import annotations

import random
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, Protocol

from mesh.core.pace import Pace
from mesh.core.timers import Timers
from mesh.errors import DecodeError
from mesh.queues.settings import (
    DEFAULT,
    QueueSettings,
    Strategy,
    decode,
    is_queue_key,
    of_value,
    queue_key,
)
from mesh.registers.asker import Done
from mesh.registers.reading import Seen
from mesh.registers.record import Record
from mesh.registers.voter import Voter
from mesh.wire.contest_messages import Weighing
from mesh.wire.register_messages import Value

BOOK: Final = "queues"
"""The first part of every tag of these questions."""

REFRESH_S: Final = 10.0
"""What is known of a queue in use is asked again after this, or up to a quarter of it sooner."""

IN_USE_S: Final = 30.0
"""So long after it was asked about last a queue is in use."""

READ_S: Final = 5.0
"""So long a majority is waited for."""

QUEUES_MAX: Final = 10_000
"""Queues that are known at once, each of some hundred bytes."""

READS_S: Final = 50.0
READS_BURST: Final = 100
"""Questions a second, and how many at once. A question is three short messages and their answers."""


class Registers(Protocol):
    """What is asked of the desk; each question ends as `Done` with its tag."""

    @property
    def voter(self) -> Voter:
        """This node's own records."""

    def read(self, now: float, key: bytes, tag: Hashable, timeout_s: float) -> None:
        """Ask a majority."""


@dataclass(slots=True)
class _Known:
    """One queue. Invariant: it is awaited once at most: by a timer, in line to be asked, or asked."""

    settings: QueueSettings | None
    """None: none are set, as far as is known."""

    used_at: float
    asked_at: float = float("-inf")
    """When a majority was asked last, or found to hold this; -inf: never yet."""

    asked: int = 0
    """The question under way; 0: none."""

    is_heard: bool = False
    """A majority has been found to hold this, or nothing, at least once."""


class QueueBook:
    """The queues of one node's session."""

    def __init__(self, registers: Registers, rng: random.Random) -> None:
        """Begin with nothing; `rng` is for jitter."""
        self._registers = registers
        self._rng = rng
        self._known: dict[str, _Known] = {}  # who was asked about last is last
        self._refresh: Timers[str] = Timers()
        self._new: dict[str, None] = {}
        """In line to be asked about for the first time: they go first."""

        self._old: dict[str, None] = {}
        """In line to be asked about again."""

        self._asked: dict[int, str] = {}
        self._last = 0
        self._pace = Pace(rate_s=READS_S, burst=READS_BURST)
        self._ask_at: float | None = None
        """When those in line may be asked about; None: nobody is in line."""

        self.unread = 0
        """Settings that were heard of, and that this version cannot read."""

    def __len__(self) -> int:
        return len(self._known)

    def strategy_of(self, now: float, queue: str) -> Strategy:
        """Return a queue's strategy as it is known now, and keep it known while this is asked. O(1)."""
        settings = self._settings_of(now, queue)
        return DEFAULT if settings is None else settings.strategy

    def weighing_of(self, now: float, queue: str) -> Weighing:
        """Return a queue's weights as they are known now, and keep them known while this is asked. O(1)."""
        settings = self._settings_of(now, queue)
        return () if settings is None else settings.weights

    def _settings_of(self, now: float, queue: str) -> QueueSettings | None:
        known = self._use(now, queue)
        if now < known.asked_at + REFRESH_S:
            if not self._is_awaited(queue, known):
                self._arm(now, queue)
        elif not (known.asked or queue in self._old):
            self._refresh.cancel(queue)
            (self._old if known.asked_at > float("-inf") else self._new)[queue] = None
            self._ask_at = now if self._ask_at is None else self._ask_at
        return known.settings

    def known(self, now: float, queue: str) -> Strategy | None:
        """Return what `strategy_of` does; None where that is but the default, as nothing was heard of the queue yet."""
        strategy = self.strategy_of(now, queue)
        known = self._known[queue]
        return strategy if known.is_heard or known.settings is not None else None

    def settings(self) -> list[QueueSettings]:
        """Return all that is known to be set for queues that were asked about here. O(queues)."""
        return [known.settings for known in self._known.values() if known.settings is not None]

    # What is heard.

    def learn(self, now: float, queue: str, settings: QueueSettings | None) -> None:
        """Take what a majority was found to hold of a queue, by a command here; one that was set later here stays."""
        known = self._known.pop(queue, None) or _Known(None, float("-inf"))
        self._known[queue] = known
        self._bound()
        known.settings, known.asked_at = _later(known.settings, settings), now
        known.is_heard = True
        if self._is_awaited(queue, known):
            self._await_no_more(queue, known)  # what is under way may tell what was before
            self._arm(now, queue)

    def handle_changed(self, key: bytes, record: Record) -> None:
        """Take what this node's own voter stores of a register. It may not be chosen: a majority is asked all the same."""
        if not is_queue_key(key) or record.value is None:
            return
        try:
            settings = decode(record.value.body)
        except DecodeError:
            return  # counted where a majority is found to hold it
        known = self._known.get(settings.queue)
        if known is not None and key == queue_key(settings.queue):
            known.settings = _later(known.settings, settings)

    def handle_done(self, now: float, done: Done) -> None:
        """Take the end of a question whose tag begins with `BOOK`; one that nobody waits for is dropped."""
        assert isinstance(done.tag, tuple)
        queue = self._asked.pop(done.tag[1], None)
        if queue is None:
            return
        known = self._known[queue]
        known.asked = 0
        if isinstance(done.outcome, Seen):
            known.is_heard = True
            # This voter may have stored a later one since the others answered; of as many changes the majority's counts.
            known.settings = _later(self._own(queue), self._read(queue, done.outcome.value))
        self._arm(now, queue)

    # What is to be done.

    def ask_due(self, now: float) -> bool:
        """Ask about what is due, as far as the pace allows; return whether anything was asked. Cheap while nothing is."""
        due = self.next_timeout()
        if due is None or now < due:
            return False
        for queue in self._refresh.take_due(now):
            if now < self._known[queue].used_at + IN_USE_S:
                self._old[queue] = None
        self._ask_at = None
        last = self._last
        for line in (self._new, self._old):
            while line:
                if not self._pace.allows(now):
                    self._ask_at = self._pace.next_at(now)
                    return self._last > last
                queue = next(iter(line))
                del line[queue]
                self._last += 1
                known = self._known[queue]
                known.asked, known.asked_at = self._last, now
                self._asked[self._last] = queue
                key = queue_key(queue)
                self._registers.read(now, key, (BOOK, self._last), READ_S)
        return self._last > last

    def next_timeout(self) -> float | None:
        """Return when `ask_due` has something to do, or None."""
        return self._refresh.next_deadline() if self._ask_at is None else self._ask_at

    def check_invariants(self) -> None:
        """Raise AssertionError if a queue is awaited twice, or what is awaited is not known. O(queues)."""
        assert len(self._known) <= QUEUES_MAX
        lines = [*self._refresh, *self._new, *self._old, *self._asked.values()]
        assert len(set(lines)) == len(lines), lines
        assert set(lines) <= self._known.keys()
        assert (self._ask_at is not None) == bool(self._new or self._old)
        assert {queue: number for number, queue in self._asked.items()} == {
            queue: known.asked for queue, known in self._known.items() if known.asked
        }

    # Inside.

    def _use(self, now: float, queue: str) -> _Known:
        known = self._known.pop(queue, None) or _Known(self._own(queue), now)
        known.used_at = now
        self._known[queue] = known
        self._bound()
        return known

    def _bound(self) -> None:
        """Forget whom nobody asked about for longest, if there are too many."""
        if len(self._known) <= QUEUES_MAX:
            return
        queue = next(iter(self._known))
        known = self._known.pop(queue)
        self._await_no_more(queue, known)

    def _is_awaited(self, queue: str, known: _Known) -> bool:
        lines = (self._refresh, self._new, self._old)
        return known.asked > 0 or any(queue in line for line in lines)

    def _await_no_more(self, queue: str, known: _Known) -> None:
        self._asked.pop(known.asked, None)
        known.asked = 0
        self._refresh.cancel(queue)
        self._new.pop(queue, None)
        self._old.pop(queue, None)
        if not (self._new or self._old):
            self._ask_at = None

    def _arm(self, now: float, queue: str) -> None:
        self._refresh.set(queue, now + REFRESH_S * self._rng.uniform(0.75, 1.0))

    def _own(self, queue: str) -> QueueSettings | None:
        """Return what this node's own voter holds of a queue, which may not be chosen; most vote on few."""
        return self._read(queue, self._registers.voter.record(queue_key(queue)).value)

    def _read(self, queue: str, value: Value | None) -> QueueSettings | None:
        try:
            return None if value is None else of_value(queue, value)
        except DecodeError:
            self.unread += 1
            return None


def _later(one: QueueSettings | None, other: QueueSettings | None) -> QueueSettings | None:
    """Return the later of two settings; the second, if neither is."""
    if one is None or other is None:
        return other or one
    return one if one.count > other.count else other
