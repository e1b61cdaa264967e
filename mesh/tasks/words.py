"""Tasks in words and times for people: the screen and the commands say the same.

They read the task's JSON, in which every time is Unix time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mesh.core.time import format_duration

ATTEMPT_CAUSES: Final = {
    "first": "first run",
    "retry": "the run before failed",
    "lapse": "the node before was not heard of any more",
    "crash": "the node before was lost",
    "released": "the node before let it go",
    "forced": "it was taken from the node before",
    "recovered": "records were lost",
}
"""Why an attempt was started."""

LOSSES: Final = {
    "lapse": "its node was not heard of any more, and its lease ran out (lapse)",
    "crash": "its node was killed or crashed: that its session is over is proven (crash)",
}
"""Why an attempt is lost that nobody has ended on record."""

FROZEN: Final = "whether its lease lives is in doubt"
"""Why its node holds a run frozen."""

STRATEGIES: Final = {
    "rendezvous": "its home first, another where that is busy",
    "contest": "the fittest of those that are called",
    "round_robin": "one member after the other",
    "pull": "whoever is idle, the oldest task first",
}
"""Whom a queue's strategy has ask for a task."""

_PLACED: Final = {
    "contest": "{node} was granted it in a contest",
    "alone": "{node} was asked alone: no other was known to have a slot, or would have it",
    "turn": "it was the turn of {node}",
    "pull": "{node} had the most slots free",
    "anybody": "nobody was known to have a slot, and of those asked now and then {node} had one",
}
"""How whoever has an attempt was found, if not by rendezvous."""

_PASSED: Final = {
    "busy": "no slot of it was known to be free",
    "unsuited": "it said that it cannot run the like of this",
}
"""Why a task's home was passed over."""

IDS_SHOWN_MAX: Final = 5
_STATES: Final = {"leased": "running"}

UNFINISHED: Final = frozenset({"scheduled", "ready", "leased"})
"""The states in which a task has not ended, as its JSON has them."""


def attempt_reason(cause: str) -> str:
    """Return why an attempt was started; a cause that is not known as it is."""
    return ATTEMPT_CAUSES.get(cause, cause)


def placed_text(placed: Mapping[str, Any] | None, node: str) -> str:
    """Return why an attempt is at `node`, as its JSON has it; "" where that is not on record."""
    if placed is None:
        return ""
    by, home = placed["by"], placed["home"]
    at_once = ", and was named as the task was created" if by == "named" else ""
    if home == node:
        came = f"{node} is its home{at_once}"
    elif home is not None and placed["passed"]:
        reason = _PASSED.get(placed["passed"], placed["passed"])
        came = f"{home} is its home, but {reason}"
        came += "" if by == "contest" else f"; {node} came next by rendezvous{at_once}"
    else:
        came = ""
    how = _PLACED.get(by, "" if by in {"named", "rank"} else by).format(node=node)
    return "; ".join(part for part in (came, how) if part)


def loss_reason(cause: str) -> str:
    """Return why an attempt is lost; a cause that is not known as it is."""
    return LOSSES.get(cause, cause)


def state_word(state: str, *, is_lost: bool = False) -> str:
    """Return a task's state as people say it: what is leased runs, unless that run is known to be lost."""
    return "lost" if is_lost and state == "leased" else _STATES.get(state, state)


def queue_text(task: Mapping[str, Any]) -> str:
    """Return a task's queue, and whom its strategy has ask for the task, where that is known."""
    queue, strategy = str(task["queue"]), task.get("strategy")
    if not strategy:
        return queue
    whom = STRATEGIES.get(strategy)
    return f"{queue} ({strategy}{f': {whom}' if whom else ''})"


def wants_text(task: Mapping[str, Any]) -> str:
    """Return what a task asks of a member; "" if nothing, or if a node of an earlier version does not say."""
    parts = [f"{name} {task[name]}" for name in ("pool", "class") if task.get(name)]
    parts += [f"label {name}={value}" for name, value in (task.get("labels") or {}).items()]
    parts += [f"{name} {amount}" for name, amount in (task.get("needs") or {}).items()]
    return ", ".join(parts)


def attempt_end(*, is_over: bool, end: str, exit_code: int | None, is_lost: bool = False) -> str:
    """Return how an attempt ended; `end` is what its JSON says under that name, "" if it says nothing.

    `is_lost`: it is on record as one that runs, and is known not to.
    """
    if not is_over:
        return "lost" if is_lost else "runs"
    if exit_code is not None:
        return f"exit {exit_code}"
    return "let go" if end == "released" else "cut off"


def stretch(
    state: str,
    *,
    created: float | None,
    started: float | None,
    ended: float | None,
    lost: float | None,
) -> tuple[float | None, float | None]:
    """Return from when to when a task waits, runs or ran; None for a beginning unknown, or an end to come.

    `state` is in either's words, JSON's or people's. `started` is the last attempt's, and `lost` is when that one ended, was taken back or was seen lost: since then it waits anew.
    """
    if state in {"ready", "scheduled", "lost"}:
        return lost or created, None
    return started or created, None if state_word(state) == "running" else ended


def of_those_that_run(task_ids: Sequence[str], within_s: float) -> str:
    """Return what becomes of the tasks that run on a node that leaves; "" if none does."""
    if not task_ids:
        return ""
    some = ", ".join(task_ids[:IDS_SHOWN_MAX]) + (", …" if len(task_ids) > IDS_SHOWN_MAX else "")
    count = "1 task that runs" if len(task_ids) == 1 else f"{len(task_ids)} tasks that run"
    if not within_s:
        return f"stopping {count} here: {some}; others run them, where one fits"
    after = "it is" if len(task_ids) == 1 else "they are"
    return (
        f"waiting up to {format_duration(within_s)} for {count} here: {some}; after that {after} stopped, "
        f"and run{'s' * (len(task_ids) == 1)} again where a member fits"
    )
