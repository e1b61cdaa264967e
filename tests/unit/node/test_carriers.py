"""Every message on the carrier that is not its own, and work from somebody who is no member."""

from __future__ import annotations

from typing import Any

import pytest

from mesh.core.ballot import Ballot
from mesh.core.effects import (
    Commit,
    Emit,
    Persist,
    SendDatagram,
    StartExchange,
    StartProcess,
    StopProcess,
)
from mesh.core.ids import NodeId, low32
from mesh.membership.swim import Swim
from mesh.node.mail import DATAGRAMS
from mesh.node.node import Node
from mesh.node.view import View
from mesh.node.work import Work
from mesh.wire import (
    contest_messages,
    parcel_messages,
    register_messages,
    repair_messages,
    roster_messages,
    swim_messages,
    task_messages,
    work_messages,
)
from mesh.wire.contest_messages import (
    AskContest,
    AskVitals,
    Bid,
    Call,
    Called,
    ContestTold,
    Settled,
    VitalsTold,
)
from mesh.wire.packet import decode_packet
from mesh.wire.parcel_messages import Taken
from mesh.wire.records import Cause, Metadata, Vitals
from mesh.wire.register_messages import (
    Accept,
    Accepted,
    Held,
    Leased,
    Outbid,
    Owner,
    Prepare,
    Promised,
    Read,
    Renew,
    Renewed,
    Standing,
    Value,
    WrongEpoch,
)
from mesh.wire.repair_messages import (
    BUCKETS,
    SUM_BYTES,
    Compare,
    Item,
    Lack,
    Purge,
    Purged,
    Ship,
    Shipped,
    Stage,
    Sums,
)
from mesh.wire.roster_messages import AskRoster, Entry, Fetch, Page, Roster, Seal, Sealed
from mesh.wire.swim_messages import (
    Ack,
    Alive,
    Dead,
    Forget,
    Glance,
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
from mesh.wire.task_messages import (
    AttemptCause,
    CancelAnswer,
    CancelRun,
    CancelVerdict,
    Decline,
    Follow,
    FollowEnd,
    FollowReason,
    Named,
    Notice,
    Offer,
    OfferAnswer,
    Piece,
    TaskState,
    Watch,
)
from mesh.wire.work_messages import SlotsFree
from tests.unit.membership.pump import address, card_bytes, node_id
from tests.unit.node.talk import NOW, ask, founder, submit, tell

KEY, BALLOT, VALUE = b"task/t", Ballot(0, 1, 1, node_id(2)), Value(Standing.OPEN, b"x")
OFFER = Offer(task_id="u", ballot=BALLOT, seq=0, attempt=1, cause=AttemptCause.FIRST)
EXAMPLES: tuple[object, ...] = (
    Ping(1, low32(node_id(1)), 0),
    PingReq(1, node_id(3), address(3)),
    Ack(1, NodeId(0), 1, Vitals(1, 30, 20)),
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
    Glance(1),
    SlotsFree(1),
    Call(OFFER, 0, 1_000, 50_000, (Called(node_id(1), 1, 0, 0),)),
    Bid("u", 1, 0, 1),
    Settled("u", 1),
    AskVitals(1),
    VitalsTold(1, 0),
    AskContest("u"),
    ContestTold("u", None),
    Prepare(KEY, BALLOT, 1),
    Accept(KEY, 1, BALLOT, 0, VALUE),
    Renew(1, 1, ((KEY, BALLOT),)),
    Read(KEY, 1, 1),
    Promised(KEY, BALLOT, BALLOT, 0, VALUE),
    Accepted(KEY, 1, BALLOT, 0),
    Leased(KEY, BALLOT, 1.0),
    Outbid(KEY, BALLOT, BALLOT),
    WrongEpoch(KEY, BALLOT, 1),
    Renewed(1, 1, (0,), ((1, BALLOT),)),
    Held(KEY, 1, 1, BALLOT, 0, VALUE),
    Seal(1),
    Fetch(1, b""),
    Sealed(1, 1),
    Page(1, b"", (Entry(KEY, BALLOT, BALLOT, 0, VALUE, False),), True),
    Roster(2, (node_id(1), node_id(2))),
    AskRoster(0),
    Compare(1, 5),
    Sums(1, bytes(BUCKETS * SUM_BYTES), is_answer=False),
    Lack(1, 1, 0, b"", b""),
    Ship(1, 1, (Shipped(KEY, BALLOT, 0, VALUE),), True),
    Purge(1, 1, Stage.ASK, 0, (Item(KEY, BALLOT, 0),)),
    Purged(1, 1, Stage.ASK, b"\x01", 0),
    OFFER,
    OfferAnswer("t", 1, Decline.NONE, 1),
    CancelRun("t", 1),
    CancelAnswer("t", 1, CancelVerdict.OVER),
    Follow("t", 1, 0, 8),
    Piece("t", 1, 0, 0, 1, b"x"),
    FollowEnd("t", 1, 0, FollowReason.ENDED),
    Watch("t", 60),
    Named(BALLOT, VALUE),
    Notice("t", BALLOT, 0, TaskState.LEASED, 1, Owner(node_id(2), 1)),
    Taken(),
)
CHANGES = (Commit, Emit, Persist, SendDatagram, StartExchange, StartProcess, StopProcess)
TABLES = (
    swim_messages,
    work_messages,
    register_messages,
    repair_messages,
    roster_messages,
    task_messages,
    contest_messages,
    parcel_messages,
)
every_message = pytest.mark.parametrize("message", EXAMPLES, ids=lambda m: type(m).__name__)


def member_with_a_task() -> Node:
    """Host 1 knows host 2, and votes on a task that it runs itself."""
    node = founder()
    tell(node, 2, Alive(card_bytes(2, meta=Metadata(slots=4))))
    submit(node, "t")
    return node


def seen(node: Node) -> tuple[View, list[dict[str, Any]]]:
    """Return what is seen of a node now: a view makes its list of tasks when that is asked for."""
    view = node.view(NOW)
    return view, view.tasks


def test_there_is_an_example_of_every_message() -> None:
    kinds = [kind for table in TABLES for kind, _ in table.SCHEMAS.values()]
    assert len(kinds) == len(set(kinds))
    assert {type(example) for example in EXAMPLES} == set(kinds)


def test_each_message_belongs_to_membership_or_to_work_or_answers_a_parcel() -> None:
    kinds = {kind for table in TABLES for kind, _ in table.SCHEMAS.values()}
    swim = {kind for kind, _ in swim_messages.SCHEMAS.values()}
    assert kinds - swim - {Taken} == Work.MESSAGES
    assert swim >= Swim.DATAGRAMS | Swim.REQUESTS


@every_message
def test_message_that_is_no_datagram_changes_nothing_in_one(message: object) -> None:
    if type(message) in DATAGRAMS:
        return
    for sender in (2, 9):  # a member, and a stranger
        node = member_with_a_task()
        before = seen(node)
        effects = tell(node, sender, message)
        assert node.counters.pop("dropped_misplaced") == 1
        assert not any(isinstance(effect, CHANGES) for effect in effects)
        assert seen(node) == before


def test_misplaced_message_takes_nothing_from_the_others_in_its_packet() -> None:
    node = member_with_a_task()
    tell(node, 2, Alive(card_bytes(3)), SyncRoot(1), SlotsFree(1))
    assert node.counters["dropped_misplaced"] == 1
    assert len(node.view(NOW).members) == 3


@every_message
def test_message_that_is_no_request_changes_nothing_on_a_stream(message: object) -> None:
    if type(message) in Swim.REQUESTS | Work.MESSAGES:
        return
    for sender in (2, 9):
        node = member_with_a_task()
        before = seen(node)
        assert ask(node, sender, message) == (None, [])
        assert node.counters.pop("dropped_misplaced") == 1
        assert seen(node) == before


@every_message
def test_message_of_work_means_the_same_on_either_carrier(message: object) -> None:
    if type(message) not in Work.MESSAGES:
        return
    one, other = member_with_a_task(), member_with_a_task()
    in_datagram = tell(one, 2, message)
    reply, on_stream = ask(other, 2, message)
    assert reply == Taken()
    assert in_datagram == on_stream
    assert seen(one) == seen(other)


@every_message
def test_work_of_a_stranger_is_not_taken_on_either_carrier(message: object) -> None:
    if type(message) not in Work.MESSAGES:
        return
    node = member_with_a_task()
    before = seen(node)
    effects = tell(node, 9, message)  # membership may ask who that is
    sent = [effect for effect in effects if isinstance(effect, SendDatagram | StartExchange)]
    said = [type(one) for carrier in sent for one in decode_packet(carrier.data).messages]
    assert not Work.MESSAGES & set(said)
    assert not any(isinstance(effect, CHANGES) for effect in effects if effect not in sent)
    assert ask(node, 9, message) == (Taken(), [])
    assert node.counters.pop("dropped_stranger") == 2
    assert seen(node) == before


@every_message
def test_work_that_comes_from_outside_under_the_own_id_is_not_taken(message: object) -> None:
    if type(message) not in Work.MESSAGES:
        return
    node = member_with_a_task()
    before = seen(node)
    assert tell(node, 1, message) == []
    assert ask(node, 1, message) == (Taken(), [])
    assert node.counters.pop("dropped_own") == 2
    assert seen(node) == before
