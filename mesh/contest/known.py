"""What a node knows of another beside what that one declares: how far it is, and how fresh its vitals are.

Source: our own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from mesh.core.ids import NodeId

AGE_S_MAX: Final = 6_553.5
"""What a call can say."""


class Known(NamedTuple):
    """Of one member, as measured here. None: it was not measured yet."""

    rtt_s: float | None = None
    """The smoothed round trip."""

    rtt_high_s: float | None = None
    """What next to none exceeds: the smoothed one and four mean deviations."""

    heard_at: float | None = None
    """When its vitals came in last, by this node's clock."""

    def age_s(self, now: float) -> float:
        """Return how old its vitals are; those that never came are as old as can be."""
        return AGE_S_MAX if self.heard_at is None else min(max(0.0, now - self.heard_at), AGE_S_MAX)


KnownOf: TypeAlias = Callable[[NodeId], Known]


def unknown(_node_id: NodeId) -> Known:
    """Know nothing of anybody."""
    return Known()
