"""How a change of a member reads as an event."""

from __future__ import annotations

from mesh.core.events import Event, EventKind
from mesh.membership.member import Change
from mesh.wire.records import State

_KINDS = {
    State.SUSPECT: EventKind.SUSPECT,
    State.DEAD: EventKind.DEAD,
    State.LEFT: EventKind.LEAVE,
}


def event_of(change: Change, evidence: tuple[str, ...] = ()) -> Event | None:
    """Return the event of a change of another member; None for one that people need not see.

    A newcomer is not told of old deaths, nor anybody of a refutation whose suspicion it never heard.
    """
    member = change.member
    if change.is_of_state:
        if change.before is None and not member.is_living:
            return None
        kind = _KINDS.get(member.state) or _kind_of_living(change)
    elif change.is_card_new and member.is_living:
        kind = EventKind.UPDATE
    else:
        return None
    return Event(
        kind=kind,
        member_id=member.node_id,
        member=member.name,
        state=member.state.word,
        cause=member.cause.word,
        detail=f"{_DETAILS[kind]} at {member.address}",
        evidence=evidence,
    )


def _kind_of_living(change: Change) -> EventKind:
    if change.before is None:
        return EventKind.JOIN
    if change.is_restart or change.before >= State.DEAD:
        return EventKind.RETURN
    return EventKind.REFUTE


_DETAILS = {
    EventKind.JOIN: "joined",
    EventKind.RETURN: "is back",
    EventKind.REFUTE: "refuted the suspicion",
    EventKind.UPDATE: "changed what it declares",
    EventKind.SUSPECT: "is suspected",
    EventKind.DEAD: "was declared dead",
    EventKind.LEAVE: "left",
}
