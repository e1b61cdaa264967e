"""Vitals that are fresh enough: whoever holds contests asks to be told, and is told of each change.

    voter that holds contests ──AskVitals, about once a minute, to every member──► Teller there
                              ◄──VitalsTold: at once, at each change, and once more in case it was lost──┘
    owner ──VitalsTold, in the datagrams of its renewals, once a second──► voter

What acks say of a member is as old as the last ping of it: minutes, in a large mesh. So a voter asks while it
holds contests, and nobody tells anybody anything where there are none. Who was asked says what changes, so to the
voter its silence means that nothing has: that knowledge does not age, until the question has. What comes unasked, with
the renewals of whoever works for this voter, ages from when it came.

Source: our own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from mesh.core.ageing import take_aged
from mesh.core.ids import NodeId
from mesh.wire.contest_messages import AskVitals, VitalsTold

ASKED_S: Final = 120
"""So long, in seconds, whoever asked is told."""

ASK_AGAIN_S: Final = 50.0
"""A voter that goes on holding contests asks again after so long: a lost question is made good, twice."""

USED_S: Final = 60.0
"""A voter that has held no contest for so long asks no more."""

ASKED_AT_ONCE: Final = 50
ASK_PAUSE_S: Final = 0.05
"""A large mesh is asked in parts."""

TOLD_STEP_PCT: Final = 4
"""Processors whose use has moved by less, in hundredths, are no news."""

TOLD_STEP_MS: Final = 10
"""A lag that has moved by less, in milliseconds, or by less than half of what it is or was, is none either."""

TELL_PAUSE_S: Final = 0.25
"""Changes of use and lag within such a time are told together."""

TELL_SLOTS_PAUSE_S: Final = 0.02
"""So are those of free slots: one more or less is a whole bucket of fitness, and who has none is called in vain."""

REPEAT_S: Final = 1.0

LISTENERS_MAX: Final = 64
"""Voters that a member tells at once. One more goes by acks: to drop another would break the promise that it is told."""

RIDE_PAUSE_S: Final = 1.0
"""So often vitals ride along with renewals to one voter, at most."""

TOLD_MAX: Final = 16_384
"""Members whose vitals a voter keeps; of more, whoever was heard longest ago is forgotten."""

Vitals: TypeAlias = tuple[int, int, int]
"""Free slots, use of the processors (hundredths) and lag (milliseconds), as `VitalsTold` has them."""


class Told(NamedTuple):
    """What a member said of itself last, and how long its first answer took, in seconds, by the listener's clock."""

    free_slots: int
    busy_pct: int
    lag_ms: int
    rtt_s: float | None
    """None: no answer came soon enough to be the first word on a question."""

    until: float
    """Before this it does not age: so long it promised to tell what changes; without a promise, when it came."""

    def age_s(self, now: float) -> float:
        """Return how old this is, in seconds."""
        return max(0.0, now - self.until)


Letter: TypeAlias = tuple[NodeId, object]


@dataclass(slots=True)
class _Listener:
    until: float
    told: Vitals | None = None
    repeats: Vitals | None = None


class Teller:
    """A member's side: who wants to be told, and what each knows."""

    def __init__(self) -> None:
        self._listeners: dict[NodeId, _Listener] = {}
        self._tell_at: float | None = None
        self._repeat_at: float | None = None
        self._told_at = float("-inf")
        self.dropped = 0
        """Questions that were turned away, with as many listeners as may be."""

    def __len__(self) -> int:
        return len(self._listeners)

    def handle(self, now: float, sender: NodeId, message: AskVitals) -> None:
        """Take that a voter wants to be told, or no more; with too many that do, it is not, and that is counted."""
        self._forget_old(now)
        if not message.seconds:
            self._listeners.pop(sender, None)
        elif sender in self._listeners or len(self._listeners) < LISTENERS_MAX:
            self._listeners[sender] = _Listener(now + message.seconds)
            self._tell_at = now
        else:
            self.dropped += 1

    def step(self, now: float, vitals: Vitals) -> list[Letter]:
        """Take this node's vitals as they are now; return what is to be told. O(listeners), O(1) without."""
        if not self._listeners:
            self._tell_at = self._repeat_at = None  # else a time in the past would be waited for
            return []
        letters: list[Letter] = []
        pause_s = self._pause_s(vitals)
        if pause_s is not None:
            tell_at = max(now, self._told_at + pause_s)
            self._tell_at = tell_at if self._tell_at is None else min(self._tell_at, tell_at)
        if self._tell_at is not None and now >= self._tell_at:
            letters += self._tell(now, vitals)
        if self._repeat_at is not None and now >= self._repeat_at:
            letters += self._repeat(now, vitals)
        return letters

    def next_deadline(self) -> float | None:
        """Return when `step` has something to tell, or None."""
        dues = (self._tell_at, self._repeat_at)
        return min((at for at in dues if at is not None), default=None)

    # Inside.

    def _pause_s(self, vitals: Vitals) -> float | None:
        """Return how long after the last word these are to be told; None: they are no news."""
        others = [one.told for one in self._listeners.values() if _differ(one.told, vitals)]
        if not others:
            return None
        is_of_slots = any(told is None or told[0] != vitals[0] for told in others)
        return TELL_SLOTS_PAUSE_S if is_of_slots else TELL_PAUSE_S

    def _tell(self, now: float, vitals: Vitals) -> list[Letter]:
        self._tell_at, self._told_at = None, now
        self._forget_old(now)
        told: list[Letter] = []
        for node_id, one in self._listeners.items():
            if _differ(one.told, vitals):
                one.told = one.repeats = vitals
                told.append((node_id, VitalsTold(*vitals, int(one.until - now))))
        if told:
            self._repeat_at = now + REPEAT_S
        return told

    def _repeat(self, now: float, vitals: Vitals) -> list[Letter]:
        """Say again what was said last and is still so; what is not any more is told anyway."""
        self._repeat_at = None
        self._forget_old(now)
        again: list[Letter] = []
        for node_id, one in self._listeners.items():
            if one.repeats is not None and not _differ(one.repeats, vitals):
                again.append((node_id, VitalsTold(*one.repeats, int(one.until - now))))
            one.repeats = None
        return again

    def _forget_old(self, now: float) -> None:
        for node_id in [node_id for node_id, one in self._listeners.items() if now >= one.until]:
            del self._listeners[node_id]


class Rides:
    """An owner's side: to which voters its vitals went of late, along with renewals."""

    def __init__(self) -> None:
        self._at: dict[NodeId, float] = {}

    def __len__(self) -> int:
        return len(self._at)

    def is_due(self, now: float, voter: NodeId) -> bool:
        """Say whether vitals are to go along to this voter now, and note that they do. O(1), and what is old goes."""
        take_aged(self._at, now, RIDE_PAUSE_S)
        if voter in self._at:
            return False
        self._at[voter] = now
        return True


class Listener:
    """A voter's side: whom to ask, and what was told."""

    def __init__(self) -> None:
        self._told: dict[NodeId, Told] = {}
        self._asked: dict[NodeId, float] = {}
        self._used_until = float("-inf")
        self._ask_at: float | None = None

    def use(self, now: float) -> None:
        """Note that a contest is held: from now on the members are to be asked."""
        self._used_until = now + USED_S
        if self._ask_at is None:
            self._ask_at = now

    def handle(self, now: float, sender: NodeId, message: VitalsTold) -> None:
        """Take what a member says of itself, asked or not."""
        known = self._told.pop(sender, None)
        rtt_s, until = (None, now) if known is None else (known.rtt_s, known.until)
        asked_at = self._asked.get(sender)
        # What comes later may be the repeat of an answer that was lost, or a change.
        if rtt_s is None and message.seconds and asked_at is not None:
            rtt_s = now - asked_at if now < asked_at + TELL_PAUSE_S else None
        until = max(until, now + message.seconds)
        self._told[sender] = Told(
            message.free_slots, message.busy_pct, message.lag_ms, rtt_s, until
        )
        if len(self._told) > TOLD_MAX:
            self.forget(next(iter(self._told)))

    def told(self, node_id: NodeId) -> Told | None:
        """Return what a member said last, however old that is; None: nothing was heard of it."""
        return self._told.get(node_id)

    def forget(self, node_id: NodeId) -> None:
        """Forget a member that is gone: whoever comes back is asked anew."""
        self._told.pop(node_id, None)
        self._asked.pop(node_id, None)

    def ask(self, now: float, members: Iterable[NodeId]) -> list[Letter]:
        """Ask those of `members` whose time it is, some at once; the rest a moment later. O(members) when due."""
        if self._ask_at is None or now < self._ask_at:
            return []
        if now >= self._used_until:
            self._ask_at = None
            return []
        due = [one for one in members if now >= self._asked.get(one, float("-inf")) + ASK_AGAIN_S]
        for one in due[:ASKED_AT_ONCE]:
            self._asked[one] = now
        pause_s = ASK_PAUSE_S if len(due) > ASKED_AT_ONCE else USED_S / 10
        self._ask_at = now + pause_s
        return [(one, AskVitals(ASKED_S)) for one in due[:ASKED_AT_ONCE]]

    def next_deadline(self) -> float | None:
        """Return when `ask` has somebody to ask, or None."""
        return self._ask_at


def _differ(told: Vitals | None, vitals: Vitals) -> bool:
    if told is None or told[0] != vitals[0] or abs(told[1] - vitals[1]) >= TOLD_STEP_PCT:
        return True
    return abs(told[2] - vitals[2]) >= max(TOLD_STEP_MS, max(told[2], vitals[2]) / 2)
