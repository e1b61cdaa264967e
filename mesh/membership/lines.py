"""Lifelines, both ends: this node's own, and those that it keeps for others, with what their end means."""

from __future__ import annotations

import random

from mesh.core.ids import NodeId
from mesh.core.lines import HungUp, LineEvent
from mesh.membership.evidence import Evidence
from mesh.membership.gossip import Gossip
from mesh.membership.identity import Identity
from mesh.membership.lifelines import Lifelines
from mesh.membership.observers import Observers
from mesh.membership.outbox import Outbox
from mesh.membership.profile import SwimConfig
from mesh.membership.rumours import Rumours
from mesh.membership.table import MemberTable
from mesh.wire.swim_messages import Suspect


class Lines:
    """`own` are this node's lifelines, `evidence` is what it makes of the others'."""

    def __init__(
        self,
        *,
        config: SwimConfig,
        identity: Identity,
        table: MemberTable,
        outbox: Outbox,
        rumours: Rumours,
        gossip: Gossip,
        observers: Observers,
        rng: random.Random,
    ) -> None:
        self._rumours = rumours
        self.own = Lifelines(
            count=config.lifeguard.lifelines,
            identity=identity,
            table=table,
            observers=observers,
            outbox=outbox,
            rng=rng,
        )
        self.evidence = Evidence(
            config=config,
            identity=identity,
            table=table,
            outbox=outbox,
            rumours=rumours,
            gossip=gossip,
        )

    def handle(self, now: float, event: LineEvent) -> None:
        """Take what the driver reports of a stream that is kept."""
        if isinstance(event, HungUp):
            self.evidence.on_hang_up(event.source)
        else:
            self.own.handle(now, event)

    def on_suspect(self, now: float, sender: NodeId, message: Suspect) -> None:
        """Take somebody's suspicion, and what was seen beside silence."""
        self._rumours.on_suspect(now, sender, message)
        self.evidence.on_suspect(now, message)

    def follow(self, now: float) -> None:
        """Follow the members as they come and go."""
        self.own.follow(now)
        self.evidence.follow()
