"""A task's story in words: what it waits for, every attempt with its cause and end, and what comes next.

Made of the task's JSON alone: what a majority of its voters has on record, and what the node that was asked knows of
who is free.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from mesh.cli.task_text import is_lost, stretch_of, word_of
from mesh.cli.telling import day_clock, happening, page, paragraphs, title, when
from mesh.cli.waiting import waits_for
from mesh.core.time import format_duration
from mesh.tasks.contest_words import contest_evidence, contest_words
from mesh.tasks.words import (
    UNFINISHED,
    attempt_reason,
    loss_reason,
    placed_text,
    queue_text,
    wants_text,
)

Task: TypeAlias = dict[str, Any]

_COMMAND_CHARS: Final = 200
_TOKEN_CHARS: Final = 12
_ENDS: Final = {
    "done": "it is done",
    "failed": "it failed for good",
    "cancelled": "it was cancelled",
}


def as_text(task: Task, observer: str, now: float) -> str:
    """Return the whole story for people; `observer` is the node that was asked, `now` Unix time."""
    lines = [headline(task), *(f"  {line}" for line in condition(task, now))]
    lines += ["", title("what happened to it")]
    for at, words, evidence in _happenings(task, now):
        lines += happening(at, words, evidence)
    if following := what_next(task, observer):
        is_open = task["state"] in UNFINISHED
        lines += ["", title("what it waits for" if is_open else "what can be done")]
        lines += paragraphs(following)
    return page(lines)


def headline(task: Task) -> str:
    """Return how the task is."""
    if is_lost(task):
        stopping = ", and it is being cancelled" if task["cancel_requested"] else ""
        return (
            f"task {task['id']} is lost: {task['owner']}, which had it, runs it no more{stopping}"
        )
    where = f" on {task['owner']}" if task["owner"] else ""
    stopping = (
        ", and is being cancelled" if task["cancel_requested"] and where and _is_open(task) else ""
    )
    return f"task {task['id']} is {word_of(task)}{where}{stopping}"


def condition(task: Task, now: float) -> list[str]:
    """Return for how long it is so, and what it is."""
    begin, end = stretch_of(task)
    lines = []
    if end is not None:
        lines.append(f"since {day_clock(now, end)}, after {format_duration(end - (begin or end))}")
    elif begin is not None:
        lines.append(f"for {format_duration(now - begin)}, since {day_clock(now, begin)}")
    command = " ".join(task["argv"])
    lines.append(f"command: {command[:_COMMAND_CHARS]}{'…' * (len(command) > _COMMAND_CHARS)}")
    if asked := wants_text(task):
        lines.append(f"asks for: {asked}")
    lines.append(f"queue: {queue_text(task)}")
    if task["home"] and _is_open(task):
        lines.append(f"its home, which is asked first, is {task['home']}")
    return lines


def story(task: Task, now: float) -> list[str]:
    """Return a line for each thing that happened, oldest first."""
    return [
        f"{at}  {words}" + (f": {'; '.join(evidence)}" if evidence else "")
        for at, words, evidence in _happenings(task, now)
    ]


def what_next(task: Task, observer: str) -> list[str]:
    """Return what an unfinished task waits for, or what can be done about one that has ended; nothing if it is done."""
    state = task["state"]
    if is_lost(task):
        return [*_of_a_waiting(task, observer), *_of_a_lost(task)]
    if state == "leased":
        return _of_a_running(task)
    if state == "scheduled":
        return [_sentence(f"{waits_for(task) or 'its time'}: until then nobody is asked")]
    if state == "ready":
        return _of_a_waiting(task, observer)
    if state == "failed":
        return [f"mesh retry {task['id']} submits it anew, under an id that follows from this one."]
    return []


def _of_a_waiting(task: Task, observer: str) -> list[str]:
    reason = task["waits_for"]
    if not reason:
        return [
            f"{observer} is not the one that offers it, and does not know; ask at another member."
        ]
    if reason == "an answer":
        return ["The answer of a member that was offered it just now."]
    return [_sentence(reason)]


def _of_a_lost(task: Task) -> list[str]:
    if task["cancel_requested"]:
        return ["Nobody starts it again: whoever is offered it writes that it is cancelled."]
    return [f"Nobody runs it until then. That the run on {task['owner']} was lost spends no retry."]


def _of_a_running(task: Task) -> list[str]:
    owner = task["owner"]
    if task["cancel_requested"]:
        return [f"The end of its run: {owner} was told to stop it, and nobody starts it again."]
    return [
        f"The end of its run on {owner}, which alone may write it while it renews its lease.",
        f"If {owner} is not heard of any more, the lease lapses, and another member runs it: that spends no retry.",
    ]


def _happenings(task: Task, now: float) -> Iterator[tuple[str, str, list[str]]]:
    """Yield when each thing happened, what it was, and what is known of it."""
    again = f", as the retry of {task['retry_of']}" if task["retry_of"] else ""
    yield when(now, task["created"]), f"{task['keeper'] or 'a node'} took it in{again}", []
    last_number = 0
    contests = list(task.get("contests", ()))
    for attempt in task["attempts"]:
        number = attempt["number"]
        for contest in [one for one in contests if one["attempt"] <= number]:
            contests.remove(contest)
            yield when(now, contest["at"]), contest_words(contest), contest_evidence(contest)
        missing = number - last_number - 1
        begun = [f"token …{attempt['token'][-_TOKEN_CHARS:]}"] if attempt["token"] else []
        if missing:
            begun.append(f"{missing} attempts before it are not on record any more")
        words = f"attempt {number} began on {attempt['node']}: {attempt_reason(attempt['cause'])}"
        if placed := placed_text(attempt.get("placed"), attempt["node"]):
            begun.insert(0, placed)
        if attempt["started"] is None:
            words = f"attempt {number} was given to {attempt['node']}, and not started there: "
            words += attempt_reason(attempt["cause"])
        yield when(now, attempt["started"] or attempt["claimed"]), words, begun
        if attempt["ended"] is not None:
            why = [attempt["error"]] if attempt["error"] else []
            yield when(now, attempt["ended"]), f"attempt {number} {_ended(attempt)}", why
        last_number = number
    for contest in contests:
        yield when(now, contest["at"]), contest_words(contest), contest_evidence(contest)
    if is_lost(task):
        words = f"attempt {last_number} on {task['owner']} was seen lost"
        yield when(now, task["lost_since"]), words, [loss_reason(task["lost_cause"])]
    if task["ended"] is not None:
        result = task["result"] or {}
        known = {attempt["error"] for attempt in task["attempts"]}
        error = result.get("error", "")
        yield (
            when(now, task["ended"]),
            _ENDS.get(task["state"], f"it is {task['state']}"),
            [error] if error and error not in known else [],
        )


def _ended(attempt: Task) -> str:
    if attempt["exit_code"] is not None:
        return f"ended with exit code {attempt['exit_code']}"
    if attempt["end"] == "released":
        return f"was let go by {attempt['node']}"
    return (
        "was lost, without a verdict" if attempt["end"] == "lost" else "ended without an exit code"
    )


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _is_open(task: Task) -> bool:
    return task["state"] in UNFINISHED
