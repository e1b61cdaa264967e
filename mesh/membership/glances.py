"""A glance at all members: how busy each is, for whoever looks at the mesh just now.

    whoever looks ──Glance──► members that were not heard of for a moment ──Ack──► back, with their vitals

A node hears of the vitals of its observers alone, which answer its pings, so those of all others are as old as the
day. Nobody needs them but who looks: a person at a screen, an emergency member, a hook. They look once a second, and
a large mesh is looked at in parts, those first of whom nothing was heard for longest.

A glance is no ping: nobody is missed for not sending one, and nobody is suspected for not answering.

Source: our own.
"""

from __future__ import annotations

from typing import Final

from mesh.core.ids import NodeId
from mesh.membership.member import Member
from mesh.membership.outbox import Outbox
from mesh.membership.prober import Prober
from mesh.membership.table import MemberTable
from mesh.wire.records import State
from mesh.wire.swim_messages import Glance

FRESH_S: Final = 0.8
"""Who was heard of, or asked, since then is not asked again."""

AT_ONCE: Final = 32
"""So many are asked in one look: two look a second, and a hundred that do cost a member as many datagrams."""

GLANCES_MAX: Final = 256
"""Glances that may be answered yet: as many as a large mesh is asked in some seconds."""

SEQ_MIN: Final = 1 << 31
"""Their numbers are none that a probe has within a lifetime."""

ANSWER_S: Final = 0.25
"""An answer that takes longer is not waited for."""


class Glances:
    """The looks of one node, and its answers to those of others."""

    def __init__(self, table: MemberTable, outbox: Outbox, prober: Prober) -> None:
        self._table = table
        self._outbox = outbox
        self._prober = prober
        self._asked: dict[NodeId, float] = {}
        self._seq = SEQ_MIN

    def look(self, now: float) -> None:
        """Ask members how busy they are. O(members)."""
        living = [self._table.get(node_id) for node_id in self._table.living]
        alive = [one for one in living if one is not None and one.state is State.ALIVE]
        self._asked = {one.node_id: self._asked.get(one.node_id, float("-inf")) for one in alive}
        due = [one for one in alive if now >= self._known_at(one) + FRESH_S]
        for one in sorted(due, key=self._known_at)[:AT_ONCE]:
            self._asked[one.node_id] = now
            self._outbox.send(one.address, Glance(self._number(now, one.node_id)))

    def is_waiting(self, now: float) -> bool:
        """Say whether somebody who was asked may still answer soon. O(members)."""
        return any(
            at > now - ANSWER_S and (member := self._table.get(node_id)) is not None
            and (member.vitals_at is None or member.vitals_at < at)
            for node_id, at in self._asked.items()
        )  # fmt: skip

    def on_glance(self, _now: float, sender: NodeId, message: Glance) -> None:
        """Answer another's look."""
        member = self._table.get(sender)
        if member is not None and member.is_living:
            self._outbox.send(member.address, self._prober.ack(message.seq))

    def _number(self, now: float, node_id: NodeId) -> int:
        """Return the number under which a member is to answer; of too many the oldest is given up."""
        glanced = self._prober.glanced
        self._seq = SEQ_MIN + (self._seq + 1) % SEQ_MIN
        glanced[self._seq] = (node_id, now)
        if len(glanced) > GLANCES_MAX:
            del glanced[next(iter(glanced))]
        return self._seq

    def _known_at(self, member: Member) -> float:
        heard_at = float("-inf") if member.vitals_at is None else member.vitals_at
        return max(heard_at, self._asked[member.node_id])
