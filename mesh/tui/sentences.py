"""Events in words: who saw what."""

from __future__ import annotations

from typing import Final

from mesh.tui.rows import EventRow

_PHRASES: Final[dict[str, str]] = {
    "found": "founded the mesh",
    "enter": "entered the mesh",
    "join": "met {member}",
    "return": "saw {member} return",
    "update": "saw {member} change",
    "suspect": "suspects {member}",
    "refute": "heard {member} refute",
    "dead": "saw {member} dead",
    "leave": "saw {member} leave",
    "conflict": "found a conflict over {member}",
    "seek": "seeks a mesh",
    "task": "saw task {task} {state}",
    "warn": "warns",
}


_PLAIN_KINDS: Final = frozenset(
    {"found", "join", "return", "update", "suspect", "refute", "dead", "leave"}
)
"""Their phrase says all that their detail says; only evidence adds to it."""


def sentence(event: EventRow) -> tuple[str, str]:
    """Return `n1 saw n3 dead (silent)`, and what more is known about it ("" when nothing is)."""
    subject = {
        "member": event.member or "a member",
        "task": event.task_id[:12],
        "state": event.state,
    }
    if event.kind == "refute" and event.member == event.observer:
        return event.observer, event.detail
    is_again = event.kind == "task" and event.state == "ready"
    known = "took task {task} back" if is_again else _PHRASES.get(event.kind)
    phrase = known.format(**subject) if known else f"{event.kind or '?'} {event.member}".rstrip()
    cause = f" ({event.cause})" if event.cause else ""
    more = event.evidence if event.kind in _PLAIN_KINDS else event.detail or event.evidence
    return f"{event.observer or '?'} {phrase}{cause}", more
