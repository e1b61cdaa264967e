"""The rows that panes show, made from the node's JSON: typed, cleaned, and tolerant.

A row holds what a line of a list needs; `source` is the JSON itself, from which a page of details reads
the rest when somebody opens it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from mesh.core.member_class import class_words
from mesh.tasks.words import FROZEN, state_word, stretch
from mesh.tui.cells import clean
from mesh.tui.reading import Json, command_text, listing, mapping, number, text, texts, whole

_LABELS_MAX: Final = 12
_SAID_CHARS_MAX: Final = 1_000
"""What an event tells: more than the widest screen has room for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """The node whose view this is."""

    name: str
    address: str
    mesh_id: str
    phase: str
    version: str
    since: float | None
    pid: int | None
    health: int | None
    """Lifeguard's health score: 0 is well, 8 the worst; None when the node does not tell."""

    voters: int
    voters_alive: int | None
    """None: it does not say."""

    """How many keep the mesh's records, as far as this node knows; 0: it knows of none."""

    @classmethod
    def read(cls, source: Json) -> NodeRow:
        """Make a row from a view's `node`."""
        registers = mapping(source.get("registers"))
        return cls(
            name=text(source, "name"),
            address=text(source, "address"),
            mesh_id=text(source, "mesh_id"),
            phase=text(source, "phase"),
            version=text(source, "version"),
            since=number(source, "since"),
            pid=whole(source, "pid"),
            health=whole(source, "health"),
            voters=len(listing(registers.get("voters"))),
            voters_alive=whole(registers, "voters_alive") if "voters_alive" in registers else None,
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
    """Its class, the queues that it is dedicated to, and whether it takes work, in words."""

    closed: str
    """Why it takes no work, in a word; "": it does, or that is not known."""

    labels: str
    version: str
    is_self: bool
    suspected_by: tuple[str, ...] = ()
    """Who accuses it while it is a suspect, the first of them first."""

    source: Json = field(default_factory=dict, repr=False, compare=False)

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
            class_=class_words(
                text(source, "class"), texts(source.get("queues")), text(source, "availability")
            ),
            closed=text(source, "availability").removeprefix("open"),
            labels=clean(" ".join(f"{key}={value}" for key, value in labels[:_LABELS_MAX])),
            version=text(source, "version"),
            is_self=source.get("self") is True,
            suspected_by=texts(source.get("suspected_by")),
            source=source,
        )

    @property
    def key(self) -> str:
        """What this member is told apart by while its row moves."""
        return self.node_id or self.name

    @property
    def is_living(self) -> bool:
        """Say whether it answers, or may still."""
        return self.state in {"alive", "suspect"}

    @property
    def slot_ratio(self) -> float | None:
        """The share of its slots that are taken; None when that is not known."""
        if not self.is_living or not self.slots or self.used is None:
            return None
        return self.used / self.slots


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """One task: kept by this node as one of its voters, or running on it.

    `state` is the word that people use: what is leased runs, or is lost.
    """

    id: str
    state: str
    queue: str
    owner: str
    origin: str  # the node that took it in
    attempt: int | None
    created: float | None
    started: float | None
    ended: float | None
    lost: float | None
    """When its last attempt ended, was taken back or was seen lost; None while it runs, or when there was none."""

    exit_code: int | None
    note: str  # what it waits for, why it failed, or that it is frozen
    command: str
    is_guest: bool = False
    """Whether only others keep it, and this one runs it."""

    source: Json = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def read(cls, source: Json) -> TaskRow:
        """Make a row from one of a view's `tasks`."""
        result = mapping(source.get("result"))
        attempts = listing(source.get("attempts"))
        state = state_word(text(source, "state"), is_lost=source.get("lost") is True)
        ended = number(mapping(attempts[-1]), "ended") if attempts else None
        return cls(
            id=text(source, "id"),
            state=state,
            queue=text(source, "queue"),
            owner=text(source, "owner"),
            origin=text(source, "keeper"),
            attempt=whole(source, "attempt"),
            created=number(source, "created"),
            started=number(source, "started"),
            ended=number(source, "ended"),
            lost=number(source, "lost_since") if state == "lost" else ended,
            exit_code=whole(result, "exit_code"),
            note=text(source, "waits_for") or text(result, "error") or _frozen(source, "frozen"),
            command=command_text(source.get("argv")),
            source=source,
        )

    @classmethod
    def read_running(cls, source: Json, here: str) -> TaskRow:
        """Make a row from one of a view's `running`: others keep it, this one runs it."""
        return cls(
            id=text(source, "id"),
            state="running",
            queue="",
            owner=here,
            origin="",
            attempt=whole(source, "attempt"),
            created=None,
            started=number(source, "since"),
            ended=None,
            lost=None,
            exit_code=None,
            note=_frozen(source, "is_frozen"),
            command=command_text(source.get("argv")),
            is_guest=True,
            source=source,
        )

    @property
    def key(self) -> str:
        """What this task is told apart by while its row moves."""
        return self.id

    @property
    def is_over(self) -> bool:
        """Say whether it has ended, one way or another."""
        return self.state in {"done", "failed", "cancelled"}

    @property
    def stretch(self) -> tuple[float | None, float | None]:
        """From when to when it waits, runs or ran, in unix seconds; None: unknown, or still to come."""
        return stretch(
            self.state,
            created=self.created,
            started=self.started,
            ended=self.ended,
            lost=self.lost,
        )

    def lasting_s(self, at: float) -> float | None:
        """Return how long it has waited, runs, or ran, at unix time `at`; None when that is not known."""
        begin, end = self.stretch
        return (end or at) - begin if begin else None

    @property
    def rank(self) -> tuple[int, float, str]:
        """Where it stands among all: what runs, what waits, the next to run first, what is not due, what is over."""
        if self.state == "running":
            return 0, -(self.started or 0.0), self.id
        if self.state in {"ready", "lost"}:
            return 1, self.created or 0.0, self.id
        if self.state == "scheduled":
            return 2, number(self.source, "not_before") or 0.0, self.id
        return 3, -(self.ended or self.started or self.created or 0.0), self.id


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """One thing that a node observed."""

    at: float
    observer: str
    kind: str
    member: str
    member_id: str
    state: str
    cause: str
    detail: str
    evidence: tuple[str, ...]
    """Short sentences, the decisive one first."""

    task_id: str
    accusers: tuple[str, ...] = ()
    """Who accuses the member that this is about, or did until now, the first of them first."""

    key: str = ""
    """What this event is told apart by: the board numbers them as they come."""

    @classmethod
    def read(cls, source: Json, key: str = "") -> EventRow:
        """Make a row from an event's JSON."""
        return cls(
            at=(number(source, "at_ns") or 0.0) / 1e9,
            observer=text(source, "observer"),
            kind=text(source, "kind"),
            member=text(source, "member"),
            member_id=text(source, "member_id"),
            state=state_word(text(source, "state")),
            cause=text(source, "cause"),
            detail=text(source, "detail", _SAID_CHARS_MAX),
            evidence=texts(source.get("evidence"), chars_max=_SAID_CHARS_MAX),
            task_id=text(source, "task_id"),
            accusers=_accusers(source),
            key=key,
        )

    @property
    def subject(self) -> str:
        """The member that this is about: its id, else its name, "" when it is about none."""
        return self.member_id or self.member

    @property
    def proof(self) -> str:
        """The decisive piece of evidence, "" when there is none."""
        return self.evidence[0] if self.evidence else ""

    @property
    def is_routine(self) -> bool:
        """Say whether this is a task going its way: the tasks' own pane shows that."""
        is_lost = self.state == "ready" and self.cause not in {"", "first"}
        is_usual = self.state in {"scheduled", "ready", "running", "done"}
        return self.kind == "task" and is_usual and not is_lost


def _frozen(source: Json, key: str) -> str:
    """Return that a run is held frozen here, if its JSON says so under this key."""
    return f"frozen: {FROZEN}" if source.get(key) is True else ""


def _accusers(event: Json) -> tuple[str, ...]:
    accuser = text(event, "accuser")
    return (accuser, *texts(event.get("confirmed_by"))) if accuser else ()
