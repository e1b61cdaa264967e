"""The way in as one machine: asking to be let in, founding, answering at the door, looking for who is missing.

`Swim` hands on what concerns it: replies, resolved seeds, the clock, what changed. What becoming a member
starts elsewhere (probing, anti-entropy) is not done here.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable

from mesh.core.address import Address
from mesh.core.effects import Emit, Remember
from mesh.core.events import Event, EventKind
from mesh.core.ids import NO_MESH, MeshId, NodeId
from mesh.membership.alone import Alone
from mesh.membership.conflicts import Conflicts
from mesh.membership.dialback import Dialback
from mesh.membership.founding import Founding
from mesh.membership.gate import Gate
from mesh.membership.identity import Identity
from mesh.membership.joining import Joining
from mesh.membership.member import Change
from mesh.membership.outbox import Outbox
from mesh.membership.profile import SwimConfig
from mesh.membership.remembered import Remembered
from mesh.membership.rumours import Rumours
from mesh.membership.seed_watch import SeedWatch
from mesh.membership.table import MemberTable
from mesh.membership.wishes import Wishes
from mesh.wire.packet import Packet
from mesh.wire.records import Standing, State, decode_card, is_proof
from mesh.wire.swim_messages import Alive, Join, Suspect, Welcome


class Entrance:
    """Gets this node into a mesh, and others into this one. `dialback` is told of acks and asked what it found."""

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
        self._identity = identity
        self._table = table
        self._outbox = outbox
        self._rumours = rumours
        self._seeds = seeds = wishes.seeds
        self.remembered = remembered = Remembered(identity, table, wishes.remembered)
        self._conflicts = Conflicts(identity, table)
        self._alone = Alone(config.join_retry_s)
        self.dialback = Dialback(
            config=config, identity=identity, table=table, outbox=outbox, rng=rng
        )
        self._seed_watch = SeedWatch(
            config=config,
            identity=identity,
            table=table,
            outbox=outbox,
            rng=rng,
            seeds=seeds,
            remembered=remembered,
        )
        self._joining = Joining(
            config=config,
            identity=identity,
            outbox=outbox,
            rng=rng,
            wishes=wishes,
            founding=Founding(wishes.expect, config.join_retry_s),
            table=table,
            remembered=remembered,
        )
        self._gate = Gate(identity, table, rumours)
        self._is_over = False

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

    def stop(self, now: float) -> None:
        """Seek no more, and keep for the next session who is known."""
        self._joining.stop()
        self._seed_watch.stop()
        self.dialback.stop()
        self._alone.stop()
        self._remember(self.remembered.take(now))
        self._is_over = True

    def note(self, now: float, changes: Iterable[Change]) -> None:
        """Take what changed of other members; what was taken before does no harm."""
        for change in changes:
            self.remembered.note(now, change)
            for event in self._conflicts.note(now, change):
                self._outbox.do(Emit(event))
        if self._is_over:
            return
        self._seed_watch.arm(now)
        is_alone = not self._table.living and not self.is_seeking
        is_alone = is_alone and (bool(self._seeds) or self.remembered.has_any)
        self._say(self._alone.look(now, is_alone=is_alone))
        for warning in self.dialback.take_events():
            self._outbox.do(Emit(warning))

    def next_deadline(self) -> float | None:
        """Return when this machine wants to be called next."""
        deadlines = (
            self._joining.next_deadline(),
            self._seed_watch.next_deadline(),
            self.dialback.next_deadline(),
            self._alone.next_deadline(),
            None if self._is_over else self.remembered.next_deadline(),
        )
        return min((at for at in deadlines if at is not None), default=None)

    def handle_timeout(self, now: float) -> Address | None:
        """Do what is due; return an address to compare notes with, if one is."""
        self._joining.handle_timeout(now)
        self.dialback.handle_timeout(now)
        text = self._alone.handle_timeout(now)
        if text:
            self._say(f"{text}; {self._tries()}")
        if not self._is_over:
            self._remember(self.remembered.handle_timeout(now))
        return self._seed_watch.handle_timeout(now)

    def handle_reply(
        self, now: float, sender: NodeId, tag: tuple[Hashable, ...], reply: Packet | Exception
    ) -> bool:
        """Take the reply to a question of this machine; say whether a member has just let this node in."""
        message = reply if isinstance(reply, Exception) else reply.messages[0]
        if tag[0] in {"dial", "reached"}:
            self.dialback.handle_reply(tag, reply)
            return False
        if tag[0] == "join" and isinstance(message, Welcome) and isinstance(reply, Packet):
            if not self._joining.on_welcome(now, tag, reply.mesh_id, message):
                return False
            self._take_over(now, sender, message.members)
            assert isinstance(tag[1], Address)
            self.dialback.entered(now, self._joining.let_in_by, tag[1])
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
        """Answer who wants in, and dial back who was let in; `mesh_id` is the asker's."""
        if self.is_seeking:
            return self._joining.on_join(now, message, mesh_id)
        reply = self._gate.on_join(now, message)
        card = decode_card(message.card)
        if isinstance(reply, Welcome) and reply.known_boot <= card.boot:
            self.dialback.dial(now, card)
        return reply

    def try_founding(self, now: float) -> bool:
        """Found if enough have met and it is this node's turn; say whether it did."""
        return self.is_seeking and self._joining.try_founding(now)

    def _take_over(self, now: float, sender: NodeId, members: tuple[Standing, ...]) -> None:
        """Believe a whole table, but for deaths of members that were met here already: those are suspicions."""
        believed = []
        for standing in members:
            node_id = standing.subject.node_id
            known = self._table.get(node_id)
            is_over = standing.state >= State.DEAD and not is_proof(standing.state, standing.cause)
            if (
                node_id == self._identity.node_id
                or known is None
                or not (is_over and known.is_living)
            ):
                believed.append(standing)
                continue
            suspicion = Suspect(node_id, standing.boot, standing.incarnation, sender)
            self._rumours.on_alive(now, sender, Alive(standing.card))
            self._rumours.on_suspect(now, sender, suspicion)
        self._rumours.welcome(now, tuple(believed))

    def _remember(self, snapshot: Remember | None) -> None:
        if snapshot is not None:
            self._outbox.do(snapshot)

    def _tries(self) -> str:
        """Return whom this node tries, for people."""
        whom = []
        count = len(self.remembered.strangers())
        if count:
            whom.append(f"{count} known from before" if count > 1 else "the one known from before")
        if self._seeds:
            whom.append(f"the seeds {', '.join(self._seeds)}")
        reasons = f" ({self._joining.reasons})" if self._joining.reasons else ""
        return f"tries {' and '.join(whom) or 'nobody'}{reasons}"

    def _say(self, text: str) -> None:
        if text:
            card = self._identity.card
            event = Event(
                kind=EventKind.SEEK, member_id=card.node_id, member=card.name, detail=text
            )
            self._outbox.do(Emit(event))
