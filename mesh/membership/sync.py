"""Anti-entropy: two members make sure, now and then, that they know the same.

    A: SyncRoot(one hash)        B: SyncSame                    the usual case: a few dozen bytes
                                 B: SyncBuckets(64 hashes)      they differ
    A: SyncOffer(what A knows in the buckets that differ)
                                 B: SyncDelta(what B knows better); both merge

It repairs what gossip missed, and is how a stranger, or a member that was thought dead, is met.

Source: anti-entropy repairs gossip [Demers §1.3]; hashing before exchanging is our own choice.
"""

from __future__ import annotations

import random
from collections.abc import Hashable
from typing import Final

from mesh.core.address import Address
from mesh.core.ids import NodeId
from mesh.errors import DecodeError
from mesh.membership.digest import bucket_hashes, bucket_of, differing, pack_hashes, root_hash
from mesh.membership.member import Member
from mesh.membership.outbox import Outbox
from mesh.membership.profile import SwimConfig
from mesh.membership.rumours import Rumours
from mesh.membership.table import MemberTable
from mesh.wire.records import Standing, State, decode_card
from mesh.wire.swim_messages import (
    SyncBuckets,
    SyncDelta,
    SyncOffer,
    SyncRoot,
    SyncSame,
)

SYNCS_MAX: Final = 4
"""How many exchanges this node has under way at once; further wishes are dropped, another comes."""


class Sync:
    """Starts exchanges, one every sync interval and when somebody unknown is heard, and answers them."""

    def __init__(
        self,
        *,
        config: SwimConfig,
        table: MemberTable,
        rumours: Rumours,
        outbox: Outbox,
        rng: random.Random,
    ) -> None:
        self._config = config
        self._table = table
        self._rumours = rumours
        self._outbox = outbox
        self._rng = rng
        self._deadline: float | None = None
        self._open: dict[Address, None] = {}

    def start(self, now: float) -> None:
        """Begin the periodic exchanges, at a random phase."""
        self._deadline = now + (0.5 + self._rng.random()) * self._config.sync_interval_s

    def stop(self) -> None:
        """Start no more exchanges; those of others are still answered."""
        self._deadline = None

    def next_deadline(self) -> float | None:
        """Return when the next periodic exchange is due."""
        return self._deadline

    def handle_timeout(self, now: float) -> None:
        """Start the periodic exchange if it is due."""
        if self._deadline is None or now < self._deadline:
            return
        self.start(now)
        for member in self._table.choose(self._rng, 1):
            self.begin(member.address)

    def begin(self, address: Address) -> None:
        """Start an exchange with whoever is at `address`, unless one is under way or too many are."""
        if address in self._open or len(self._open) >= SYNCS_MAX:
            return
        self._open[address] = None
        root = root_hash(bucket_hashes(self._table))
        self._outbox.ask(
            address, SyncRoot(root), ("sync", address, 1), self._config.exchange_timeout_s
        )

    def on_root(self, message: SyncRoot) -> SyncSame | SyncBuckets:
        """Answer the first step."""
        hashes = bucket_hashes(self._table)
        if root_hash(hashes) == message.root:
            return SyncSame()
        return SyncBuckets(pack_hashes(hashes))

    def on_offer(self, now: float, sender: NodeId, message: SyncOffer) -> SyncDelta:
        """Answer the second step with what is known better here, then merge what came."""
        theirs = _ranks(message.members)
        delta = [
            member.standing(now)
            for member in self._in_buckets(message.buckets)
            if _is_news(member, theirs.get(member.node_id))
        ]
        self._rumours.merge(now, sender, message.members)
        return SyncDelta(tuple(delta))

    def handle_reply(self, now: float, sender: NodeId, tag: Hashable, reply: object) -> None:
        """Go on with an exchange, or end it; anything but the expected reply ends it."""
        address = tag[1] if isinstance(tag, tuple) else None
        if not isinstance(address, Address):
            return
        if isinstance(reply, SyncBuckets) and tag == ("sync", address, 1):
            try:
                buckets = differing(bucket_hashes(self._table), reply.hashes)
            except DecodeError:
                buckets = ()
            if buckets:
                members = tuple(m.standing(now) for m in self._in_buckets(buckets))
                offer, timeout_s = SyncOffer(buckets, members), self._config.exchange_timeout_s
                self._outbox.ask(address, offer, ("sync", address, 2), timeout_s)
                return
        if isinstance(reply, SyncDelta):
            self._rumours.merge(now, sender, reply.members)
        self._open.pop(address, None)

    def _in_buckets(self, buckets: tuple[int, ...]) -> list[Member]:
        """Return the members of these buckets, and all that have left: no digest shows a missed farewell."""
        wanted = set(buckets)
        return [
            member
            for member in self._table
            if member.state is State.LEFT or bucket_of(member.node_id) in wanted
        ]


def _ranks(members: tuple[Standing, ...]) -> dict[NodeId, tuple[int, int, int, int]]:
    """Return each offered member's rank; broken cards are left out, merging counts them."""
    ranks = {}
    for standing in members:
        try:
            card = decode_card(standing.card)
        except DecodeError:
            continue
        ranks[card.node_id] = (
            standing.boot,
            standing.incarnation,
            int(standing.state),
            card.incarnation,
        )
    return ranks


def _is_news(member: Member, theirs: tuple[int, int, int, int] | None) -> bool:
    """Say whether this node knows a member better than the other side does."""
    if theirs is None:
        return member.is_living or member.state is State.LEFT
    mine = (member.boot, member.incarnation, int(member.state))
    return mine > theirs[:3] or (member.boot == theirs[0] and member.card.incarnation > theirs[3])
