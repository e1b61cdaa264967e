"""How much of the mesh is in use: what the members of a pool run, over the slots of those that take any task.

    slots that are in use, everywhere      those of emergency members too, so that what they took over still counts
    ─────────────────────────────────
    slots of the regular members           not those of emergency members

So the load falls when work ends, not when an emergency member takes some of it: else that would withdraw at once,
and come back a moment later. Dedicated members count neither way, as their slots are not for others, unless a pool
has no others; nor does who is unfit or drains: it has nothing to give, and what it runs is over sooner or later. A
pool without any regular slot is in use altogether: what comes can go to nobody else.

A member that takes nothing for a moment, as its host ran short, tells of no free slot: all of its slots count as used.

Source: our own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from mesh.placement.live_view import LiveMember, is_dedicated
from mesh.wire.records import EMERGENCY, Availability
from mesh.wire.register_messages import LEASES_MAX

HIGH_LOAD: Final = 0.8
"""A load above this is high: it is a shortage if it lasts, and emergency members are needed."""

LOW_LOAD: Final = 0.6
"""A load below this is low again: the regular members could bear all of it, and what comes next."""

_OUT: Final = frozenset({Availability.UNFIT, Availability.DRAINING})


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
    able = [one for one in members if one.meta.availability not in _OUT]
    shared = [one for one in able if not is_dedicated(one)]
    regular = [one for one in shared if one.meta.node_class != EMERGENCY]
    counted = shared if regular else able
    return Demand(
        used=sum(max(0, _slots(one) - one.free_slots) for one in counted),
        slots=sum(_slots(one) for one in counted if one.meta.node_class != EMERGENCY),
    )


def _slots(member: LiveMember) -> int:
    """Return how many slots a member has, of those that it declares: each needs a lease."""
    return min(member.meta.slots, LEASES_MAX)
