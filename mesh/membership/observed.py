"""How a change of a member reads as an event."""

from __future__ import annotations

from mesh.core.events import Event, EventKind
from mesh.core.events import EvidenceKind as Kind
from mesh.core.ids import NodeId, format_id
from mesh.membership.clues import Clue, clue, kinds_of, texts_of
from mesh.membership.flaps import FLAPS_MIN, WINDOW_S
from mesh.membership.member import Change
from mesh.wire.records import Card, State

_KINDS = {
    State.SUSPECT: EventKind.SUSPECT,
    State.DEAD: EventKind.DEAD,
    State.LEFT: EventKind.LEAVE,
    State.FORGOTTEN: EventKind.FORGET,
}


def event_of(
    change: Change, evidence: tuple[Clue, ...] = (), accusers: tuple[str, ...] = ()
) -> Event | None:
    """Return the event of a change of another member; None for one that people need not see.

    `accusers` are the names of those who said it, or said what is refuted, the first of them first.
    A newcomer is not told of old deaths, nor anybody of a refutation whose suspicion it never heard.
    """
    if change.is_verdict_new:
        if change.before is None and not change.is_living:
            return None
        kind = _KINDS.get(change.state) or _kind_of_living(change)
    elif change.is_card_new and change.is_living:
        kind = EventKind.UPDATE
    else:
        return None
    card = change.card
    is_said = kind is EventKind.UPDATE and change.was is not None
    why = f": {card.meta.why}" if card.meta.why else ""
    now = f" (now {card.meta.availability.word}{why})" if is_said else ""
    clues = (*_news(change, kind), *evidence)
    return Event(
        kind=kind,
        member_id=card.node_id,
        member=card.name,
        state=change.state.word,
        cause=change.after[3].word,
        detail=f"{_DETAILS[kind]}{now} at {card.address}",
        evidence=texts_of(clues),
        evidence_kinds=kinds_of(clues),
        accuser=accusers[0] if accusers else "",
        confirmed_by=accusers[1:],
    )


def _news(change: Change, kind: EventKind) -> tuple[Clue, ...]:
    """Return where a member was before, and whether one that is back is another process, or the one that was."""
    news = () if change.moved_from is None else (clue(Kind.MOVED, change.moved_from),)
    if kind is not EventKind.RETURN:
        return news
    if change.is_restart:
        return (clue(Kind.NEW_SESSION, change.after[0]), *news)
    return (clue(Kind.SAME_SESSION), *news)


def confirmation(card: Card, accuser: str, evidence: tuple[Clue, ...]) -> Event:
    """Return what is remembered, and told to nobody, of one more observer that shares a suspicion."""
    return Event(
        kind=EventKind.SUSPECT,
        member_id=card.node_id,
        member=card.name,
        state=State.SUSPECT.word,
        detail=f"is suspected by {accuser} too",
        evidence=texts_of(evidence),
        evidence_kinds=kinds_of(evidence),
        accuser=accuser,
    )


def name_conflict(card: Card, state: State, rival: NodeId) -> Event:
    """Return the event of a member whose name another living one has."""
    ids = f"{format_id(card.node_id)} and {format_id(rival)}"
    return Event(
        kind=EventKind.CONFLICT,
        member_id=card.node_id,
        member=card.name,
        state=state.word,
        detail=f"two living members are called {card.name}: {ids}; give one another --name",
    )


def flapping(card: Card) -> Event:
    """Return the event of a member that comes and goes."""
    times = FLAPS_MIN // 2
    text = f"{card.name} comes and goes: {times} deaths, {times} returns in {WINDOW_S:.0f} s"
    return Event(kind=EventKind.WARN, member_id=card.node_id, member=card.name, detail=text)


def _kind_of_living(change: Change) -> EventKind:
    if change.before is None:
        return EventKind.JOIN
    return EventKind.RETURN if change.is_return else EventKind.REFUTE


_DETAILS = {
    EventKind.JOIN: "joined",
    EventKind.RETURN: "is back",
    EventKind.REFUTE: "refuted the suspicion",
    EventKind.UPDATE: "changed what it declares",
    EventKind.SUSPECT: "is suspected",
    EventKind.DEAD: "was declared dead",
    EventKind.LEAVE: "left",
    EventKind.FORGET: "is forgotten; it was last",
}
