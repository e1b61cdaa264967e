"""One event as a line for people: when, what kind, who saw it, and what."""

from __future__ import annotations

from typing import Any, Final

from mesh.cli.text import clock, paint, printable

EVIDENCE_MAX: Final = 3  # sentences; --json has them all

_SAW: Final = {
    "join": "saw {member} join",
    "return": "saw {member} return",
    "update": "saw {member} change what it declares",
    "suspect": "suspects {member}",
    "refute": "heard {member} refute it",
    "dead": "saw {member} dead",
    "leave": "saw {member} leave",
    "forget": "forgot {member}",
}
_TASK: Final = {
    "leased": "runs on {node}",
    "ready": "was lost on {node}, and is ready again",
    "scheduled": "failed on {node}, and is tried again later",
    "done": "done on {node}",
    "failed": "failed on {node}",
    "cancelled": "cancelled on {node}",
}
_DEEDS: Final = frozenset({"found", "enter", "refute"})  # their details say what the observer did
_AFTER: Final = {
    "crash": "after a crash",
    "released": "after it was released",
    "lapse": "after nobody answered for it",
    "retry": "after a failure",
    "forced": "after it was taken away",
    "recovered": "after records were lost",
}


def event_line(event: dict[str, Any]) -> str:
    """Return the line of one event."""
    said = f": {_task(event)}" if event["kind"] == "task" else f" {_sight(event)}"
    sentence = printable((event["observer"] or "?") + said)
    return f"{clock(event['at_ns'] / 1e9)}  {paint(event['kind'].ljust(8))}  {sentence}"


def _sight(event: dict[str, Any]) -> str:
    """Return what an observer saw of a member; what has no phrase is told as it is."""
    phrase = _SAW.get(event["kind"])
    cause = f" ({event['cause']})" if event["cause"] else ""
    evidence = "; ".join(dict.fromkeys(event["evidence"][:EVIDENCE_MAX]))
    is_own = event["member"] in {"", event["observer"]}
    if phrase is None or is_own:
        said = event["detail"] or event["kind"]
        if event["task_id"]:
            said = f"task {event['task_id']}: {said}"
        return said if event["kind"] in _DEEDS else f"says: {said}"
    address = event["detail"].rpartition(" at ")[2] if event["kind"] in {"join", "return"} else ""
    seen = phrase.format(member=event["member"]) + (f" at {address}" if address else "")
    if event["kind"] == "update":
        seen += _now(event["detail"])
    return seen + cause + (f": {evidence}" if evidence else "")


def _now(detail: str) -> str:
    """Return whether a member takes work now, and why, as the detail of an update has it; "" if it says nothing of that."""
    _, mark, rest = detail.partition(" (now ")
    words, end, _ = rest.rpartition(") at ")
    return f"{mark}{words})" if mark and end else ""


def _task(event: dict[str, Any]) -> str:
    """Return what became of a task: its id, its state, the node, and why."""
    state, detail = event["state"], event["detail"]
    phrase = _TASK.get(state, state)
    if not event["member"]:
        phrase = phrase.replace(" on {node}", "")
    said = f"task {event['task_id']} {phrase.format(node=event['member'])}"
    if state == "leased":
        why = _AFTER.get(event["cause"], "")
        return f"{said} ({detail}{', ' if why else ''}{why})"
    return f"{said}: {detail}" if detail else said
