"""The contests that a node holds, made from its JSON: typed, cleaned, and tolerant, as all rows are.

view["contests"] ──► Contests: how they go on the whole
                        └─ ContestRow: one of them ──► Word: a bid or a decline in it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mesh.tui.cells import clean
from mesh.tui.reading import Json, listing, mapping, number, text, whole
from mesh.wire.contest_messages import CALLED_MAX, PARTS_MAX, SAID_MAX, WEIGHED

LATEST_MAX: Final = 50
"""So many contests are shown."""

_NAME_CHARS_MAX: Final = 64
_ADVICE_CHARS_MAX: Final = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """What one member said in a contest: its bid, or that it declines."""

    after_ms: float
    member: str
    score: float | None
    """0 to 1; None: it declined."""

    parts: tuple[tuple[str, float], ...]
    declined: str
    """Why it did not bid; "" for a bid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContestRow:
    """One contest, as the voter that called for it saw it."""

    task_id: str
    attempt: int | None
    caller: str
    at: float
    window_ms: float | None
    rounds: int
    is_first_window: bool
    is_under_way: bool
    called: tuple[tuple[str, float], ...]
    """Who was called, in the caller's order, and the score (0 to 1) that it expected of each."""

    said: tuple[Word, ...]
    """In the order in which they spoke."""

    winner: str
    after_ms: float | None
    """From the call until the grant was seen."""

    source: Json = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def read(cls, source: Json) -> ContestRow:
        """Make a row from one of the `latest` of a view's `contests`; whoever has no name is left out."""
        called = [mapping(one) for one in listing(source.get("called"))[:CALLED_MAX]]
        said = [mapping(one) for one in listing(source.get("said"))[:SAID_MAX]]
        return cls(
            task_id=text(source, "task_id"),
            attempt=whole(source, "attempt"),
            caller=_name(source, "caller"),
            at=number(source, "at") or 0.0,
            window_ms=number(source, "window_ms"),
            rounds=whole(source, "rounds") or 0,
            is_first_window=source.get("first_window") is True,
            is_under_way=source.get("under_way") is True,
            called=tuple(
                (name, number(one, "expected") or 0.0)
                for one in called
                if (name := _name(one, "member"))
            ),
            said=tuple(_word(one) for one in said if _name(one, "member")),
            winner=_name(source, "winner"),
            after_ms=number(source, "after_ms"),
            source=source,
        )

    @property
    def key(self) -> str:
        """What this contest is told apart by while it moves down the list."""
        return contest_key(self.source)

    @property
    def bids(self) -> tuple[Word, ...]:
        """The bids, in the order in which they were made."""
        return tuple(word for word in self.said if word.score is not None)

    @property
    def outcome(self) -> str:
        """How it ended: `granted` within the first window, `late` after it, to `nobody`; or it is `open`."""
        if self.is_under_way:
            return "open"
        if not self.winner:
            return "nobody"
        return "granted" if self.is_first_window else "late"

    @property
    def words(self) -> dict[str, Any]:
        """The contest as `mesh.tasks.contest_words` reads it: as its JSON, with every key there and clean."""
        return {
            "attempt": self.attempt or "?",
            "caller": self.caller or "a voter",
            "rounds": self.rounds,
            "first_window": self.is_first_window,
            "under_way": self.is_under_way,
            "called": [{"member": name, "expected": score} for name, score in self.called],
            "said": [
                {
                    "after_ms": word.after_ms,
                    "member": word.member,
                    "score": word.score,
                    "parts": dict(word.parts),
                    "declined": word.declined,
                }
                for word in self.said
            ],
            "winner": None if self.is_under_way else self.winner or None,
            "after_ms": self.after_ms,
            "weights": {
                name: weight
                for name in WEIGHED
                if (weight := number(mapping(self.source.get("weights")), name)) is not None
            },
            "default_weights": self.source.get("default_weights") is not False,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Contests:
    """How the contests go that a node holds, and the latest of them.

    Attributes:
        is_told: whether the node tells of contests at all; one of an earlier version does not.
        held: how many it has held since its session began; `won`: in how many somebody had the task.
        bids_mean: bids in one, of late; None before any.
        success: the share (0 to 1) that ended in a grant within the first window, of late; None before any.
        window_ms: c of the latest; `factor`: what it was multiplied by, since it adapts.
        advice: what is wrong and what to do, "" where all is well.
        rows: newest first, those under way before those that are over; at most `LATEST_MAX`.
    """

    is_told: bool = False
    held: int = 0
    won: int = 0
    bids_mean: float | None = None
    success: float | None = None
    window_ms: float | None = None
    factor: float | None = None
    advice: str = ""
    rows: Sequence[ContestRow] = ()

    @classmethod
    def read(cls, value: object, before: Sequence[ContestRow] = ()) -> Contests:
        """Make it from a view's `contests`; a row of `before` whose JSON is the same is used again."""
        source = mapping(value)
        known = {row.key: row for row in before}
        rows = []
        for item in listing(source.get("latest"))[:LATEST_MAX]:
            one = mapping(item)
            row = known.get(contest_key(one))
            rows.append(row if row is not None and row.source == one else ContestRow.read(one))
        return cls(
            is_told=bool(source),
            held=whole(source, "held") or 0,
            won=whole(source, "won") or 0,
            bids_mean=number(source, "bids_mean"),
            success=number(source, "success"),
            window_ms=number(source, "window_ms"),
            factor=number(source, "factor"),
            advice=text(source, "advice", _ADVICE_CHARS_MAX),
            rows=tuple(rows),
        )

    def of_task(self, task_id: str) -> ContestRow | None:
        """Return the latest contest for a task, None where this node knows of none. O(rows)."""
        return next((row for row in self.rows if row.task_id == task_id), None)


def contest_key(source: Json) -> str:
    """Return what a contest is told apart by: one task may be contested more than once."""
    return f"{text(source, 'task_id')}@{number(source, 'at') or 0.0!r}"


def _name(source: Json, key: str) -> str:
    return text(source, key, _NAME_CHARS_MAX)


def _word(source: Json) -> Word:
    score = number(source, "score")
    return Word(
        after_ms=number(source, "after_ms") or 0.0,
        member=_name(source, "member"),
        score=score,
        parts=_parts(mapping(source.get("parts"))),
        declined="" if score is not None else text(source, "declined") or "no reason is told",
    )


def _parts(source: Json) -> tuple[tuple[str, float], ...]:
    """Return what a score is made of, the names cleaned."""
    found = []
    for name in list(source)[:PARTS_MAX]:
        value = number(source, name)
        if value is not None:
            found.append((clean(str(name), _NAME_CHARS_MAX), value))  # msgpack has other keys too
    return tuple(found)
