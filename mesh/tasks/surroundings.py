"""What the tasks of a session are told of the node around them: of its members, and of its host.

Whoever builds the session sets it, before the first call; until then nothing is known.

Source: our own.
"""

from __future__ import annotations

from collections.abc import Callable

from mesh.contest.known import Known, KnownOf, unknown
from mesh.core.ids import NodeId, format_id
from mesh.placement.live_view import LiveView


class Surroundings:
    """The node around the tasks, as functions that are asked whenever something is to be known."""

    name_of: Callable[[NodeId], str] | None = None
    """Returns what people call a member, be it gone; None: its id serves for one that is. Set before the first call."""

    known_of: KnownOf = staticmethod(unknown)
    """Returns what was measured of another member. Set before the first call."""

    busy_pct: Callable[[], int] = staticmethod(lambda: 0)
    """Returns how busy the processors are that this node may use, in hundredths. Set before the first call."""

    lag_ms: Callable[[], int] = staticmethod(lambda: 0)
    """Returns how late this node's loop runs, smoothed, in milliseconds. Set before the first call."""

    def __init__(self, own_id: NodeId, view: LiveView) -> None:
        self._own_id = own_id
        self._view = view

    # What the machines are handed: it looks up what is set by the time it is asked.

    def _known_of(self, node_id: NodeId) -> Known:
        return self.known_of(node_id)

    def _busy_pct(self) -> int:
        return self.busy_pct()

    def _lag_ms(self) -> int:
        return self.lag_ms()

    def _is_member(self, node_id: NodeId) -> bool:
        return node_id == self._own_id or self._view.get(node_id) is not None

    def _name_of(self, node_id: NodeId) -> str:
        if self.name_of is not None:
            return self.name_of(node_id)
        member = self._view.get(node_id)
        return format_id(node_id) if member is None else member.name
