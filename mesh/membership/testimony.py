"""What witnesses of a crash say, and to whom: a mesh is to hear the word of two at once, in one packet each.

    a witness, the first     ──► tells the other observers, one of which is about to see the same
    one of the first two in rank, who knows of both words ──► tells its half of the mesh both
    who has told its fellows, and no verdict came of it   ──► tells everybody its own

Each packet wakes a node, and waking costs more than reading: a member that is told each word as it is
said is woken twice to believe it once. So the two first make sure of each other, and then share the mesh.
A larger mesh than they can tell themselves is told in part, at random, and by gossip.

Source: our own.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from mesh.core.ids import NodeId
from mesh.membership.member import Member
from mesh.membership.observers import observers_of
from mesh.membership.outbox import Outbox
from mesh.membership.table import MemberTable
from mesh.wire.packet import Packet
from mesh.wire.records import Cause
from mesh.wire.swim_messages import Dead, Seen, Suspect

WITNESSED_MAX: Final = 64
"""A witness of a crash tells so many members itself; they tell the rest."""

SPEAKERS: Final = 2
"""So many observers speak at once, the first in rank."""


class Testimony:
    """Sends the word of witnesses."""

    __slots__ = ("_outbox", "_own_id", "_rng", "_table")

    def __init__(
        self, own_id: NodeId, table: MemberTable, outbox: Outbox, rng: random.Random
    ) -> None:
        self._own_id = own_id
        self._table = table
        self._outbox = outbox
        self._rng = rng

    def tell_fellows(self, member: Member, words: Mapping[NodeId, Seen], count: int) -> None:
        """Tell the other observers of a member, `count` with this one, the first in rank first. O(mesh)."""
        fellows = [one for one in self._ranked(member, count) if one != self._own_id]
        self._send(fellows, member, words)

    def tell_words(self, member: Member, words: Mapping[NodeId, Seen]) -> None:
        """Tell the half that is this node's to tell, if both who are first in rank have spoken; else everybody.

        The halves are whole where both see the same members living; whoever falls between them hears it by gossip.
        """
        living = self._table.living
        first = self._ranked(member, SPEAKERS)
        is_shared = self._own_id in first and all(speaker in words for speaker in first)
        if len(living) > WITNESSED_MAX or not is_shared:
            self.tell_all(member, words)
            return
        rank = first.index(self._own_id)
        self._send([one for one in living if one % len(first) == rank], member, words)

    def tell_all(self, member: Member, words: Mapping[NodeId, Seen]) -> None:
        """Tell everybody, up to `WITNESSED_MAX`."""
        chosen = self._table.choose(self._rng, WITNESSED_MAX)
        self._send([one.node_id for one in chosen], member, words)

    def _ranked(self, member: Member, count: int) -> list[NodeId]:
        return observers_of(member.node_id, (*self._table.living, self._own_id), count)

    def _send(self, to: list[NodeId], member: Member, words: Mapping[NodeId, Seen]) -> None:
        node_id, boot, incarnation = member.node_id, member.boot, member.incarnation
        messages = [
            Suspect(node_id, boot, incarnation, accuser, int(seen))
            for accuser, seen in words.items()
        ]
        # The accused is told last: it has refused already, and may still refute.
        for one in sorted(to, key=lambda one: one == node_id):
            told = self._table.get(one)
            if told is not None:
                self._outbox.send(told.address, *messages, about=node_id)


def is_obituary(packet: Packet) -> bool:
    """Say whether a packet was sent for a session that is over: nobody is there to compare notes with."""
    over = packet.messages[0]
    return type(over) is Dead and over.node_id == packet.sender and over.cause is Cause.ENDED
