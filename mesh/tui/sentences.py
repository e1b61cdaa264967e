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


def sentence(event: EventRow) -> str:
    """Return `n1 saw n3 dead (silent)`, with the event's detail after a colon where there is one."""
    known = _PHRASES.get(event.kind)
    subject = {
        "member": event.member or "a member",
        "task": event.task_id[:12],
        "state": event.state,
    }
    phrase = known.format(**subject) if known else f"{event.kind or '?'} {event.member}".rstrip()
    cause = f" ({event.cause})" if event.cause else ""
    detail = f": {event.detail}" if event.detail else ""
    return f"{event.observer or '?'} {phrase}{cause}{detail}"
