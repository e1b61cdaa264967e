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
    HOOK = "hook"  # the hook of a shortage is run here, or has ended well
    WARN = "warn"


class EvidenceKind(StrEnum):
    """What kinds of evidence there are; more may be added. The values are part of that JSON too."""

    NO_ACK = "no_ack"  # no answer to a ping
    NO_INDIRECT_ACK = "no_indirect_ack"  # nor through others
    NO_TCP = "no_tcp"  # nor over TCP
    LIFELINE_CLOSED = "lifeline_closed"
    CONNECTION_REFUSED = "connection_refused"  # its host takes no connection at its port
    PORT_UNREACHABLE = "port_unreachable"  # nor any datagram
    SUSPECTED = "suspected"  # another member's word
    CONFIRMED = "confirmed"  # more than one accuse it
    DECLARED = "declared"  # another member's verdict
    LEARNED = "learned"  # it came out when two members compared what they know
    NO_REFUTATION = "no_refutation"  # it had time to refute, and did not
    OBITUARY = "obituary"  # its guardian's word that nothing of that session runs any more
    FAREWELL = "farewell"  # its own word that it leaves
    FORGET_ASKED = "forget_asked"  # somebody asked to forget it
    NEW_SESSION = "new_session"  # it is back as a new process
    SAME_SESSION = "same_session"  # it is back as the process that it was
    MOVED = "moved"  # it was at another address before


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that a node observed. `evidence` holds short sentences, the decisive one first.

    `evidence_kinds` says of what kinds they are, each once. Of a suspicion, and of what came of it,
    `accuser` is the name of the first that this node heard accuse the member, itself perhaps, and
    `confirmed_by` are those after it.
    """

    kind: EventKind
    member_id: NodeId | None = None
    member: str = ""  # the member's name, "" when the event is about no member
    state: str = ""  # the member's (or task's) state after the event
    cause: str = ""
    detail: str = ""  # one line for people
    task_id: str = ""
    evidence: tuple[str, ...] = field(default=())
    evidence_kinds: tuple[EvidenceKind, ...] = ()
    accuser: str = ""
    confirmed_by: tuple[str, ...] = ()
