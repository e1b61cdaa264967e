"""From membership to placement: who may get work, kept in step with who is alive.

A suspect gets no new work at once, but keeps what it has. So do the dead: only what proves that a session runs
nothing any more, a farewell, its end or a later session, ends its work before its leases do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mesh.core.ids import NodeId
from mesh.membership.identity import Identity
from mesh.membership.member import Change, Member
from mesh.membership.table import MemberTable
from mesh.placement.live_view import LiveMember, LiveView
from mesh.wire.records import State, Vitals, is_proof


@dataclass(frozen=True, slots=True)
class News:
    """What a change means for work: the last session of a member that is proved to run nothing any more, if any."""

    node_id: NodeId
    over_boot: int | None


class Roll:
    """Keeps the live view. Its entries are the alive members of the table, and this node while it is one."""

    def __init__(self, table: MemberTable, live: LiveView) -> None:
        self._table = table
        self._live = live

    def apply(self, changes: list[Change]) -> list[News]:
        """Put and drop members, all of them first, and return what each change means for work.

        So whoever gives away the work of one that died asks none of those that died with it.
        """
        news = []
        for change in changes:
            node_id = change.card.node_id
            member = self._table.get(node_id)
            is_alive = member is not None and member.state is State.ALIVE
            if member is not None and is_alive:
                self._live.put(_live(member, self._live.get(node_id)))
            else:
                self._live.drop(node_id)
            news.append(News(node_id, _over(change)))
        return news

    def refresh_vitals(self, heard: list[NodeId]) -> list[NodeId]:
        """Take the vitals of members just heard; return whose slots have become free."""
        freed = []
        for node_id in heard:
            entry, member = self._live.get(node_id), self._table.get(node_id)
            if entry is None or member is None or member.vitals is None:
                continue
            free_slots, busy_pct = member.vitals.free_slots, member.vitals.busy_pct
            if (entry.free_slots, entry.busy_pct) != (free_slots, busy_pct):
                self._live.put(replace(entry, free_slots=free_slots, busy_pct=busy_pct))
                if free_slots > entry.free_slots:
                    freed.append(node_id)
        return freed

    def refresh_self(self, identity: Identity, free_slots: int) -> bool:
        """Keep this node's own entry: it is a candidate like any other. Say whether it has just become one."""
        own = self._table.get(identity.node_id)
        if own is None or own.state is not State.ALIVE:
            self._live.drop(identity.node_id)
            return False
        entry = self._live.get(identity.node_id)
        wanted = (free_slots, own.boot, own.name, own.card.meta)
        if entry is None or (entry.free_slots, entry.boot, entry.name, entry.meta) != wanted:
            self._live.put(replace(_live(own), free_slots=free_slots))
        return entry is None

    def check_invariants(self) -> None:
        """Raise AssertionError if the live view is not the table's alive members."""
        alive = {member.node_id for member in self._table if member.state is State.ALIVE}
        assert {member.node_id for member in self._live.members()} == alive


def _live(member: Member, before: LiveMember | None = None) -> LiveMember:
    """Return a member's entry. Of this node the table keeps no vitals: they are those `before`."""
    vitals = member.vitals or Vitals(member.card.meta.slots, 0, 0)
    if member.vitals is None and before is not None and before.boot == member.boot:
        vitals = Vitals(before.free_slots, 0, before.busy_pct)
    return LiveMember(
        node_id=member.node_id,
        boot=member.boot,
        name=member.name,
        address=member.address,
        meta=member.card.meta,
        free_slots=vitals.free_slots,
        busy_pct=vitals.busy_pct,
    )


def _over(change: Change) -> int | None:
    """Return the last session that a change proves to be over: it left, has ended, or another has begun after it.

    Whoever begins a session has cleared away what the one before it left, before anybody heard of it.
    """
    boot, _, state, cause = change.after
    if is_proof(state, cause):
        return boot
    return boot - 1 if change.before is None or change.is_restart else None
