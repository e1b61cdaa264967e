"""Wrong variants of whole nodes and their hosts: each drops one rule, and has to be seen within some seeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mesh.contest.bidder import BidTurn
from mesh.core.effects import Effect
from mesh.core.ids import NodeId
from mesh.core.stored import Kept
from mesh.node.config import NodeConfig
from mesh.node.node import Node
from mesh.registers.roster import ROSTERS
from mesh.sim.runs import Run, Runs
from mesh.tasks.body import task_key
from mesh.tasks.contending import Contending
from mesh.tasks.effects import Step
from mesh.tasks.entry import Phase
from mesh.tasks.steward import Steward
from mesh.wire.contest_messages import Bid, VitalsTold
from mesh.wire.task_messages import OfferAnswer
from mesh.wire.work_messages import SlotsFree
from tests.sim.guarantees.world import GuaranteesWorld
from tests.sim.tasks.variants import RunsInDoubt, Unchecked

PATIENCE_S: Final = 60.0
"""What is right has ended by then."""


class Doubtless(Node):
    """Freezes nothing in doubt."""

    def start(self, now: float) -> list[Effect]:
        effects = super().start(now)
        self._work._tasks._claiming.__class__ = RunsInDoubt
        return effects


class _StartsOnItsBid(Contending):
    """Takes its own bid for the grant."""

    def _bid(self, now: float, turn: BidTurn) -> list[Step]:
        steps, claiming = super()._bid(now, turn), self._claiming
        assert isinstance(claiming, Unchecked)
        return steps + claiming.take_unasked(now, turn.call.offer.task_id)


class Rash(Node):
    """Runs what it bids for, whatever the quorum says."""

    def start(self, now: float) -> list[Effect]:
        effects = super().start(now)
        tasks = self._work._tasks
        tasks._contending.__class__ = _StartsOnItsBid
        tasks._claiming.__class__ = Unchecked
        return effects


class _TrustsBids(Steward):
    """Takes the first bid for a grant: it waits for no other word, and calls nobody else."""

    def handle_message(
        self, now: float, sender: NodeId, message: OfferAnswer | SlotsFree | Bid | VitalsTold
    ) -> None:
        super().handle_message(now, sender, message)
        key = task_key(message.task_id) if isinstance(message, Bid) else b""
        entry = self._tasks.get(key)
        if entry is not None and entry.asked is not None and key in self._offers.calling:
            self._offers.end(now, key, entry)
            entry.phase = Phase.LEASED  # as if it had seen the claim, of which it hears no more
            self._timers.set(key, now + 3600.0)


class Credulous(Node):
    """Asks nobody else for what somebody has bid for."""

    def start(self, now: float) -> list[Effect]:
        effects = super().start(now)
        self._work._tasks._steward.__class__ = _TrustsBids
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
    "a bidder runs what it bids for": lambda seed: GuaranteesWorld(
        seed, Rash, patience_s=PATIENCE_S
    ),
    "a host has no guardian": _unguarded,
    "a voter forgets at its restart": lambda seed: GuaranteesWorld(
        seed, _forgetful, patience_s=PATIENCE_S
    ),
}

HARMLESS: Final[dict[str, Callable[[int], GuaranteesWorld]]] = {
    "a caller takes a bid for a grant": lambda seed: GuaranteesWorld(
        seed, Credulous, patience_s=PATIENCE_S
    ),
}
"""Wrong, and seen by nobody: the other voters of a task look after it as well."""
