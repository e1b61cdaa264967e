"""Every message on the carrier that is not its own, and work from somebody who is no member."""

from __future__ import annotations

import pytest

from mesh.core.effects import Emit, Persist, SendDatagram, StartExchange, StartProcess
from mesh.core.ids import NodeId, low32
from mesh.membership.swim import Swim
from mesh.node.node import Node
from mesh.wire import swim_messages, work_messages
from mesh.wire.records import Cause, Metadata, Vitals
from mesh.wire.swim_messages import (
    Ack,
    Alive,
    Dead,
    Forget,
    Join,
    Left,
    Lifeline,
    LifelineKept,
    Nack,
    Ping,
    PingReq,
    Reached,
    ReachedAnswer,
    Refused,
    Suspect,
    SyncBuckets,
    SyncDelta,
    SyncOffer,
    SyncRoot,
    SyncSame,
    Waiting,
    Welcome,
)
from mesh.wire.work_messages import (
    CancelRun,
    CancelTask,
    Decline,
    Offer,
    OfferAnswer,
    OutputPiece,
    Released,
    Report,
    ReportAnswer,
    RunQuery,
    SlotsFree,
    Spec,
    TaskList,
    TaskQuery,
    Verdict,
)
from mesh.work.work import Work
from tests.unit.membership.pump import address, card_bytes, node_id
from tests.unit.node.talk import NOW, ask, started, submit, tell

OFFER = Offer(Spec(task_id="t", argv=("true",)), 1, 1)
EXAMPLES: tuple[object, ...] = (
    Ping(1, low32(node_id(1)), 0),
    PingReq(1, node_id(3), address(3)),
    Ack(1, NodeId(0), 1, Vitals(1, 30)),
    Alive(card_bytes(3)),
    Suspect(node_id(2), 1, 0, node_id(3)),
    Nack(1),
    Dead(node_id(2), 1, 0, Cause.SILENT, node_id(3)),
    Left(node_id(2), 1, 0),
    Forget(node_id(2), 1, 0, node_id(3), 0),
    Join(card_bytes(9), 0, 0, ()),
    Welcome(0, ()),
    Waiting(()),
    Refused("self", "no"),
    SyncRoot(1),
    SyncSame(),
    SyncBuckets(b""),
    SyncOffer((0,), ()),
    SyncDelta(()),
    Reached(1),
    ReachedAnswer("", ""),
    Lifeline(1),
    LifelineKept(),
    OFFER,
    OfferAnswer(Decline.NONE, 1, 1),
    OutputPiece("t", 1, 0, 1, b"x"),
    Report("t", 1, 0, "", 1),
    ReportAnswer(Verdict.STALE),
    CancelRun("t", 1),
    SlotsFree(1),
    TaskQuery(""),
    TaskList(()),
    CancelTask("t"),
    RunQuery("t", 1),
    Released("t", 1, "it is leaving"),
)
CHANGES = (Emit, Persist, SendDatagram, StartExchange, StartProcess)


def member_with_a_task() -> Node:
    """Host 1 knows host 2 and keeps a task that it runs itself."""
    node = started()
    tell(node, 2, Alive(card_bytes(2, meta=Metadata(slots=4))))
    submit(node, "t")
    return node


def test_there_is_an_example_of_every_message() -> None:
    tables = {**swim_messages.SCHEMAS, **work_messages.SCHEMAS}
    assert {type(example) for example in EXAMPLES} == {kind for kind, _ in tables.values()}


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda m: type(m).__name__)
def test_message_that_is_no_datagram_changes_nothing_in_one(message: object) -> None:
    if type(message) in Swim.DATAGRAMS | Work.DATAGRAMS:
        return
    for sender in (2, 9):  # a member, and a stranger
        node = member_with_a_task()
        before = node.view(NOW)
        effects = tell(node, sender, message)
        assert node.counters.pop("dropped_misplaced") == 1
        assert not any(isinstance(effect, CHANGES) for effect in effects)
        assert node.view(NOW) == before


def test_misplaced_message_takes_nothing_from_the_others_in_its_packet() -> None:
    node = member_with_a_task()
    tell(node, 2, Alive(card_bytes(3)), OFFER, SlotsFree(1))
    assert node.counters["dropped_misplaced"] == 1
    assert len(node.view(NOW).members) == 3


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda m: type(m).__name__)
def test_message_that_is_no_request_changes_nothing_on_a_stream(message: object) -> None:
    if type(message) in Swim.REQUESTS | Work.REQUESTS:
        return
    for sender in (2, 9):
        node = member_with_a_task()
        before = node.view(NOW)
        assert ask(node, sender, message) == (None, [])
        assert node.counters.pop("dropped_misplaced") == 1
        assert node.view(NOW) == before


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda m: type(m).__name__)
def test_work_of_a_stranger_is_not_taken_on_either_carrier(message: object) -> None:
    node = member_with_a_task()
    before = node.view(NOW)
    if type(message) in Work.REQUESTS:
        assert ask(node, 9, message) == (None, [])
    elif type(message) in Work.DATAGRAMS:
        tell(node, 9, message)
    else:
        return
    assert node.counters.pop("dropped_stranger") == 1
    assert node.view(NOW) == before


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda m: type(m).__name__)
def test_work_that_comes_from_outside_under_the_own_id_is_not_taken(message: object) -> None:
    if type(message) not in Work.REQUESTS:
        return
    node = member_with_a_task()
    before = node.view(NOW)
    assert ask(node, 1, message) == (None, [])
    assert node.counters.pop("dropped_own") == 1
    assert node.view(NOW) == before
