"""A forgotten member stays away: in no view, as long as it does not run and the forgetting is remembered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mesh.node.config import SwimConfig
from mesh.node.view import View
from mesh.sim.census import Census, Identity
from mesh.sim.checkers import Violation

_CLOCKS = 0.97  # a tombstone is kept by clocks that may be fast


@dataclass(frozen=True, slots=True)
class _Case:
    at_s: float
    identity: Identity
    sessions: int


class Absence:
    """Remembers who was forgotten while it did not run; that it may have to wait until all have heard is the caller's."""

    def __init__(self, census: Census, swim: SwimConfig) -> None:
        self._census = census
        self._lasts_s = _CLOCKS * swim.forgotten_retention_s
        self._cases: list[_Case] = []

    def __len__(self) -> int:
        return len(self._cases)

    def note(self, at_s: float, node_id: str) -> None:
        """Note that somebody forgot this member; one that runs may refute it and is not noted."""
        identity = self._census.identity(node_id)
        if identity is not None and not identity.is_running:
            self._cases.append(_Case(at_s, identity, len(identity.boots)))

    def differences(self, at_s: float, views: Mapping[str, View]) -> list[Violation]:
        """Return where a member is seen that was forgotten, and has not run since."""
        found = []
        for case in self._cases:
            identity = case.identity
            has_run = identity.is_running or len(identity.boots) != case.sessions
            if has_run or at_s - case.at_s >= self._lasts_s:
                continue
            key = f"{identity.node_id:016x}"
            for observer, view in views.items():
                states = [m["state"] for m in view.members if m["node_id"] == key]
                if states:
                    text = f"forgotten {at_s - case.at_s:.1f} s ago, found {states[0]}"
                    found.append(Violation("9f", at_s, observer, identity.name, text))
        return found
