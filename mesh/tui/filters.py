"""The filter line: words that a row must hold, `state:dead` to look into one field, `!word` for rows without it.

All words must match; case does not matter. Unknown fields match nothing, so that a slip shows at once,
and `slip` says what could have been meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from mesh.core.events import EventKind
from mesh.tui.contest_rows import ContestRow
from mesh.tui.rows import EventRow, MemberRow, TaskRow
from mesh.tui.sentences import sentence

Row = TypeVar("Row")
Fields = Mapping[str, Callable[[Row], str]]

FILTER_CHARS_MAX: Final = 80

MEMBER_FIELDS: Final[Fields[MemberRow]] = {
    "name": lambda m: m.name,
    "state": lambda m: m.state,
    "cause": lambda m: m.cause,
    "address": lambda m: m.address,
    "pool": lambda m: m.pool,
    "class": lambda m: m.class_,
    "label": lambda m: m.labels,
    "version": lambda m: m.version,
    "id": lambda m: m.node_id,
}
TASK_FIELDS: Final[Fields[TaskRow]] = {
    "id": lambda t: t.id,
    "state": lambda t: t.state,
    "node": lambda t: t.owner,
    "origin": lambda t: t.origin,
    "queue": lambda t: t.queue,
    "exit": lambda t: "" if t.exit_code is None else str(t.exit_code),
    "command": lambda t: t.command,
    "note": lambda t: t.note,
}
EVENT_FIELDS: Final[Fields[EventRow]] = {
    "kind": lambda e: e.kind,
    "member": lambda e: e.member,
    "state": lambda e: e.state,
    "cause": lambda e: e.cause,
    "by": lambda e: e.observer,
    "task": lambda e: e.task_id,
    "text": lambda e: " ".join((*sentence(e), *e.evidence)),
}

CONTEST_FIELDS: Final[Fields[ContestRow]] = {
    "task": lambda c: c.task_id,
    "state": lambda c: c.outcome,
    "winner": lambda c: c.winner,
    "called": lambda c: " ".join(name for name, _ in c.called),
    "bid": lambda c: " ".join(word.member for word in c.bids),
    "declined": lambda c: " ".join(
        f"{word.member} {word.declined}" for word in c.said if word.score is None
    ),
    "attempt": lambda c: "" if c.attempt is None else str(c.attempt),
    "round": lambda c: str(c.rounds),
}

MEMBER_WORDS: Final = {"state": ("alive", "suspect", "dead", "left")}
TASK_WORDS: Final = {
    "state": ("scheduled", "ready", "running", "lost", "done", "failed", "cancelled")
}
EVENT_WORDS: Final = {"kind": tuple(kind.value for kind in EventKind)}
CONTEST_WORDS: Final = {"state": ("open", "granted", "late", "nobody")}
"""Fields that hold one of a few words."""


@dataclass(frozen=True, slots=True)
class _Word:
    field: str
    text: str
    is_wanted: bool

    def matches(self, texts: Mapping[str, str]) -> bool:
        if self.field:
            return (self.text in texts.get(self.field, "\0")) == self.is_wanted
        return any(self.text in text for text in texts.values()) == self.is_wanted


def matching(rows: Sequence[Row], fields: Fields[Row], line: str) -> Sequence[Row]:
    """Return the rows that match the filter `line`, in their order. O(rows)."""
    words = [_word(word) for word in line[:FILTER_CHARS_MAX].lower().split()]
    words = [word for word in words if word.text]
    if not words:
        return rows
    return [row for row in rows if _matches(row, fields, words)]


def slip(line: str, fields: Iterable[str], words: Mapping[str, Sequence[str]]) -> str:
    """Return which field or word of the filter `line` there is none of, and which there are; "" without a slip."""
    for word in map(_word, line[:FILTER_CHARS_MAX].lower().split()):
        if word.field and word.field not in fields:
            return f"no field {word.field}: {', '.join(fields)}"
        known = words.get(word.field, ())
        if known and not any(word.text in one for one in known):
            return f"no {word.field} {word.text}: {', '.join(known)}"
    return ""


def _word(text: str) -> _Word:
    is_wanted = not text.startswith("!")
    bare = text.removeprefix("!")
    field, colon, rest = bare.partition(":")
    # An address holds colons too: only a word before the colon is a field.
    return (
        _Word(field, rest, is_wanted) if colon and field.isalpha() else _Word("", bare, is_wanted)
    )


def _matches(row: Row, fields: Fields[Row], words: Sequence[_Word]) -> bool:
    texts = {name: read(row).lower() for name, read in fields.items()}
    return all(word.matches(texts) for word in words)
