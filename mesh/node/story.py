"""A member's story as this node saw it: how it is, what was said against it, and how that ended.

Facts only, JSON-ready; sentences are made of them where people read them. Times are Unix seconds by
this node's clock. The past comes from `mesh.membership.history`, which is bounded.
"""

from __future__ import annotations

from typing import Any, Final

from mesh.core.effects import Answer
from mesh.core.ids import NodeId, format_id
from mesh.core.time import format_duration
from mesh.errors import CommandRefused
from mesh.membership.history import Entry
from mesh.membership.member import Member
from mesh.membership.swim import Swim
from mesh.node.view import LISTED_DIGITS
from mesh.wire.records import is_proof

SHOWN_MAX: Final = 10


def tell_story(now: float, command_id: int, swim: Swim, offset_s: float, whom: str) -> Answer:
    """Answer a client that asks about the member of this name, id, or beginning of an id."""
    if swim.phase == "seeking":
        text = "this node belongs to no mesh yet, and knows no member: ask again once it does"
        return Answer(command_id, None, text)
    try:
        return Answer(command_id, _story(now, swim, offset_s, _meant(now, swim, whom)), None)
    except CommandRefused as error:
        return Answer(command_id, None, str(error))


def _story(now: float, swim: Swim, offset_s: float, node_id: NodeId) -> dict[str, Any]:
    past = swim.rumours.history.of(node_id)
    member = swim.table.get(node_id)
    own = swim.identity.card
    return {
        "observer": own.name,
        "observer_id": format_id(own.node_id),
        "at": now + offset_s,
        "self": node_id == own.node_id,
        "name": past[-1].event.member if member is None else member.name,
        "node_id": format_id(node_id),
        **_standing(member, past, offset_s),
        "suspicion": _suspicion(swim, node_id, offset_s),
        "history": [_entry(entry, offset_s) for entry in past],
    }


def _standing(member: Member | None, past: tuple[Entry, ...], offset_s: float) -> dict[str, Any]:
    """Return how the member is; of one that nobody lists any more, how it was last."""
    if member is None:
        last = past[-1]
        return {
            "address": "", "state": last.event.state, "cause": last.event.cause, "is_proof": False,
            "availability": "", "availability_why": "",
            "since": last.at + offset_s, "boot": 0, "incarnation": 0, "rtt_ms": None, "heard": None,
        }  # fmt: skip
    return {
        "address": str(member.address),
        "state": member.state.word,
        "cause": member.cause.word,
        "is_proof": is_proof(member.state, member.cause),
        "availability": member.card.meta.availability.word,
        "availability_why": member.card.meta.why,
        "since": member.since + offset_s,
        "boot": member.boot,
        "incarnation": member.spoken_incarnation,
        "rtt_ms": _ms(member.rtt_s),
        "heard": None if member.heard_at is None else member.heard_at + offset_s,
    }


def _suspicion(swim: Swim, node_id: NodeId, offset_s: float) -> dict[str, Any] | None:
    """Return the suspicion that is open; `due` is when it runs out, `soonest` if all confirm it that count."""
    found = swim.rumours.suspicions.get(node_id)
    if found is None:
        return None
    names = [swim.rumours.name_of(accuser) for accuser in found.accusers]
    return {
        "accuser": names[0] if names else "",
        "confirmed_by": names[1:],
        "opened": found.opened_at + offset_s,
        "due": found.due + offset_s,
        "soonest": min(found.due, found.opened_at + found.slept_s + found.shortest_s) + offset_s,
        "is_doubted": found.is_doubted,
    }


def _entry(entry: Entry, offset_s: float) -> dict[str, Any]:
    event = entry.event
    return {
        "at": entry.at + offset_s,
        "kind": "confirm" if entry.is_confirmation else event.kind.value,
        "state": event.state,
        "cause": event.cause,
        "accuser": event.accuser,
        "confirmed_by": list(event.confirmed_by),
        "evidence": list(event.evidence),
        "evidence_kinds": [kind.value for kind in event.evidence_kinds],
        "detail": event.detail,
        "rtt_ms": _ms(entry.rtt_s),
    }


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 3)


def _meant(now: float, swim: Swim, whom: str) -> NodeId:
    """Return which member is meant: by its name, else by its id. The living holder of a name comes first.

    Raises:
        CommandRefused: nobody is known by that, or several are.
    """
    members = [member for member in swim.table if _is_called(member, whom)] or [
        member for member in swim.table if _begins(member.node_id, whom)
    ]
    living = [member for member in members if member.is_living]
    meant = living or members
    if len(meant) > 1:
        raise CommandRefused(_several(now, whom, meant))
    if meant:
        return meant[0].node_id
    history = swim.rumours.history
    past = [
        node_id
        for node_id in history
        if _begins(node_id, whom) or history.of(node_id)[-1].event.member == whom
    ]
    if past:
        return past[-1]  # nobody lists it any more; of several, the one met last
    raise CommandRefused(f"no member is known here by the name or id {whom!r}")


def _is_called(member: Member, whom: str) -> bool:
    """Say whether that is its name, or what it is listed as while another has the same."""
    name, tilde, digits = whom.rpartition("~")
    is_listed_so = bool(tilde) and member.name == name and len(digits) == LISTED_DIGITS
    return member.name == whom or (is_listed_so and _begins(member.node_id, digits))


def _begins(node_id: NodeId, whom: str) -> bool:
    return bool(whom) and format_id(node_id).startswith(whom.lower())


def _several(now: float, whom: str, members: list[Member]) -> str:
    members.sort(key=lambda member: (-member.since, member.node_id))
    shown = [
        f"{format_id(m.node_id)} ({m.name}, {m.state.word} for {format_duration(now - m.since)})"
        for m in members[:SHOWN_MAX]
    ]
    more = f" and {len(members) - SHOWN_MAX} more" if len(members) > SHOWN_MAX else ""
    return f"several members fit {whom!r}: {', '.join(shown)}{more}; ask by id"
