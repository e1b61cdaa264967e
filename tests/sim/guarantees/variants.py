"""Wrong variants of whole nodes and their hosts: each drops one rule, and has to be seen within some seeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mesh.core.effects import Effect
from mesh.core.stored import Kept
from mesh.node.config import NodeConfig
from mesh.node.node import Node
from mesh.registers.roster import ROSTERS
from mesh.sim.runs import Run, Runs
from tests.sim.guarantees.world import GuaranteesWorld
from tests.sim.tasks.variants import RunsInDoubt

PATIENCE_S: Final = 60.0
"""What is right has ended by then."""


class Doubtless(Node):
    """Freezes nothing in doubt."""

    def start(self, now: float) -> list[Effect]:
        effects = super().start(now)
        self._work._tasks._claiming.__class__ = RunsInDoubt
        return effects


class Unguarded(Runs):
    """The processes of hosts that have no guardian: the node alone freezes and kills."""

    def _look(self, run: Run) -> None:
        pass


def _forgetful(config: NodeConfig, seed: int, kept: Kept) -> Node:
    """Make a voter that knows of earlier sessions only that it votes."""
    rosters = [record for record in kept.records if record.key.startswith(ROSTERS)]
    return Node(config, seed, Kept(rosters, kept.numbers))


def _unguarded(seed: int) -> GuaranteesWorld:
    made = GuaranteesWorld(seed, patience_s=PATIENCE_S)
    made.world.runs.__class__ = Unguarded
    return made


WRONG: Final[dict[str, Callable[[int], GuaranteesWorld]]] = {
    "an owner does not freeze in doubt": lambda seed: GuaranteesWorld(
        seed, Doubtless, patience_s=PATIENCE_S
    ),
    "a host has no guardian": _unguarded,
    "a voter forgets at its restart": lambda seed: GuaranteesWorld(
        seed, _forgetful, patience_s=PATIENCE_S
    ),
}
