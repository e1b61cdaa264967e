"""From membership to placement: who may get work, kept in step with who is alive.

A suspect gets no new work at once, but keeps what it has: only a death, a farewell or a restart ends
a session's work.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mesh.core.ids import NodeId
from mesh.membership.identity import Identity
from mesh.membership.member import Change, Member
from mesh.membership.table import MemberTable
from mesh.placement.live_view import LiveMember, LiveView
from mesh.wire.records import State, Vitals


@dataclass(frozen=True, slots=True)
class News:
    """What a change means for work: a session that ended, and whether the member may get work now."""

    node_id: NodeId
    is_up: bool
    ended_boot: int | None
    reason: str


class Roll:
    """Keeps the live view. Its entries are the alive members of the table, and this node while it is one."""

    def __init__(self, table: MemberTable, live: LiveView) -> None:
        self._table = table
        self._live = live

    def apply(self, changes: list[Change], phase: str) -> list[News]:
        """Put and drop members, all of them first, and return what each change means for work.

        So whoever gives away the work of one that died asks none of those that died with it.
        """
        news = []
        for change in changes:
            node_id = change.card.node_id
            member = self._table.get(node_id)
            is_alive = member is not None and member.state is State.ALIVE
            if member is not None and is_alive:
                self._live.put(_live(member))
            else:
                self._live.drop(node_id)
            news.append(News(node_id, is_alive and phase == "member", *_ended(change)))
        return news

    def refresh_vitals(self, heard: list[NodeId]) -> list[NodeId]:
        """Take the vitals of members just heard; return whose slots have become free."""
        freed = []
        for node_id in heard:
            entry, member = self._live.get(node_id), self._table.get(node_id)
            if entry is None or member is None or member.vitals is None:
                continue
            free_slots, load_pct = member.vitals.free_slots, member.vitals.load_pct
            if (entry.free_slots, entry.load_pct) != (free_slots, load_pct):
                self._live.put(replace(entry, free_slots=free_slots, load_pct=load_pct))
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
        wanted = (free_slots, own.boot, own.name)
        if entry is None or (entry.free_slots, entry.boot, entry.name) != wanted:
            self._live.put(replace(_live(own), free_slots=free_slots))
        return entry is None

    def check_invariants(self) -> None:
        """Raise AssertionError if the live view is not the table's alive members."""
        alive = {member.node_id for member in self._table if member.state is State.ALIVE}
        assert {member.node_id for member in self._live.members()} == alive


def _live(member: Member) -> LiveMember:
    vitals = member.vitals or Vitals(member.card.meta.slots, 0)
    return LiveMember(
        node_id=member.node_id,
        boot=member.boot,
        name=member.name,
        address=member.address,
        meta=member.card.meta,
        free_slots=vitals.free_slots,
        load_pct=vitals.load_pct,
    )


def _ended(change: Change) -> tuple[int | None, str]:
    """Return the session that a change ended, if it ended one, and how to say it."""
    if change.before is None:
        return None, ""
    if change.is_restart:
        return change.before[0], "restarted"
    if change.state is change.state_before:
        return None, ""
    if change.state is State.DEAD:
        return change.after[0], f"declared dead ({change.after[3].word})"
    if change.state is State.LEFT:
        return change.after[0], "left"
    if change.state is State.FORGOTTEN and (change.state_before or 0) <= State.SUSPECT:
        return change.after[0], "forgotten"
    return None, ""
