"""How much of the mesh is in use: what the members of a pool run, over the slots of those that take any task.

    slots that are in use, everywhere      those of emergency members too, so that what they took over still counts
    ─────────────────────────────────
    slots of the regular members           neither dedicated nor emergency ones, nor any that is unfit

So the load falls when work ends, not when an emergency member takes some of it: else that would withdraw at once,
and come back a moment later. Dedicated members count neither way: their slots are not for others.

Source: our own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from mesh.placement.live_view import LiveMember, is_dedicated
from mesh.wire.records import EMERGENCY, Availability

HIGH_LOAD: Final = 0.8
"""A load above this is high: it is a shortage if it lasts, and emergency members are needed."""

LOW_LOAD: Final = 0.6
"""A load below this is low again: the regular members could bear all of it, and what comes next."""


class Demand(NamedTuple):
    """What is in use, and what there is of regular slots."""

    used: int
    slots: int

    @property
    def load(self) -> float:
        """Used over slots, 0 or more; above 1 where emergency members help. Without any regular slot it is 1."""
        return self.used / self.slots if self.slots else 1.0


def demand_of(members: Iterable[LiveMember]) -> Demand:
    """Return the demand on these, which are of one pool. O(members)."""
    used = slots = 0
    for one in members:
        if is_dedicated(one):
            continue
        used += max(0, one.meta.slots - one.free_slots)
        is_unfit = one.meta.availability is Availability.UNFIT
        if one.meta.node_class != EMERGENCY and not is_unfit:
            slots += one.meta.slots
    return Demand(used, slots)
