"""Events in words: who saw what."""

from __future__ import annotations

from collections.abc import Sequence
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
    "forget": "forgot {member}",
    "conflict": "found a conflict over {member}",
    "seek": "seeks a mesh",
    "task": "saw task {task} {state}",
    "hook": "says of its hook",
    "warn": "warns",
}

_OVER: Final = frozenset({"done", "failed", "cancelled"})
_PLAIN_KINDS: Final = frozenset(
    {"found", "join", "return", "update", "suspect", "refute", "dead", "leave", "forget"}
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
    # A task that is over did not end for the reason that its last attempt was started.
    is_over = event.kind == "task" and event.state in _OVER
    cause = f" ({event.cause})" if event.cause and not is_over else ""
    more = event.proof if event.kind in _PLAIN_KINDS else event.detail or event.proof
    if event.kind == "warn" and event.task_id:
        more = f"task {event.task_id}: {more}"
    return f"{event.observer or '?'} {phrase}{cause}", more


_EXPLANATIONS: Final[dict[tuple[str, str], str]] = {
    (
        "dead",
        "silent",
    ): "It stopped answering, and no other member got through to it: it was killed, hangs, "
    "or its host is off or cut off.",
    (
        "dead",
        "crashed",
    ): "Its process broke off: its connection closed and its port refuses, while its host answers.",
    ("dead", "ended"): "Its process has ended; that is proven.",
    ("dead", ""): "It was declared dead.",
    ("left", ""): "It said goodbye and went in order.",
    ("suspect", ""): "It does not answer. Unless it does soon, it is declared dead.",
}


def explanation(state: str, cause: str) -> str:
    """Return in plain words what a member's state means, "" for one that needs no explanation."""
    return _EXPLANATIONS.get((state, cause)) or _EXPLANATIONS.get((state, ""), "")


_BRIEFLY: Final[dict[tuple[str, str], str]] = {
    ("dead", "silent"): "stopped answering",
    ("dead", "crashed"): "its process broke off",
    ("dead", "ended"): "its process ended",
    ("dead", ""): "was declared dead",
    ("left", ""): "said goodbye",
    ("suspect", ""): "does not answer",
}


def reason(state: str, cause: str, evidence: Sequence[str]) -> str:
    """Return in one line what a member's state means, with the evidence; "" when there is nothing to say."""
    words = _BRIEFLY.get((state, cause)) or _BRIEFLY.get((state, ""), "")
    known = "; ".join(evidence)
    return f"{words}: {known}" if words and known else words or known


def accusation(accusers: Sequence[str]) -> str:
    """Return `suspected by n3 (+2)`: the first of them, and how many more; there is one at least."""
    more = f" (+{len(accusers) - 1})" if len(accusers) > 1 else ""
    return f"suspected by {accusers[0]}{more}"
