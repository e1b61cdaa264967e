"""Lifelines, both ends: this node's own, and those that it keeps for others, with what their end means."""

from __future__ import annotations

import random
from collections.abc import Sequence

from mesh.core.ids import NodeId
from mesh.core.lines import DatagramRefused, HungUp, LineEvent
from mesh.membership.evidence import Evidence
from mesh.membership.identity import Identity
from mesh.membership.lifelines import Lifelines
from mesh.membership.observers import Observers
from mesh.membership.outbox import Outbox
from mesh.membership.profile import SwimConfig
from mesh.membership.rumours import Rumours
from mesh.membership.table import MemberTable
from mesh.membership.testimony import Testimony
from mesh.wire.swim_messages import Dead, Suspect


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
            testimony=Testimony(identity.node_id, table, outbox, rng),
        )

    def handle(self, now: float, event: LineEvent) -> None:
        """Take what the driver reports of a stream that is kept, or of a refused datagram."""
        if isinstance(event, HungUp):
            self.evidence.on_hang_up(now, event.source)
        elif isinstance(event, DatagramRefused):
            self.evidence.on_refused(now, event.address)
        else:
            self.own.handle(now, event)

    def hear(self, now: float, messages: Sequence[object]) -> None:
        """Take the words of several witnesses at once: what they make a crash is a suspicion nowhere first."""
        words = [one for one in messages if type(one) is Suspect and one.seen]
        if len(words) > 1 and len({one.node_id for one in words}) == 1:
            self.evidence.on_suspect(now, *words)

    def on_suspect(self, now: float, sender: NodeId, message: Suspect) -> None:
        """Take somebody's suspicion, and what was seen beside silence."""
        self._rumours.on_suspect(now, sender, message)
        self.evidence.on_suspect(now, message)

    def on_dead(self, now: float, sender: NodeId, message: Dead) -> None:
        """Take somebody's verdict; what this node has reason to doubt is a suspicion until it has looked."""
        if not self.evidence.doubts(now, message):
            self._rumours.on_dead(now, sender, message)
            return
        node_id, boot, incarnation = message.node_id, message.boot, message.incarnation
        suspicion = Suspect(node_id, boot, incarnation, message.accuser)
        self._rumours.on_suspect(now, sender, suspicion)

    def next_deadline(self) -> float | None:
        """Return when either end wants to be called next."""
        deadlines = (self.own.next_deadline(), self.evidence.next_deadline())
        return min((at for at in deadlines if at is not None), default=None)

    def handle_timeout(self, now: float) -> None:
        """Do what is due at either end."""
        self.own.handle_timeout(now)
        self.evidence.handle_timeout(now)

    def follow(self, now: float) -> None:
        """Follow the members as they come and go."""
        self.own.follow(now)
        self.evidence.follow(now)
