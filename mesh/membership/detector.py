"""The failure detector, put together: this node's health and hearing, its observers, whose turn it is, the probes."""

from __future__ import annotations

import random
from dataclasses import dataclass

from mesh.membership.awareness import Awareness
from mesh.membership.echo import Echo
from mesh.membership.glances import Glances
from mesh.membership.identity import Identity
from mesh.membership.observers import Observers
from mesh.membership.outbox import Outbox
from mesh.membership.probe_order import ProbeOrder
from mesh.membership.prober import Prober
from mesh.membership.profile import SwimConfig
from mesh.membership.table import MemberTable
from mesh.membership.turns import Turns


@dataclass(frozen=True, slots=True)
class Detector:
    """Its parts, which know each other."""

    awareness: Awareness
    echo: Echo
    observers: Observers
    turns: Turns
    prober: Prober
    glances: Glances

    @classmethod
    def build(
        cls,
        *,
        config: SwimConfig,
        identity: Identity,
        table: MemberTable,
        outbox: Outbox,
        rng: random.Random,
    ) -> Detector:
        """Return one for a node."""
        guard = config.lifeguard
        awareness = Awareness(guard.health_max)
        observers = Observers(identity.node_id, guard.observers)
        turns = Turns(
            config=config,
            own_id=identity.node_id,
            table=table,
            observers=observers,
            order=ProbeOrder(rng),
        )
        prober = Prober(
            config=config,
            identity=identity,
            table=table,
            outbox=outbox,
            turns=turns,
            awareness=awareness,
            rng=rng,
        )
        echo = Echo(config=config, identity=identity, outbox=outbox)
        return cls(awareness, echo, observers, turns, prober, Glances(table, outbox, prober))
