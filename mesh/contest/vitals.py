"""Vitals that are fresh enough: whoever holds contests asks to be told, and is told of each change.

    voter that holds contests ──AskVitals, about once a minute, to every member──► Teller there
                              ◄──Vitals: at once, at each change, and once more in case it was lost──┘

What acks say of a member is as old as the last ping of it: minutes, in a large mesh. So a voter asks while it
holds contests, and nobody tells anybody anything where there are none. Who was asked says what changes, so to the
voter its silence means that nothing has: that knowledge does not age, until the question has.

Source: our own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

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
"""A load that has moved by less, in hundredths of all processors, is no change."""

TELL_PAUSE_S: Final = 0.25
"""Changes of the load within such a time are told together."""

TELL_SLOTS_PAUSE_S: Final = 0.02
"""So are those of free slots: one more or less is a whole bucket of fitness, and who has none is called in vain."""

REPEAT_S: Final = 1.0
LISTENERS_MAX: Final = 64


class Told(NamedTuple):
    """What a member said of itself last, and how long its first answer took, in seconds, by the listener's clock."""

    free_slots: int
    load_pct: int
    rtt_s: float | None
    """None: no answer came soon enough to be the first word on a question."""

    until: float
    """It would tell what has changed until then: so long it was asked to."""


Letter: TypeAlias = tuple[NodeId, object]


@dataclass(slots=True)
class _Listener:
    until: float
    told: tuple[int, int] | None = None
    repeats: tuple[int, int] | None = None


class Teller:
    """A member's side: who wants to be told, and what each knows."""

    def __init__(self) -> None:
        self._listeners: dict[NodeId, _Listener] = {}
        self._tell_at: float | None = None
        self._repeat_at: float | None = None
        self._told_at = float("-inf")

    def handle(self, now: float, sender: NodeId, message: AskVitals) -> None:
        """Take that a voter wants to be told, or no more; with too many that do, it is not."""
        self._forget_old(now)
        if not message.seconds:
            self._listeners.pop(sender, None)
        elif sender in self._listeners or len(self._listeners) < LISTENERS_MAX:
            self._listeners[sender] = _Listener(now + message.seconds)
            self._tell_at = now

    def step(self, now: float, free_slots: int, load_pct: int) -> list[Letter]:
        """Take this node's vitals as they are now; return what is to be told. O(listeners), O(1) without."""
        if not self._listeners:
            self._tell_at = self._repeat_at = None  # else a time in the past would be waited for
            return []
        letters: list[Letter] = []
        vitals = (free_slots, min(load_pct, 255))
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

    def _pause_s(self, vitals: tuple[int, int]) -> float | None:
        """Return how long after the last word these are to be told; None: they are no news."""
        others = [one.told for one in self._listeners.values() if _differ(one.told, vitals)]
        if not others:
            return None
        is_of_slots = any(told is None or told[0] != vitals[0] for told in others)
        return TELL_SLOTS_PAUSE_S if is_of_slots else TELL_PAUSE_S

    def _tell(self, now: float, vitals: tuple[int, int]) -> list[Letter]:
        self._tell_at, self._told_at = None, now
        self._forget_old(now)
        told: list[Letter] = []
        for node_id, one in self._listeners.items():
            if _differ(one.told, vitals):
                one.told = one.repeats = vitals
                told.append((node_id, VitalsTold(*vitals)))
        if told:
            self._repeat_at = now + REPEAT_S
        return told

    def _repeat(self, now: float, vitals: tuple[int, int]) -> list[Letter]:
        """Say again what was said last and is still so; what is not any more is told anyway."""
        self._repeat_at = None
        self._forget_old(now)
        again: list[Letter] = []
        for node_id, one in self._listeners.items():
            if one.repeats is not None and not _differ(one.repeats, vitals):
                again.append((node_id, VitalsTold(*one.repeats)))
            one.repeats = None
        return again

    def _forget_old(self, now: float) -> None:
        for node_id in [node_id for node_id, one in self._listeners.items() if now >= one.until]:
            del self._listeners[node_id]


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
        """Take what a member says of itself."""
        asked_at = self._asked.get(sender)
        if asked_at is None:
            return
        known = self._told.get(sender)
        rtt_s = None if known is None else known.rtt_s
        # What comes later may be the repeat of an answer that was lost, or a change.
        if rtt_s is None and now < asked_at + TELL_PAUSE_S:
            rtt_s = now - asked_at
        until = asked_at + ASKED_S
        self._told[sender] = Told(message.free_slots, message.load_pct, rtt_s, until)

    def told(self, now: float, node_id: NodeId) -> Told | None:
        """Return what a member said last, as long as it would say what has changed; None: it was not heard of late."""
        told = self._told.get(node_id)
        return told if told is not None and now < told.until else None

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


def _differ(told: tuple[int, int] | None, vitals: tuple[int, int]) -> bool:
    return told is None or told[0] != vitals[0] or abs(told[1] - vitals[1]) >= TOLD_STEP_PCT
