"""What others rely on: names, codes and keys, as they were promised.

A snapshot is changed on purpose only: adding to one is fine; a message's code never gets another
meaning, and a key of the JSON never goes away.
"""

from __future__ import annotations

import typing

import mesh
from mesh.core import effects
from mesh.core.address import Address
from mesh.core.events import Event, EventKind, EvidenceKind
from mesh.core.ids import NodeId
from mesh.node.config import Metadata, NodeConfig, profile
from mesh.node.node import Node
from mesh.node.view import View
from mesh.runtime.eventlog import event_json
from mesh.tasks.commands import New, Submit
from mesh.wire import (
    parcel_messages,
    register_messages,
    repair_messages,
    roster_messages,
    swim_messages,
    task_messages,
    work_messages,
)
from mesh.wire.packet import HEADER, MAGIC, VERSIONS
from mesh.wire.task_messages import AttemptCause, TaskState
from tests.unit.node.talk import carry_out

CODES = {
    1: "Ping",
    2: "PingReq",
    3: "Ack",
    4: "Alive",
    5: "Suspect",
    6: "Dead",
    7: "Left",
    8: "Nack",
    9: "Join",
    10: "Welcome",
    11: "Waiting",
    12: "Refused",
    13: "SyncRoot",
    14: "SyncSame",
    15: "SyncBuckets",
    16: "SyncOffer",
    17: "SyncDelta",
    18: "Forget",
    19: "Reached",
    20: "ReachedAnswer",
    21: "Lifeline",
    22: "LifelineKept",
    23: "Glance",
    38: "SlotsFree",
    64: "Prepare",
    65: "Accept",
    66: "Renew",
    67: "Read",
    68: "Promised",
    69: "Accepted",
    70: "Leased",
    71: "Outbid",
    72: "WrongEpoch",
    73: "Renewed",
    74: "Held",
    75: "Seal",
    76: "Fetch",
    77: "Sealed",
    78: "Page",
    79: "Roster",
    80: "Offer",
    81: "OfferAnswer",
    82: "CancelRun",
    83: "CancelAnswer",
    84: "Follow",
    85: "Piece",
    86: "FollowEnd",
    87: "Watch",
    88: "Notice",
    89: "Named",
    96: "AskRoster",
    97: "Taken",
    98: "Compare",
    99: "Sums",
    100: "Lack",
    101: "Ship",
    102: "Purge",
    103: "Purged",
}
SPENT_CODES = {32, 33, 34, 35, 36, 37, 39, 40, 41, 42, 43}
"""They meant something once. A node of that time would take them for what they were."""

EFFECTS = {
    "SendDatagram",
    "StartExchange",
    "OpenLifeline",
    "CloseLifeline",
    "KeepOpen",
    "TryLine",
    "HangUp",
    "Resolve",
    "Persist",
    "Commit",
    "Remember",
    "Emit",
    "Answer",
    "StartProcess",
    "ReadOutput",
    "StopProcess",
    "GuardProcess",
    "FreezeProcess",
    "ThawProcess",
    "TaskChanged",
    "WriteObituary",
    "Stop",
}
EVENT_KINDS = {
    "found", "enter", "join", "return", "update", "suspect", "refute", "dead", "leave", "forget",
    "conflict", "seek", "task", "hook", "warn",
}  # fmt: skip
EVIDENCE_KINDS = {
    "no_ack", "no_indirect_ack", "no_tcp", "lifeline_closed", "connection_refused", "port_unreachable", "suspected", "confirmed",
    "declared", "learned", "no_refutation", "obituary", "farewell", "forget_asked", "new_session", "same_session",
    "moved",
}  # fmt: skip
EVENT_KEYS = {
    "at_ns", "observer", "kind", "member", "member_id", "state", "cause", "evidence", "evidence_kinds",
    "accuser", "confirmed_by", "detail", "task_id",
}  # fmt: skip
MEMBER_KEYS = {
    "name", "node_id", "address", "state", "cause", "incarnation", "boot", "since", "rtt_ms", "slots",
    "used", "load", "pool", "class", "labels", "suspected_by",
}  # fmt: skip
TASK_KEYS = {
    "id", "state", "queue", "kind", "home", "owner", "attempt", "created", "cause", "attempts", "result",
}  # fmt: skip
NODE_KEYS = {
    "name", "node_id", "mesh_id", "address", "boot", "incarnation", "phase", "version", "slots", "used",
    "counters", "since", "lifelines", "registers",
}  # fmt: skip
STATES = {"ready", "scheduled", "leased", "done", "failed", "cancelled"}
CAUSES = {"first", "retry", "lapse", "crash", "released", "forced", "recovered"}
TABLES = (
    swim_messages,
    work_messages,
    register_messages,
    roster_messages,
    repair_messages,
    task_messages,
    parcel_messages,
)


def founder() -> View:
    """What a node sees that founded a mesh and took one task."""
    config = NodeConfig(
        node_id=NodeId(1),
        boot=1,
        name="alpha",
        address=Address("127.0.0.1", 7946),
        meta=Metadata(),
        swim=profile("local"),
    )
    node = Node(config, seed=1)
    new = New(work_messages.Spec(task_id="t", argv=("true",)))
    carry_out(node, node.start(0.0), 0.0)
    carry_out(node, node.handle_command(0.0, Submit(1, new)), 0.0)
    return node.view(0.0)


def test_the_package_offers_what_it_always_did() -> None:
    assert set(mesh.__all__) >= {"__version__"}
    assert all(hasattr(mesh, name) for name in mesh.__all__)


def test_a_code_never_gets_another_meaning() -> None:
    entries = [entry for table in TABLES for entry in table.SCHEMAS.items()]
    assert {code: kind.__name__ for code, (kind, _) in entries} == CODES
    assert len(entries) == len(CODES), "a code of two messages"
    assert not SPENT_CODES & CODES.keys()


def test_the_header_is_the_same_in_every_version() -> None:
    assert (MAGIC, HEADER.format, VERSIONS) == (0x4D, ">BBQQ", (2, 2))


def test_the_effects_are_a_closed_set() -> None:
    assert {kind.__name__ for kind in typing.get_args(effects.Effect)} == EFFECTS


def test_the_kinds_of_events_are_a_closed_set() -> None:
    assert {str(kind) for kind in EventKind} == EVENT_KINDS


def test_no_kind_of_evidence_goes_away() -> None:
    assert {str(kind) for kind in EvidenceKind} >= EVIDENCE_KINDS


def test_events_have_the_keys_that_programs_rely_on() -> None:
    assert event_json(Event(kind=EventKind.SEEK), 1, "n1").keys() >= EVENT_KEYS


def test_the_words_for_tasks_are_closed_sets() -> None:
    assert {state.word for state in TaskState} == STATES
    assert {cause.word for cause in AttemptCause} == CAUSES


def test_members_have_the_keys_that_programs_rely_on() -> None:
    (member,) = founder().members
    assert member.keys() >= MEMBER_KEYS


def test_a_node_has_the_keys_that_programs_rely_on() -> None:
    assert founder().node.keys() >= NODE_KEYS


def test_tasks_have_the_keys_that_programs_rely_on() -> None:
    view = founder()
    (task,) = view.tasks
    assert task.keys() >= TASK_KEYS
    assert view.task_counts.keys() == STATES
