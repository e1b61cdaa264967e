"""The dead are tried again: a partition must heal by itself, however long it lasted.

Every `reconnect_interval_s` a node may ping one dead member, with the share of the mesh's tries that
is its own: with few dead, the mesh together tries each about once per interval; with half of the
mesh gone, every node tries one per interval. The ping carries the verdict, so that whoever is still
there refutes it.

The latest of the dead are tried for ever, and so remembered for ever; the others, and those that left,
are forgotten in time. Members of the last session that were not met in this one are tried like the dead: the
mesh may have restarted in two halves. Of them no more is known than where they were.
"""

from __future__ import annotations

import random
from typing import Final

from mesh.core.ids import NodeId
from mesh.core.known import KnownMember
from mesh.membership.member import Member
from mesh.membership.profile import SwimConfig
from mesh.membership.remembered import Remembered
from mesh.membership.table import MemberTable
from mesh.wire.records import State

LATELY: Final = 20
HASTE: Final = 3
"""Who died within so many pause tolerances is tried so many times as often: it may be back any moment."""


class Reconnect:
    """Chooses which dead member to try, and which gone member to forget."""

    def __init__(
        self,
        *,
        config: SwimConfig,
        table: MemberTable,
        rng: random.Random,
        remembered: Remembered,
    ) -> None:
        self._config = config
        self._remembered = remembered
        self._table = table
        self._rng = rng
        self._deadline: float | None = None

    def next_deadline(self) -> float | None:
        """Return when the next try is due; None while nobody is gone."""
        return self._deadline

    def arm(self, now: float) -> None:
        """Begin to try, if anybody is gone and no try is due yet."""
        if self._deadline is None and (self._table.gone or len(self._remembered)):
            jitter = 0.5 + self._rng.random()
            self._deadline = now + jitter * self._config.reconnect_interval_s

    def stop(self) -> None:
        """Try no more."""
        self._deadline = None

    def handle_timeout(self, now: float) -> tuple[Member | KnownMember | None, list[NodeId]]:
        """Return whom to try now, and whom to forget. Neither is done here."""
        if self._deadline is None or now < self._deadline:
            return None, []
        self._deadline = None
        gone = [m for m in map(self._table.get, self._table.gone) if m is not None]
        all_dead = [m for m in gone if m.state is State.DEAD]  # the latest first
        dead = all_dead[: self._config.reconnect_members_max]
        may_go = all_dead[self._config.reconnect_members_max :]
        may_go += [m for m in gone if m.state is not State.DEAD]
        forgotten = [m.node_id for m in may_go if now - m.since > self._retention_s(m)]
        lately = sum(now - m.since < LATELY * self._config.pause_tolerance_s for m in dead)
        unmet = self._remembered.unmet()[: self._config.reconnect_members_max - len(dead)]
        tried: list[Member | KnownMember] = [*dead, *unmet]
        share = (len(tried) + (HASTE - 1) * lately) / self._table.size
        chosen = self._rng.choice(tried) if tried and self._rng.random() < share else None
        return chosen, forgotten

    def _retention_s(self, member: Member) -> float:
        config = self._config
        return config.left_retention_s if member.state is State.LEFT else config.dead_retention_s
