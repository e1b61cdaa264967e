"""The rows that panes show, made from the node's JSON: typed, cleaned, and tolerant.

A key that is missing or of another type becomes an empty value rather than an error: a screen of an
older version must still show a newer node.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from mesh.tui.cells import clean

Json: TypeAlias = Mapping[str, object]

_ARGUMENTS_MAX: Final = 12
_LABELS_MAX: Final = 12
_SAFE_ARGUMENT: Final = re.compile(r"[\w@%+=:,./-]+")
_DIGITS: Final = re.compile(r"(\d+)")


def text(source: Json, key: str) -> str:
    """Return the cleaned text at `key`, "" when there is none."""
    value = source.get(key)
    return clean(value) if isinstance(value, str) else ""


def number(source: Json, key: str) -> float | None:
    """Return the number at `key`, or None."""
    value = source.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e19 else None


def whole(source: Json, key: str) -> int | None:
    """Return the number at `key` as an integer, or None."""
    value = number(source, key)
    return None if value is None else int(value)


def mapping(value: object) -> Json:
    """Return `value` if it is a map, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def listing(value: object) -> list[object]:
    """Return `value` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key by which n2 stands before n10."""
    parts = _DIGITS.split(name)
    return tuple((0, int(p), "") if p.isdecimal() and p.isascii() else (1, 0, p) for p in parts)


def command_text(argv: object) -> str:
    """Return an argument list as one would type it; long lists are cut."""
    words = []
    arguments = listing(argv)
    for argument in arguments[:_ARGUMENTS_MAX]:
        word = clean(argument) if isinstance(argument, str) else "?"
        words.append(word if _SAFE_ARGUMENT.fullmatch(word) else "'" + word + "'")
    if len(arguments) > _ARGUMENTS_MAX:
        words.append("…")
    return " ".join(words)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """The node whose view this is."""

    name: str
    address: str
    mesh_id: str
    phase: str
    version: str
    since: float | None

    @classmethod
    def read(cls, source: Json) -> NodeRow:
        """Make a row from a view's `node`."""
        return cls(
            name=text(source, "name"),
            address=text(source, "address"),
            mesh_id=text(source, "mesh_id"),
            phase=text(source, "phase"),
            version=text(source, "version"),
            since=number(source, "since"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRow:
    """One member as this node sees it."""

    name: str
    node_id: str
    address: str
    state: str
    cause: str
    since: float | None
    rtt_ms: float | None
    slots: int | None
    used: int | None
    load: float | None
    pool: str
    class_: str
    labels: str
    version: str
    is_self: bool

    @classmethod
    def read(cls, source: Json) -> MemberRow:
        """Make a row from one of a view's `members`."""
        labels = sorted(
            (str(key), str(value)) for key, value in mapping(source.get("labels")).items()
        )
        return cls(
            name=text(source, "name"),
            node_id=text(source, "node_id"),
            address=text(source, "address"),
            state=text(source, "state"),
            cause=text(source, "cause"),
            since=number(source, "since"),
            rtt_ms=number(source, "rtt_ms"),
            slots=whole(source, "slots"),
            used=whole(source, "used"),
            load=number(source, "load"),
            pool=text(source, "pool"),
            class_=text(source, "class"),
            labels=clean(" ".join(f"{key}={value}" for key, value in labels[:_LABELS_MAX])),
            version=text(source, "version"),
            is_self=source.get("self") is True,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """One task: kept by this node, or running on it."""

    id: str
    state: str
    queue: str
    owner: str
    keeper: str
    attempt: int | None
    created: float | None
    started: float | None
    ended: float | None
    exit_code: int | None
    note: str  # what it waits for, or why it failed
    command: str

    @classmethod
    def read(cls, source: Json) -> TaskRow:
        """Make a row from one of a view's `tasks`."""
        result = mapping(source.get("result"))
        return cls(
            id=text(source, "id"),
            state=text(source, "state"),
            queue=text(source, "queue"),
            owner=text(source, "owner"),
            keeper=text(source, "keeper"),
            attempt=whole(source, "attempt"),
            created=number(source, "created"),
            started=number(source, "started"),
            ended=number(source, "ended"),
            exit_code=whole(result, "exit_code"),
            note=text(source, "waits_for") or text(result, "error"),
            command=command_text(source.get("argv")),
        )

    @classmethod
    def read_running(cls, source: Json, here: str) -> TaskRow:
        """Make a row from one of a view's `running`: another node keeps it, this one runs it."""
        return cls(
            id=text(source, "id"),
            state="leased",
            queue="",
            owner=here,
            keeper=text(source, "keeper"),
            attempt=whole(source, "attempt"),
            created=None,
            started=number(source, "since"),
            ended=None,
            exit_code=None,
            note="",
            command=command_text(source.get("argv")),
        )

    @property
    def changed(self) -> float:
        """When it last changed its state, in unix seconds; 0 when unknown."""
        return self.ended or self.started or self.created or 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """One thing that a node observed."""

    at: float
    observer: str
    kind: str
    member: str
    state: str
    cause: str
    detail: str
    evidence: str  # the decisive piece
    task_id: str

    @classmethod
    def read(cls, source: Json) -> EventRow:
        """Make a row from an event's JSON."""
        evidence = listing(source.get("evidence"))
        first = evidence[0] if evidence and isinstance(evidence[0], str) else ""
        return cls(
            at=(number(source, "at_ns") or 0.0) / 1e9,
            observer=text(source, "observer"),
            kind=text(source, "kind"),
            member=text(source, "member"),
            state=text(source, "state"),
            cause=text(source, "cause"),
            detail=text(source, "detail"),
            evidence=clean(first),
            task_id=text(source, "task_id"),
        )

    @property
    def is_routine(self) -> bool:
        """Say whether this is a task going its way: the tasks' own pane shows that."""
        is_lost = self.state == "ready" and self.cause not in {"", "first"}
        return self.kind == "task" and self.state in {"ready", "leased", "done"} and not is_lost
