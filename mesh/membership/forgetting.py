"""Removal of a gone member for good, at somebody's request: which member is meant, and whether that may be.

Only who is gone here, dead or left, is forgotten; a suspect may still refute. Names are of the living, and a
name may have had several holders that are gone: whoever asks then says which by its id. A living holder
of the same name is not touched, so that what is left of a replaced host can be cleared away.

What follows is a rumour like a verdict (`rumours`) and a tombstone (`tombstones`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from mesh.core.effects import Answer
from mesh.core.ids import NodeId, format_id
from mesh.core.requests import Outgoing
from mesh.core.time import format_duration
from mesh.errors import CommandRefused
from mesh.membership.member import Member
from mesh.membership.rumours import Rumours
from mesh.membership.table import MemberTable
from mesh.wire.records import State
from mesh.wire.swim_messages import Forget

SHOWN_MAX: Final = 10
_ID: Final = re.compile(r"[0-9a-fA-F]{16}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """Who was forgotten. `was`: the state before; "forgotten" if somebody had asked for it before."""

    node_id: NodeId
    name: str
    was: str


class Forgetting:
    """Carries out the wish to forget a member."""

    def __init__(self, table: MemberTable, rumours: Rumours) -> None:
        self._table = table
        self._rumours = rumours

    def answer(self, now: float, command_id: int, whom: str) -> list[Outgoing]:
        """Forget whom a client names, and answer; what is to be told to others is taken with the next deadline."""
        try:
            found = self.forget(now, whom)
        except CommandRefused as error:
            return [Answer(command_id, None, str(error))]
        node_id = format_id(found.node_id)
        return [Answer(command_id, {"node_id": node_id, "name": found.name, "was": found.was})]

    def forget(self, now: float, whom: str) -> Forgotten:
        """Forget the gone member that has this id or name, and tell everybody.

        Raises:
            CommandRefused: nobody is meant, or several, or somebody who is not gone; nothing changed.
        """
        member = self._meant(now, whom)
        found = Forgotten(node_id=member.node_id, name=member.name, was=member.state.word)
        if member.state is not State.FORGOTTEN:
            own_id = self._rumours.own_id
            message = Forget(member.node_id, member.boot, member.incarnation, own_id, 0)
            self._rumours.on_forget(now, own_id, message)
        return found

    def _meant(self, now: float, whom: str) -> Member:
        by_id = self._table.get(NodeId(int(whom, 16))) if _ID.fullmatch(whom) else None
        named = [by_id] if by_id is not None else [m for m in self._table if m.name == whom]
        gone = [m for m in named if m.state in {State.DEAD, State.LEFT}]
        if len(gone) > 1:
            raise CommandRefused(_several(now, whom, gone))
        here = [m for m in named if m.is_living or m.node_id == self._rumours.own_id]
        if here and not gone:
            raise CommandRefused(self._is_here(here[0]))
        meant = gone or named
        if not meant:
            raise CommandRefused(
                f"no member is known here by the name or id {whom!r}: `mesh members` lists those that are"
            )
        return meant[0]

    def _is_here(self, member: Member) -> str:
        if member.node_id == self._rumours.own_id:
            return f"{member.name} is this node itself: `mesh leave` lets it go"
        if member.state is State.SUSPECT:
            return (
                f"{member.name} is suspected, and may still answer: only a member that is dead or has left "
                "is forgotten; try again when it has been declared dead"
            )
        return (
            f"{member.name} is alive: only a member that is dead or has left is forgotten; "
            "`mesh leave` on its host lets it go; if that host is off, try again when it has been declared dead"
        )


def _several(now: float, whom: str, gone: list[Member]) -> str:
    gone.sort(key=lambda member: (-member.since, member.node_id))
    shown = [
        f"{format_id(m.node_id)} ({m.state.word} for {format_duration(now - m.since)}, at {m.address})"
        for m in gone[:SHOWN_MAX]
    ]
    more = f" and {len(gone) - SHOWN_MAX} more" if len(gone) > SHOWN_MAX else ""
    return (
        f"several members called {whom} are gone: {', '.join(shown)}{more}; forget each by its id"
    )
