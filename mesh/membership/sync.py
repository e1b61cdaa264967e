"""Anti-entropy: two members make sure, now and then, that they know the same.

    A: SyncRoot(one hash)        B: SyncSame                    the usual case: a few dozen bytes
                                 B: SyncBuckets(64 hashes)      they differ
    A: SyncOffer(what A knows in the buckets that differ)
                                 B: SyncDelta(what B knows better); both merge

It repairs what gossip missed, and is how a stranger, or a member that was thought dead, is met. Every
ping carries 16 bits of the sender's hash, so whoever missed some news notices within about a period;
the exchange with a random member every sync interval is the net below. It is one for the failure detector,
too: a member that died together with all its observers may be one whom nobody else pings.

Source: anti-entropy repairs gossip [Demers §1.3]; hashing before exchanging is our own choice.
"""

from __future__ import annotations

import random
from collections.abc import Hashable
from typing import Final

from mesh.core.address import Address
from mesh.core.ids import NO_NODE, NodeId
from mesh.errors import DecodeError
from mesh.membership.digest import bucket_hashes, bucket_of, differing, pack_hashes
from mesh.membership.dissemination import Dissemination
from mesh.membership.member import Member
from mesh.membership.merging import Merging
from mesh.membership.outbox import Outbox
from mesh.membership.paging import page
from mesh.membership.profile import SwimConfig
from mesh.membership.rumours import Rumours
from mesh.membership.table import MemberTable
from mesh.wire.records import Standing, State
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
        news: Dissemination,
        outbox: Outbox,
        rng: random.Random,
    ) -> None:
        self._config = config
        self._table = table
        self._merging = Merging(config=config, table=table, rumours=rumours, news=news)
        self._outbox = outbox
        self._rng = rng
        self._deadline: float | None = None
        self._open: dict[Address, NodeId] = {}  # with whom, or NO_NODE if that is not known
        self.dropped = 0
        """Exchanges that were wished for while too many were under way."""

        self._compared_at = float("-inf")

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
        """Start the periodic exchange if it is due, without the tombstones that have run out."""
        if self._deadline is None or now < self._deadline:
            return
        self.start(now)
        for node_id in self._table.tombstones.expired(now, self._config.forgotten_retention_s):
            self._table.remove(node_id)
        for member in self._table.choose(self._rng, 1):
            self.begin(member.address, member.node_id)

    def meet(self, now: float, sender: NodeId, source: Address) -> None:
        """Compare notes with somebody who speaks but is unknown or thought gone."""
        member = self._table.get(sender)
        if member is not None:
            is_leaving = now - member.since < 2 * self._config.leave_linger_s
            if member.is_living or (member.state is State.LEFT and is_leaving):
                return
        self.begin(source)

    def begin(self, address: Address, node_id: NodeId = NO_NODE) -> None:
        """Start an exchange with whoever is at `address`, unless one is under way or too many are."""
        if address in self._open:
            return
        if len(self._open) >= SYNCS_MAX:
            self.dropped += 1
            return
        self._open[address] = node_id
        root = SyncRoot(self._root)
        self._outbox.ask(address, root, ("sync", address, 1), self._config.exchange_timeout_s)

    def compare(self, now: float, member: Member, view: int) -> None:
        """Take the view of a living member that pinged; make up the difference, once a period at most."""
        if view in {0, self._table.view_digest}:
            return
        if now - self._compared_at >= self._config.probe_interval_s:
            self._compared_at = now
            self.begin(member.address)

    def on_root(self, message: SyncRoot) -> SyncSame | SyncBuckets:
        """Answer the first step."""
        if message.root == self._root:
            return SyncSame()
        return SyncBuckets(pack_hashes(bucket_hashes(self._table)))

    def on_offer(self, now: float, sender: NodeId, message: SyncOffer) -> SyncDelta:
        """Answer the second step with what is known better here, then merge what came."""
        theirs = {standing.subject.node_id: standing for standing in message.members}
        delta = [
            member.standing(now)
            for member in self._in_buckets(message.buckets)
            if _is_news(member, theirs.get(member.node_id))
        ]
        self._merging.merge(now, sender, message.members)
        return SyncDelta(page(delta))

    def handle_reply(self, now: float, sender: NodeId, tag: Hashable, reply: object) -> NodeId:
        """Go on with an exchange, or end it; anything but the expected reply ends it.

        Returns:
            The member that was chosen for the exchange and gave no answer; NO_NODE: there is none.
        """
        address = tag[1] if isinstance(tag, tuple) else None
        if not isinstance(address, Address):
            return NO_NODE
        if isinstance(reply, SyncBuckets) and tag == ("sync", address, 1):
            try:
                buckets = differing(bucket_hashes(self._table), reply.hashes)
            except DecodeError:
                buckets = ()
            if buckets:
                members = page([m.standing(now) for m in self._in_buckets(buckets)])
                offer, timeout_s = SyncOffer(buckets, members), self._config.exchange_timeout_s
                self._outbox.ask(address, offer, ("sync", address, 2), timeout_s)
                return NO_NODE
        if isinstance(reply, SyncDelta):
            self._merging.merge(now, sender, reply.members)
        asked = self._open.pop(address, NO_NODE)
        return asked if isinstance(reply, Exception) else NO_NODE

    @property
    def _root(self) -> int:
        """One hash of all that is compared."""
        return self._table.view_hash ^ self._table.tombstones.hash

    def _in_buckets(self, buckets: tuple[int, ...]) -> list[Member]:
        """Return the members of these buckets, and all that have left: no digest shows a missed farewell.

        A missed forgetting it does show: the forgotten are compared like the living.
        """
        wanted = set(buckets)
        return [
            member
            for member in self._table
            if member.state is State.LEFT or bucket_of(member.node_id) in wanted
        ]


def _is_news(member: Member, theirs: Standing | None) -> bool:
    """Say whether this node knows a member better than the other side does."""
    if theirs is None:
        return member.is_living or member.state in {State.LEFT, State.FORGOTTEN}
    is_word_later = member.boot == theirs.boot and (
        member.card.incarnation > theirs.subject.incarnation
    )
    return member.rank > theirs.rank or is_word_later
