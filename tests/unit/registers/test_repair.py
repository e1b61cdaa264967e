"""Voters ship what one of them lacks; where nothing differs, hardly a word is said."""

import random
from collections.abc import Callable

import pytest

from mesh.registers.desk import Desk
from mesh.registers.digests import bucket_of
from mesh.registers.outbox import Commit, Post
from mesh.registers.record import Record
from mesh.registers.repair import RESEND_S, TRIES, WRITE_BACKS_MAX
from mesh.registers.upkeep import ANSWER_S
from mesh.wire.register_messages import Prepare, Value
from mesh.wire.repair_messages import SHIP_MAX, Compare, Lack, Ship, Shipped, Sums
from tests.unit.registers.asked import (
    EPOCH,
    FINAL,
    KEY,
    OPEN,
    P_HAS,
    STRANGER,
    TIMES,
    A,
    B,
    C,
    P,
    ballot,
)
from tests.unit.registers.keepers import UPKEEP, Keepers, keeper

SOON_S = 2 * UPKEEP.compare_s + 3 * UPKEEP.settle_s
"""Within two comparisons."""


def heard(desks: Keepers, seconds: float) -> list[object]:
    """Return what desks send each other for a while."""
    sent: list[object] = []

    def noting(post: Post) -> bool:
        sent.extend(post.messages)
        return True

    desks.passes = noting
    desks.wait(seconds)
    return sent


@pytest.mark.parametrize("value", [OPEN, FINAL, P_HAS])
def test_voter_that_was_away_gets_what_the_others_hold_though_nobody_proposes(
    value: Value,
) -> None:
    desks = Keepers()
    desks.put(KEY, value, A, B)
    assert desks.held(KEY) == [value, value, None]
    desks.wait(SOON_S)
    assert desks.held(KEY) == [value, value, value]
    assert desks.by_node[C].voter.remaining_s(desks.now, KEY) is None, "no lease is armed by it"
    desks.check()


def test_each_of_two_gets_what_it_lacks() -> None:
    desks = Keepers()
    desks.put(b"one", OPEN, A)
    desks.put(b"other", OPEN, B)
    desks.put(b"both", OPEN, A, B, n=1)
    desks.put(b"both", FINAL, B, n=2)
    desks.wait(SOON_S)
    assert desks.held(b"one") == desks.held(b"other") == [OPEN, OPEN, OPEN]
    assert desks.held(b"both") == [FINAL, FINAL, FINAL]
    desks.check()


def test_where_all_is_equal_one_small_message_for_each_pair_is_all_that_is_said() -> None:
    desks = Keepers()
    desks.put(KEY, FINAL)
    desks.wait(SOON_S)
    sent = heard(desks, 10 * UPKEEP.compare_s)
    assert all(isinstance(one, Compare) for one in sent)
    assert 3 * 7 <= len(sent) <= 3 * 14


def test_what_is_being_written_is_not_shipped() -> None:
    desks = Keepers()
    desks.wait(SOON_S)
    for n in range(1, 30):
        desks.put(KEY, OPEN, A, B, n=n)
        sent = heard(desks, UPKEEP.settle_s / 2)
        assert all(isinstance(one, Compare) for one in sent)
    assert desks.held(KEY)[2] is None


def test_much_is_shipped_page_by_page() -> None:
    desks = Keepers()
    keys = [key for key in (b"task/%d" % n for n in range(60_000)) if bucket_of(key) == 9]
    keys = keys[: 2 * SHIP_MAX + 5]
    assert len(keys) > 2 * SHIP_MAX
    for key in keys:
        desks.put(key, FINAL, A, B)
    sent = heard(desks, SOON_S)
    pages = [len(one.entries) for one in sent if isinstance(one, Ship) and one.entries]
    assert pages[:3] == [SHIP_MAX, SHIP_MAX, 5]
    assert all(desks.held(key) == [FINAL] * 3 for key in keys)
    desks.check()


def test_a_voter_that_lost_its_disk_gets_everything_back() -> None:
    desks = Keepers()
    keys = [b"task/%d" % n for n in range(300)]
    for key in keys:
        desks.put(key, FINAL)
    desks.wait(SOON_S)
    desks.by_node[B] = keeper(B, [], now=desks.now)
    desks.wait(SOON_S + 257 * 0.05)
    assert all(desks.held(key) == [FINAL] * 3 for key in keys)
    desks.check()


def test_lost_messages_are_sent_again_and_what_stays_lost_is_left_to_the_next_comparison() -> None:
    desks = Keepers()
    desks.put(KEY, OPEN, A, B)
    lost: list[object] = []

    def losing(post: Post) -> bool:
        is_ship = any(isinstance(one, Ship) for one in post.messages)
        is_lost = is_ship and len(lost) < 2 * TRIES + 1
        lost.extend([post] * is_lost)
        return not is_lost

    desks.passes = losing
    desks.wait(2 * SOON_S + RESEND_S * 2**TRIES)
    assert len(lost) == 2 * TRIES + 1
    assert desks.held(KEY) == [OPEN, OPEN, OPEN]


@pytest.mark.parametrize("value", [OPEN, FINAL])
def test_what_somebody_promised_and_left_is_written_back(value: Value) -> None:
    desks = Keepers()
    desks.put(KEY, value, A, B)
    desks.by_node[C].handle(0.0, P, Prepare(KEY, ballot(9), 1))
    desks.wait(2 * SOON_S)
    assert desks.held(KEY) == [value, value, value]
    records = [one.voter.record(KEY) for one in desks.by_node.values()]
    assert records[0] == records[1] == records[2]
    assert records[0].ballot > ballot(9)


def test_what_is_leased_is_not_written_back() -> None:
    desks = Keepers()
    desks.put(KEY, P_HAS, A, B)
    desks.by_node[C].handle(0.0, P, Prepare(KEY, ballot(9), 1))
    desks.wait(TIMES.voter_s + TIMES.grace_s + SOON_S)
    assert desks.held(KEY) == [P_HAS, P_HAS, None]


def test_shipping_keeps_no_lease_alive() -> None:
    desks = Keepers()
    desks.put(KEY, P_HAS, A, B)
    desks.wait(TIMES.voter_s + TIMES.grace_s + SOON_S)
    for one in desks.by_node.values():
        assert one.voter.record(KEY).value == P_HAS
        assert one.voter.remaining_s(desks.now, KEY) is None


# One voter alone, and what strangers and latecomers say.


def lacking() -> tuple[Desk, Lack]:
    """Return a voter that has just asked B for what it lacks, and its question."""
    desk = keeper(A, [])
    desk.handle(0.0, B, Sums(EPOCH, b"\1" + bytes(257 * 4 - 1), is_answer=True))
    (post,) = desk.take()
    assert isinstance(post, Post)
    (lack,) = post.messages
    assert isinstance(lack, Lack)
    return desk, lack


def in_bucket(bucket: int) -> bytes:
    rng = random.Random(1)
    while bucket_of(key := b"task/%d" % rng.randrange(1 << 30)) != bucket:
        pass
    return key


def shipped(lack: Lack, key: bytes | None = None) -> Ship:
    entry = Shipped(key or in_bucket(lack.bucket), ballot(1), 0, FINAL)
    return Ship(EPOCH, lack.tag, (entry,), is_last=True)


def test_what_was_asked_for_is_taken_and_stored() -> None:
    desk, lack = lacking()
    ship = shipped(lack)
    desk.handle(ANSWER_S, B, ship)
    (commit,) = desk.take()
    record = Record(ballot(1), ballot(1), 0, FINAL)
    assert commit == Commit(1, ((ship.entries[0].key, record),), {}, None)


@pytest.mark.parametrize(
    "late_or_strange",
    [
        lambda desk, lack: desk.handle(ANSWER_S + 0.1, B, shipped(lack)),
        lambda desk, lack: desk.handle(0.1, C, shipped(lack)),
        lambda desk, lack: desk.handle(0.1, STRANGER, shipped(lack)),
        lambda desk, lack: desk.handle(0.1, B, shipped(lack, in_bucket(lack.bucket + 1))),
        lambda desk, lack: desk.handle(0.1, B, Ship(EPOCH, lack.tag + 1, shipped(lack).entries, is_last=True)),
        lambda desk, lack: desk.handle(0.1, B, Ship(EPOCH + 1, lack.tag, shipped(lack).entries, is_last=True)),
    ],
    ids=["late", "another", "a stranger", "another bucket", "another question", "another epoch"],
)  # fmt: skip
def test_what_was_not_asked_for_just_now_changes_nothing(
    late_or_strange: Callable[[Desk, Lack], None],
) -> None:
    desk, lack = lacking()
    late_or_strange(desk, lack)
    assert not desk.take()
    assert len(desk.voter) == 0


def test_an_answer_is_taken_once() -> None:
    desk, lack = lacking()
    desk.handle(0.1, B, shipped(lack))
    desk.take()
    desk.handle(0.2, B, shipped(lack, in_bucket(lack.bucket)))
    assert not desk.take()


def test_strangers_are_told_nothing() -> None:
    desk = keeper(A, [(KEY, Record(ballot(1), ballot(1), 0, FINAL))])
    desk.handle(0.0, STRANGER, Compare(EPOCH, 0))
    desk.handle(0.0, STRANGER, Lack(EPOCH, 1, bucket_of(KEY), b"", b""))
    desk.handle(0.0, B, Lack(EPOCH + 1, 1, bucket_of(KEY), b"", b""))
    assert not desk.take()


def test_what_is_told_of_a_record_waits_for_its_commit() -> None:
    desk = keeper(A, [])
    desk.handle(0.0, P, Prepare(b"other", ballot(1), 1))
    desk.take()
    desk.handle(0.0, B, Lack(EPOCH, 1, bucket_of(KEY), b"", b""))
    assert not desk.take()
    desk.committed(0.0, 1)
    assert any(isinstance(one, Post) and one.to == B for one in desk.take())


def test_few_of_many_are_written_back_at_once() -> None:
    desk, lack = lacking()
    keys: list[bytes] = []
    n = 0
    while len(keys) < WRITE_BACKS_MAX + 3:
        n += 1
        if bucket_of(b"task/%d" % n) == lack.bucket:
            keys.append(b"task/%d" % n)
    for key in keys:
        desk.handle(0.0, P, Prepare(key, ballot(9), 1))
    (commit,) = desk.take()
    assert isinstance(commit, Commit)
    desk.committed(0.0, commit.number)
    desk.take()
    entries = tuple(Shipped(key, ballot(1), 0, FINAL) for key in sorted(keys))
    desk.handle(0.1, B, Ship(EPOCH, lack.tag, entries, is_last=True))
    (commit,) = desk.take()  # of the numbers that are set aside
    assert isinstance(commit, Commit)
    desk.committed(0.1, commit.number)
    posts = [one for one in desk.take() if isinstance(one, Post) and one.to == B]
    asked = [one for post in posts for one in post.messages if isinstance(one, Prepare)]
    assert len(asked) == WRITE_BACKS_MAX
