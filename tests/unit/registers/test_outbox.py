"""The outbox: what rests on a commit leaves after it, in order; what does not, at once."""

import pytest

from mesh.core.ballot import Ballot
from mesh.errors import LocalProtocolError
from mesh.registers.asker import Done, Late
from mesh.registers.outbox import PURGED, Changed, Commit, Message, Outbox, Post
from mesh.registers.record import NOTHING, Record
from mesh.registers.voter import Forget, StoreEpoch
from mesh.wire.register_messages import Held, Read
from tests.unit.registers.asked import EPOCH, KEY, OPEN, A, B, C

OTHER = b"other"
DONE = Done("tag", Late(may_be_chosen=False))


def answer(tag: int) -> Held:
    return Held(KEY, EPOCH, tag, Ballot(1, EPOCH, 1, B), 0, OPEN)


def record(n: int) -> Record:
    return Record(promised=Ballot(1, EPOCH, n, B))


class Noting:
    """An outbox of A that notes what is delivered to A itself, and answers reads by the way."""

    def __init__(self) -> None:
        self.delivered: list[Message] = []
        self.outbox = Outbox(A, self._deliver)

    def _deliver(self, now: float, message: Message) -> None:
        self.delivered.append(message)
        if isinstance(message, Read):
            self.outbox.send(A, answer(message.tag), waits=True)


@pytest.fixture
def outbox() -> Outbox:
    return Noting().outbox


def test_nothing_was_put_in_and_nothing_comes_out(outbox: Outbox) -> None:
    assert outbox.take() == []


def test_all_that_is_to_be_stored_is_one_commit(outbox: Outbox) -> None:
    outbox.store(KEY, record(1))
    outbox.set_aside({"numbers": 7})
    outbox.store(OTHER, record(2))
    outbox.store(KEY, record(3))
    outbox.store_epoch(StoreEpoch(5, 4, ((b"third", record(4)),)))
    records = ((KEY, record(1)), (OTHER, record(2)), (KEY, record(3)), (b"third", record(4)))
    assert outbox.take() == [Commit(1, records, {"numbers": 7}, (5, 4))]
    assert outbox.take() == []


def test_commits_are_numbered_in_order(outbox: Outbox) -> None:
    for number in (1, 2, 3):
        outbox.store(KEY, record(number))
        assert outbox.take() == [Commit(number, ((KEY, record(number)),), {}, None)]


def test_what_waits_leaves_with_the_commit_before_it(outbox: Outbox) -> None:
    outbox.store(KEY, record(1))
    outbox.send(B, answer(1), waits=True)
    assert [type(one) for one in outbox.take()] == [Commit]
    outbox.store(OTHER, record(1))
    outbox.send(B, answer(2), waits=True)
    assert [type(one) for one in outbox.take()] == [Commit]
    outbox.check_invariants()
    outbox.committed(1)
    assert outbox.take() == [Post(B, (answer(1),)), Changed(KEY, record(1))]
    outbox.committed(2)
    assert outbox.take() == [Post(B, (answer(2),)), Changed(OTHER, record(1))]
    outbox.check_invariants()


def test_what_is_put_in_before_a_take_waits_for_the_commit_of_that_take(outbox: Outbox) -> None:
    outbox.store(KEY, record(1))
    outbox.take()
    outbox.store(KEY, record(2))
    outbox.send(B, answer(2), waits=True)
    outbox.committed(1)
    # The second was not even handed out when the first was done.
    assert outbox.take() == [Commit(2, ((KEY, record(2)),), {}, None), Changed(KEY, record(1))]
    outbox.committed(2)
    assert outbox.take() == [Post(B, (answer(2),)), Changed(KEY, record(2))]


def test_what_stores_nothing_itself_waits_as_well(outbox: Outbox) -> None:
    outbox.store(KEY, record(1))
    outbox.take()
    outbox.send(B, answer(1), waits=True)
    assert outbox.take() == []
    outbox.committed(1)
    assert outbox.take() == [Post(B, (answer(1),)), Changed(KEY, record(1))]


def test_what_does_not_wait_leaves_at_once(outbox: Outbox) -> None:
    outbox.store(KEY, record(1))
    outbox.send(B, answer(1), waits=True)
    outbox.send(B, Read(KEY, EPOCH, 1), waits=False)
    outbox.say(DONE)
    commit = Commit(1, ((KEY, record(1)),), {}, None)
    assert outbox.take() == [commit, Post(B, (Read(KEY, EPOCH, 1),)), DONE]


def test_what_waits_leaves_at_once_when_all_is_durable(outbox: Outbox) -> None:
    outbox.store(KEY, record(1))
    outbox.take()
    outbox.committed(1)
    outbox.take()
    outbox.send(B, answer(1), waits=True)
    assert outbox.take() == [Post(B, (answer(1),))]


def test_messages_to_one_node_are_one_post_in_their_order(outbox: Outbox) -> None:
    for to, tag in ((B, 1), (C, 2), (B, 3)):
        outbox.send(to, answer(tag), waits=False)
    assert outbox.take() == [Post(B, (answer(1), answer(3))), Post(C, (answer(2),))]


def test_a_commit_stands_for_those_before_it(outbox: Outbox) -> None:
    for number in (1, 2, 3):
        outbox.store(KEY, record(number))
        outbox.send(B, answer(number), waits=True)
        outbox.take()
    outbox.committed(2)
    assert outbox.take() == [Post(B, (answer(1), answer(2))), Changed(KEY, record(2))]
    outbox.committed(1)  # of no news any more
    assert outbox.take() == []


def test_a_commit_that_was_never_handed_out_is_refused(outbox: Outbox) -> None:
    outbox.store(KEY, record(1))
    outbox.send(B, answer(1), waits=True)
    with pytest.raises(LocalProtocolError, match="at most 0 is expected, found 1"):
        outbox.committed(1)
    assert [type(one) for one in outbox.take()] == [Commit]


def test_numbers_are_being_set_aside_until_their_commit(outbox: Outbox) -> None:
    seen = [outbox.is_setting_aside]
    outbox.set_aside({"numbers": 7})
    seen.append(outbox.is_setting_aside)
    outbox.take()
    outbox.store(KEY, record(1))
    outbox.take()
    seen.append(outbox.is_setting_aside)
    outbox.committed(1)
    seen.append(outbox.is_setting_aside)
    assert seen == [False, True, True, False]
    assert outbox.is_storing


def test_a_message_to_itself_is_delivered_and_its_answer_waits_like_all() -> None:
    noting = Noting()
    outbox = noting.outbox
    outbox.store(KEY, record(1))
    outbox.send(A, Read(KEY, EPOCH, 1), waits=False)
    outbox.flush(0.0)
    assert noting.delivered == [Read(KEY, EPOCH, 1)]
    assert [type(one) for one in outbox.take()] == [Commit]
    outbox.committed(1)
    outbox.flush(0.0)
    assert noting.delivered == [Read(KEY, EPOCH, 1), answer(1)]
    assert outbox.take() == [Changed(KEY, record(1))]


def test_what_comes_of_a_delivery_is_delivered_in_the_same_flush() -> None:
    noting = Noting()
    noting.outbox.send(A, Read(KEY, EPOCH, 1), waits=False)
    noting.outbox.flush(0.0)
    assert noting.delivered == [Read(KEY, EPOCH, 1), answer(1)]
    noting.outbox.check_invariants()


# What is forgotten.


def test_what_is_forgotten_goes_with_its_number_and_is_said_to_be_nothing(outbox: Outbox) -> None:
    outbox.store(OTHER, record(1))
    outbox.store(KEY, record(1))
    outbox.forget(Forget((KEY,), 7))
    assert outbox.take() == [Commit(1, ((OTHER, record(1)),), {PURGED: 7}, None, (KEY,))]
    assert not outbox.is_setting_aside, "no ballot waits for it"
    outbox.committed(1)
    assert outbox.take() == [Changed(OTHER, record(1)), Changed(KEY, NOTHING)]


def test_what_is_stored_after_it_was_forgotten_is_in_a_commit_of_its_own(outbox: Outbox) -> None:
    outbox.forget(Forget((KEY,), 7))
    outbox.send(B, answer(1), waits=True)
    outbox.store(KEY, record(8))
    outbox.send(B, answer(2), waits=True)
    assert outbox.take() == [
        Commit(1, (), {PURGED: 7}, None, (KEY,)),
        Commit(2, ((KEY, record(8)),), {}, None),
    ]
    outbox.committed(1)
    assert outbox.take() == [Post(B, (answer(1),)), Changed(KEY, NOTHING)]
    outbox.committed(2)
    assert outbox.take() == [Post(B, (answer(2),)), Changed(KEY, record(8))]


def test_an_epoch_forgets_what_was_to_be_stored_before_it(outbox: Outbox) -> None:
    outbox.store(KEY, record(1))
    outbox.store_epoch(StoreEpoch(5, 4, ((OTHER, record(2)),), (KEY,)))
    outbox.store(KEY, record(3))
    first, second = outbox.take()
    assert first == Commit(1, ((OTHER, record(2)),), {}, (5, 4), (KEY,))
    assert second == Commit(2, ((KEY, record(3)),), {}, None)
    outbox.committed(2)
    assert outbox.take() == [Changed(OTHER, record(2)), Changed(KEY, record(3))]
