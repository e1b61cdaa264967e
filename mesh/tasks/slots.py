"""This node's slots: who may have the next one.

Nothing is queued here: a voter whose offer was declined keeps its task, and this node notes only that
it waits, one entry a voter, first come first served. When a slot is free the first in the line is
told, and for a moment the slot is held for it; if it does not come, the next one is told as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

from mesh.core.ids import NodeId
from mesh.tasks.config import TasksConfig

Needs: TypeAlias = tuple[tuple[str, int], ...]


@dataclass(slots=True)
class Slots:
    """Slots, declared amounts, and the line of voters that wait.

    Invariant: nobody both waits and is told; 0 <= free; no more are told than there are slots that no run holds;
    no amount in use exceeds what is declared.
    """

    slots: int
    offers: dict[str, int]
    config: TasksConfig
    used: int = 0
    in_use: dict[str, int] = field(default_factory=dict)
    waiting: dict[NodeId, None] = field(default_factory=dict)
    told: dict[NodeId, float] = field(default_factory=dict)  # until when the slot is held
    is_closed: bool = False  # nobody gets one just now
    turned_away: int = 0  # voters that found the line full

    @property
    def free(self) -> int:
        """Slots that no run holds, and that may be had."""
        return 0 if self.is_closed else max(0, self.slots - self.used)

    def can_ever_run(self, needs: Needs) -> bool:
        """Say whether these needs are within what is declared."""
        return self.slots > 0 and all(self.offers.get(name, 0) >= n for name, n in needs)

    def can_run_now(self, needs: Needs, voter: NodeId) -> bool:
        """Say whether a slot is free that is held for nobody else, and enough of every amount."""
        held = len(self.told) - (voter in self.told)
        return self.free > held and all(
            self.offers.get(name, 0) - self.in_use.get(name, 0) >= n for name, n in needs
        )

    def take(self, needs: Needs) -> None:
        """Give a claim its slot and amounts."""
        self.used += 1
        for name, amount in needs:
            self.in_use[name] = self.in_use.get(name, 0) + amount

    def give_back(self, needs: Needs) -> None:
        """Take a claim's slot and amounts back."""
        self.used -= 1
        for name, amount in needs:
            self.in_use[name] -= amount

    def free_for(self, voter: NodeId) -> int:
        """Return how many slots this voter may try for: those that nobody waits for before it. O(free slots).

        Who was told has one at least, which is held for it: those behind it take nothing from that.
        """
        if voter in self.told:
            return max(0, self.free - (len(self.told) - 1))
        unheld = max(0, self.free - len(self.told))
        line = enumerate(islice(self.waiting, unheld))
        ahead = next((place for place, other in line if other == voter), len(self.waiting))
        return max(0, unheld - ahead)

    def note(self, voter: NodeId) -> None:
        """Put a voter at the end of the line, if it is not in it; a full line stays as it is."""
        self.told.pop(voter, None)
        if voter in self.waiting or len(self.waiting) < self.config.waiters_max:
            self.waiting.setdefault(voter)
        else:
            self.turned_away += 1

    def forget(self, voters: Iterable[NodeId]) -> None:
        """Take voters out of the line."""
        for voter in voters:
            self.waiting.pop(voter, None)
            self.told.pop(voter, None)

    def take_told(self, now: float) -> list[NodeId]:
        """Return who is to be told of a free slot now, first in line first, and hold one for each."""
        for voter in [voter for voter, until in self.told.items() if until <= now]:
            del self.told[voter]
        found = []
        while self.waiting and len(self.told) < self.free:
            voter = next(iter(self.waiting))
            del self.waiting[voter]
            self.told[voter] = now + self.config.tell_pause_s
            found.append(voter)
        return found

    def next_timeout(self) -> float | None:
        """Return when the earliest hold ends: each ends once, and its slot is anybody's, whether others wait or not."""
        return min(self.told.values(), default=None)

    def check_invariants(self) -> None:
        """Raise AssertionError if a count is out of bounds."""
        assert 0 <= self.used <= self.slots
        assert all(0 <= n <= self.offers.get(name, 0) for name, n in self.in_use.items())
        assert not any(voter in self.told for voter in self.waiting)
        assert len(self.told) <= self.slots - self.used
