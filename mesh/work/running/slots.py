"""This node's slots: who may have the next one.

Nothing is queued here: a keeper whose offer was declined keeps its task, and this node notes only that
it waits, one entry a keeper, first come first served. When a slot is free the first in the line is
told, and for a moment the slot is held for it; if it does not come, the next one is told as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mesh.core.ids import NodeId
from mesh.wire.work_messages import Spec
from mesh.work.config import WorkConfig


@dataclass(slots=True)
class Slots:
    """Slots, declared amounts, and the line of keepers that wait.

    Invariant: nobody both waits and is told; 0 <= free; no amount in use exceeds what is declared,
    unless the runs that use it were accepted before.
    """

    slots: int
    offers: dict[str, int]
    config: WorkConfig
    used: int = 0
    in_use: dict[str, int] = field(default_factory=dict)
    waiting: dict[NodeId, None] = field(default_factory=dict)
    told: dict[NodeId, float] = field(default_factory=dict)  # until when the slot is held
    is_closed: bool = False  # nobody gets one just now
    turned_away: int = 0  # keepers that found the line full

    @property
    def free(self) -> int:
        """Slots that no run holds, and that may be had."""
        return 0 if self.is_closed else max(0, self.slots - self.used)

    def can_ever_run(self, spec: Spec) -> bool:
        """Say whether the task's needs are within what is declared."""
        return self.slots > 0 and all(self.offers.get(name, 0) >= n for name, n in spec.needs)

    def can_run_now(self, spec: Spec, keeper: NodeId) -> bool:
        """Say whether a slot is free that is held for nobody else, and enough of every amount."""
        held = len(self.told) - (keeper in self.told)
        return self.free > held and all(
            self.offers.get(name, 0) - self.in_use.get(name, 0) >= n for name, n in spec.needs
        )

    def take(self, spec: Spec) -> None:
        """Give a run its slot and amounts."""
        self.used += 1
        for name, amount in spec.needs:
            self.in_use[name] = self.in_use.get(name, 0) + amount

    def give_back(self, spec: Spec) -> None:
        """Take a run's slot and amounts back."""
        self.used -= 1
        for name, amount in spec.needs:
            self.in_use[name] -= amount

    def free_for(self, keeper: NodeId) -> int:
        """Return how many slots this keeper may try for: those that nobody waits for before it."""
        ahead = (
            len(self.told) + len(self.waiting) - (keeper in self.told) - (keeper in self.waiting)
        )
        return max(0, self.free - ahead)

    def note(self, keeper: NodeId) -> None:
        """Put a keeper at the end of the line, if it is not in it; a full line stays as it is."""
        self.told.pop(keeper, None)
        if keeper in self.waiting or len(self.waiting) < self.config.waiters_max:
            self.waiting.setdefault(keeper)
        else:
            self.turned_away += 1

    def forget(self, keepers: Iterable[NodeId]) -> None:
        """Take keepers out of the line."""
        for keeper in keepers:
            self.waiting.pop(keeper, None)
            self.told.pop(keeper, None)

    def take_told(self, now: float) -> list[NodeId]:
        """Return who is to be told of a free slot now, first in line first, and hold one for each."""
        for keeper in [keeper for keeper, until in self.told.items() if until <= now]:
            del self.told[keeper]
        found = []
        while self.waiting and len(self.told) < self.free:
            keeper = next(iter(self.waiting))
            del self.waiting[keeper]
            self.told[keeper] = now + self.config.tell_pause_s
            found.append(keeper)
        return found

    def next_timeout(self) -> float | None:
        """Return when the earliest hold ends, if somebody still waits."""
        return min(self.told.values()) if self.told and self.waiting else None

    def check_invariants(self) -> None:
        """Raise AssertionError if a count is out of bounds."""
        assert 0 <= self.used <= self.slots
        assert all(0 <= n <= self.offers.get(name, 0) for name, n in self.in_use.items())
        assert not any(keeper in self.told for keeper in self.waiting)
