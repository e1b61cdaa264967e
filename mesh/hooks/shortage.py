"""When a mesh is short of slots, and when the hook for that is to be asked for.

    load  1.0 ┤       ╭──────────╮      ╭───╮
          0.8 ┤──────╭╯──────────╰╮────╭╯───╰╮────────  above without a break for `short_after_s`: short
          0.6 ┤─────╭╯────────────╰────╯─────╰╮───────  below: not short any more
              └─────┴─────┬───────┬────┬──────┴──────►
                     short: asks  waits  asks           each time a cool-down after the latest run

Until the mesh is short, whatever is not above 0.8 is a break, and the clock begins anew: a load that swings about 0.8
is what a full mesh looks like that gets by. Once it is short, a dip that stays above 0.6 does not end it, but the hook is
asked for only while the load is above 0.8 again: a host that was added a moment ago brings the load down a little, and is
no reason for one more. Then it is asked for at once, with no wait anew.

The load is an observation of the moment: where none came for `GAP_S` (the node was stopped) nobody knows what was
meanwhile, and the clock begins anew.

Who is asked is a majority of the hook's voters (`turn.py`): in the whole mesh it runs once a cool-down, whoever asks.

Source: our own.
"""

from __future__ import annotations

import random
from typing import Final

from mesh.placement.demand import HIGH_LOAD, LOW_LOAD

SHORT_ABOVE: Final = HIGH_LOAD
"""A load above this is a shortage, if it lasts. Load: slots in use over slots."""

ENDS_BELOW: Final = LOW_LOAD
"""A load below this ends one."""

SHORT_AFTER_S: Final = 30.0
"""So long the load has to be above `SHORT_ABOVE`: shorter, and every burst of tasks is a shortage; longer, and tasks wait."""

COOL_DOWN_S: Final = 600.0
"""Between two runs of the hook in the whole mesh: as long as a host may take to start, and to take work off the others."""

GAP_S: Final = 5.0
"""An observation holds for so long; observations come every second."""

SPREAD_S: Final = 2.0
"""Nodes that see one shortage ask at a random time within this: who comes later finds that it was run, and asks no more."""


class Shortage:
    """What one node sees of the mesh's load. `step` it every second."""

    def __init__(self, rng: random.Random, *, short_after_s: float = SHORT_AFTER_S) -> None:
        """`rng` is for when this node asks, among others that do."""
        self.is_short = False
        self._rng = rng
        self._short_after_s = short_after_s
        self._above_since: float | None = None
        self._seen_at = float("-inf")
        self._not_before = float("-inf")
        self._is_asking = False

    def step(self, now: float, load: float) -> bool:
        """Take the load as it is now; say whether to ask for the hook. Then nothing more, until `answered` is called."""
        if now > self._seen_at + GAP_S:
            self.is_short, self._above_since = False, None
        self._seen_at = now
        if load < ENDS_BELOW:
            self.is_short = False
        if load <= SHORT_ABOVE:
            self._above_since = None
            return False
        if self._above_since is None:
            self._above_since = now
        if not self.is_short and now >= self._above_since + self._short_after_s:
            self.is_short = True
            self._wait(now, 0.0)
        if not self.is_short or self._is_asking or now < self._not_before:
            return False
        self._is_asking = True
        return True

    def answered(self, now: float, wait_s: float) -> None:
        """Take that this node's question is over; it asks again after `wait_s` at the earliest, if the mesh is short then."""
        self._is_asking = False
        self._wait(now, wait_s)

    def _wait(self, now: float, wait_s: float) -> None:
        until = now + wait_s + self._rng.uniform(0.0, SPREAD_S)
        self._not_before = max(self._not_before, until)
