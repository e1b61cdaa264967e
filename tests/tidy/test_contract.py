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
from mesh.wire import swim_messages, work_messages
from mesh.wire.packet import HEADER, MAGIC, VERSIONS
from mesh.work.commands import Submit
from mesh.work.keeping.task import AttemptCause, TaskState

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
    32: "Offer",
    33: "OfferAnswer",
    34: "OutputPiece",
    35: "Report",
    36: "ReportAnswer",
    37: "CancelRun",
    38: "SlotsFree",
    39: "TaskQuery",
    40: "TaskList",
    41: "CancelTask",
    42: "RunQuery",
    43: "Released",
}
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
    "Remember",
    "Emit",
    "Answer",
    "StartProcess",
    "ReadOutput",
    "StopProcess",
    "TaskChanged",
    "Stop",
}
EVENT_KINDS = {
    "found", "enter", "join", "return", "update", "suspect", "refute", "dead", "leave", "forget",
    "conflict", "seek", "task", "warn",
}  # fmt: skip
EVIDENCE_KINDS = {
    "no_ack", "no_indirect_ack", "no_tcp", "lifeline_closed", "connection_refused", "port_unreachable", "suspected", "confirmed",
    "declared", "learned", "no_refutation", "farewell", "forget_asked", "new_session", "same_session",
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
    "counters", "since", "lifelines",
}  # fmt: skip
STATES = {"ready", "leased", "done", "failed", "cancelled"}


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
    node.start(0.0)
    node.handle_command(0.0, Submit(1, work_messages.Spec(task_id="t", argv=("true",))))
    return node.view(0.0)


def test_the_package_offers_what_it_always_did() -> None:
    assert set(mesh.__all__) >= {"__version__"}
    assert all(hasattr(mesh, name) for name in mesh.__all__)


def test_a_code_never_gets_another_meaning() -> None:
    tables = {**swim_messages.SCHEMAS, **work_messages.SCHEMAS}
    assert {code: kind.__name__ for code, (kind, _) in tables.items()} == CODES


def test_the_header_is_the_same_in_every_version() -> None:
    assert (MAGIC, HEADER.format, VERSIONS) == (0x4D, ">BBQQ", (1, 1))


def test_the_effects_are_a_closed_set() -> None:
    assert {kind.__name__ for kind in typing.get_args(effects.Effect)} == EFFECTS


def test_the_kinds_of_events_are_a_closed_set() -> None:
    assert {str(kind) for kind in EventKind} == EVENT_KINDS


def test_no_kind_of_evidence_goes_away() -> None:
    assert {str(kind) for kind in EvidenceKind} >= EVIDENCE_KINDS


def test_events_have_the_keys_that_programs_rely_on() -> None:
    assert event_json(Event(kind=EventKind.SEEK), 1, "n1").keys() >= EVENT_KEYS


def test_the_words_for_tasks_are_closed_sets() -> None:
    assert {str(state) for state in TaskState} == STATES
    assert {str(cause) for cause in AttemptCause} == {"first", "crash", "released", "lapse"}


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
