"""What happened, as people and programs see it: one line of `mesh events`.

An event is a value that a core emits; the driver stamps it with the time and hands it on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from mesh.core.ids import NodeId


class EventKind(StrEnum):
    """The closed set of events. The values are part of the JSON that programs rely on."""

    FOUND = "found"  # this node founded a mesh
    ENTER = "enter"  # this node was accepted into a mesh
    JOIN = "join"  # a member was met for the first time
    RETURN = "return"  # a member that was dead or left is alive again, or restarted
    UPDATE = "update"  # a member changed its address or metadata
    SUSPECT = "suspect"
    REFUTE = "refute"  # a suspicion, or a death, was refuted
    DEAD = "dead"
    LEAVE = "leave"
    FORGET = "forget"  # a member that was gone is removed for good, at somebody's request
    CONFLICT = "conflict"  # two members with one name, or two processes with one id
    SEEK = "seek"  # no seed answered; trying again
    TASK = "task"  # a task changed its state
    WARN = "warn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that a node observed. `evidence` holds short sentences, the decisive one first."""

    kind: EventKind
    member_id: NodeId | None = None
    member: str = ""  # the member's name, "" when the event is about no member
    state: str = ""  # the member's (or task's) state after the event
    cause: str = ""
    detail: str = ""  # one line for people
    task_id: str = ""
    evidence: tuple[str, ...] = field(default=())
