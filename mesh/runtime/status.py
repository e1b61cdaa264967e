"""What this process adds to the node's own view: its pid, its uptime, and what passed its sockets."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mesh.node.view import View
from mesh.runtime.clock import Clock


class Status:
    """Gathers the counters of the sockets with the node's view. Nothing is kept but the start."""

    def __init__(
        self,
        make_view: Callable[[float], View],
        clock: Clock,
        counters: Sequence[Mapping[str, int]],
        facts: Mapping[str, Any],
        more: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        """`facts` stay as they are; `more` gives those that change."""
        self._make_view = make_view
        self._clock = clock
        self._counters = counters
        self._facts = facts
        self._more = more
        self._started_at = clock()

    def members(self) -> list[dict[str, Any]]:
        """Return the answer to `members`."""
        return self._make_view(self._clock()).members

    def is_looking(self) -> bool:
        """Say whether members may still say how busy they are."""
        return self._make_view(self._clock()).is_looking

    def node(self) -> dict[str, Any]:
        """Return the answer to `status`."""
        return self._node(self._make_view(self._clock()))

    def view_json(self, rates: Mapping[str, float]) -> dict[str, Any]:
        """Return one view of the stream of views. O(members + tasks and contests shown)."""
        view = self._make_view(self._clock())
        return {
            "node": self._node(view),
            "members": view.members,
            "tasks": view.tasks,
            "task_counts": view.task_counts,
            "running": view.running,
            "contests": view.contests,
            "at": time.time(),
            "rates": dict(rates),
        }

    def _node(self, view: View) -> dict[str, Any]:
        counts = self._sums()
        node = view.node
        traffic = self.totals()
        others = {
            name: count for name, count in counts.items() if name not in traffic and count > 0
        }
        return {
            **node,
            **self._facts,
            **self._more(),
            "counters": {**node["counters"], **others},
            "pid": os.getpid(),
            "uptime_s": round(self._clock() - self._started_at, 3),
            "sent": _direction(traffic, "sent_"),
            "received": _direction(traffic, "received_"),
        }

    def totals(self) -> dict[str, int]:
        """Return what was sent and received since the start: sent_datagrams, received_frame_bytes, …"""
        sums = self._sums()
        return {name: sums[name] for name in sums if name.startswith(("sent_", "received_"))}

    def _sums(self) -> dict[str, int]:
        sums: dict[str, int] = {}
        for counters in self._counters:
            for name, count in counters.items():
                sums[name] = sums.get(name, 0) + count
        return sums


def shown_path(path: Path) -> str:
    """Return a path as text that can be sent: bytes that are no UTF-8 as escapes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _direction(traffic: Mapping[str, int], prefix: str) -> dict[str, int]:
    return {
        name.removeprefix(prefix): count
        for name, count in traffic.items()
        if name.startswith(prefix)
    }
