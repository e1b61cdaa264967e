"""What the tasks of a session are told of the node around them: of its members, and of its host.

Source: our own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mesh.contest.known import KnownOf, unknown
from mesh.core.ids import NodeId, format_id
from mesh.placement.live_view import LiveView
from mesh.wire.records import Card


def _none() -> int:
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The node around the tasks: itself, whom it knows, and functions that are asked whenever something is to be known."""

    card: Callable[[], Card]
    """Returns how others see this node; of the same boot always."""

    view: LiveView
    """The members that may get work now."""

    name_of: Callable[[NodeId], str] = format_id
    """Returns what people call a member, be it gone; its id serves where nobody is known by name."""

    known_of: KnownOf = unknown
    """Returns what was measured of another member."""

    busy_pct: Callable[[], int] = _none
    """Returns how busy the processors are that this node may use, in hundredths."""

    lag_ms: Callable[[], int] = _none
    """Returns how late this node's loop runs, smoothed, in milliseconds."""
