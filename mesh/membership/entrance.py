"""The way in as one machine: asking to be let in, founding, answering at the door, watching the seeds.

`Swim` hands on what concerns it: replies, resolved seeds, the clock. What becoming a member starts
elsewhere (probing, anti-entropy) is not done here.
"""

from __future__ import annotations

import random
from collections.abc import Hashable
from dataclasses import dataclass

from mesh.core.address import Address
from mesh.core.ids import NO_MESH, MeshId, NodeId
from mesh.membership.founding import Founding
from mesh.membership.gate import Gate
from mesh.membership.identity import Identity
from mesh.membership.joining import Joining
from mesh.membership.outbox import Outbox
from mesh.membership.profile import SwimConfig
from mesh.membership.rumours import Rumours
from mesh.membership.seed_watch import SeedWatch
from mesh.membership.table import MemberTable
from mesh.wire.packet import Packet
from mesh.wire.swim_messages import Join, Welcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What a node's user says about the way in."""

    seeds: tuple[str, ...] = ()
    expect: int = 0
    is_name_given: bool = True


class Entrance:
    """Gets this node into a mesh, and others into this one."""

    def __init__(
        self,
        *,
        config: SwimConfig,
        identity: Identity,
        table: MemberTable,
        outbox: Outbox,
        rumours: Rumours,
        rng: random.Random,
        wishes: Wishes,
    ) -> None:
        seeds = wishes.seeds
        self._identity = identity
        self._rumours = rumours
        self._seed_watch = SeedWatch(
            config=config, identity=identity, table=table, outbox=outbox, rng=rng, seeds=seeds
        )
        self._joining = Joining(
            config=config,
            identity=identity,
            outbox=outbox,
            rng=rng,
            seeds=seeds,
            founding=Founding(wishes.expect, config.join_retry_s),
            table=table,
            is_name_given=wishes.is_name_given,
        )
        self._gate = Gate(identity, table, rumours)

    @property
    def is_seeking(self) -> bool:
        """Say whether this node belongs to no mesh yet."""
        return self._identity.mesh_id == NO_MESH

    def start(self, now: float, *, is_founder: bool) -> None:
        """Found a mesh, return to the one that the data directory names, or ask the seeds."""
        self._joining.start(now, is_founder=is_founder)

    def begin(self, now: float) -> None:
        """This node is a member now."""
        self._seed_watch.start(now)

    def stop(self) -> None:
        """Seek no more."""
        self._joining.stop()
        self._seed_watch.stop()

    def next_deadline(self) -> float | None:
        """Return when this machine wants to be called next."""
        deadlines = (self._joining.next_deadline(), self._seed_watch.next_deadline())
        return min((at for at in deadlines if at is not None), default=None)

    def handle_timeout(self, now: float) -> None:
        """Do what is due."""
        self._joining.handle_timeout(now)
        self._seed_watch.handle_timeout(now)

    def handle_reply(
        self, now: float, sender: NodeId, tag: tuple[Hashable, ...], reply: Packet | Exception
    ) -> bool:
        """Take the reply to a question of this machine; say whether a member has just let this node in."""
        message = reply if isinstance(reply, Exception) else reply.messages[0]
        if tag[0] == "join" and isinstance(message, Welcome) and isinstance(reply, Packet):
            if not self._joining.on_welcome(now, tag, reply.mesh_id, message):
                return False
            self._rumours.welcome(now, message.members)
            return True
        self._joining.handle_reply(now, sender, tag, message)
        return False

    def handle_resolved(
        self, now: float, seed: str, addresses: tuple[Address, ...]
    ) -> list[Address]:
        """Take the addresses of a seed; return those to compare notes with."""
        self._joining.handle_resolved(now, seed, addresses)
        # Before it is done, nobody may be told of this session but by a join.
        return self._seed_watch.strangers(addresses) if self._joining.is_done else []

    def on_join(self, now: float, message: Join, mesh_id: MeshId) -> object:
        """Answer who wants in; `mesh_id` is the asker's."""
        if self.is_seeking:
            return self._joining.on_join(now, message, mesh_id)
        return self._gate.on_join(now, message)

    def try_founding(self, now: float) -> bool:
        """Found if enough have met and it is this node's turn; say whether it did."""
        return self.is_seeking and self._joining.try_founding(now)
