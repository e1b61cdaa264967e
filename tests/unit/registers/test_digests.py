"""What a voter holds, as sums: equal where two hold the same, and what one lacks is found by them."""

import random

from mesh.registers.digests import OF_ROSTERS, Digests, bucket_of, digest_of
from mesh.registers.record import NOTHING, Record
from mesh.registers.roster import successor_key
from mesh.wire.repair_messages import BUCKETS, DIGEST_BYTES, SUM_BYTES
from tests.unit.registers.asked import FINAL, KEY, OPEN, ballot

SETTLE_S = 10.0
HELD = Record(ballot(1), ballot(1), 0, OPEN)
LATER = Record(ballot(2), ballot(2), 0, FINAL)


def all_of(_: int) -> bool:
    return True


def digests(*records: tuple[bytes, Record]) -> Digests:
    return Digests(SETTLE_S, records)


def test_two_that_hold_the_same_have_one_sum_whatever_the_order() -> None:
    records = [(b"task/%d" % n, Record(ballot(n), ballot(n), n, OPEN)) for n in range(1, 50)]
    one, other = digests(*records), digests()
    random.Random(1).shuffle(records)
    for key, record in records:
        other.note(0.0, key, HELD)
        other.note(1.0, key, record)
    assert one.sum(all_of) != other.sum(all_of)
    other.settle(1.0 + SETTLE_S)
    assert one.sum(all_of) == other.sum(all_of)
    assert one.sums(all_of) == other.sums(all_of)
    other.check_invariants(records)


def test_what_is_not_shared_is_not_compared() -> None:
    one, other = digests((KEY, HELD)), digests((KEY, LATER))
    bucket = bucket_of(KEY)
    assert one.sum(lambda asked: asked != bucket) == other.sum(lambda asked: asked != bucket)
    assert one.sums(lambda asked: asked != bucket) == bytes(BUCKETS * SUM_BYTES)


def test_rosters_have_a_bucket_of_their_own() -> None:
    assert bucket_of(successor_key(3)) == OF_ROSTERS
    assert bucket_of(KEY) != OF_ROSTERS


def test_a_change_counts_when_it_has_stood_for_a_while() -> None:
    kept = digests((KEY, HELD))
    empty = digests().sum(all_of)
    kept.note(5.0, KEY, LATER)
    assert kept.sum(all_of) == empty, "neither the old nor the new"
    kept.settle(5.0 + SETTLE_S - 0.1)
    assert kept.sum(all_of) == empty
    kept.settle(5.0 + SETTLE_S)
    assert kept.sum(all_of) == digests((KEY, LATER)).sum(all_of)


def test_a_promise_changes_no_sum() -> None:
    kept = digests((KEY, HELD))
    kept.note(5.0, KEY, Record(ballot(9), ballot(1), 0, OPEN))
    kept.note(5.0, b"other", Record(ballot(9)))
    assert kept.sum(all_of) == digests((KEY, HELD)).sum(all_of)


def test_what_is_gone_is_in_no_sum() -> None:
    kept = digests((KEY, HELD))
    kept.note(0.0, KEY, NOTHING)
    kept.check_invariants([])
    assert kept.sum(all_of) == digests().sum(all_of)
    assert not kept.held(bucket_of(KEY))


def test_what_is_hidden_is_held_but_neither_compared_nor_shipped_until_it_is_shown() -> None:
    kept = digests((KEY, HELD))
    kept.hide(KEY)
    kept.hide(KEY)
    kept.check_invariants([(KEY, HELD)])
    assert kept.sum(all_of) == digests().sum(all_of)
    assert not kept.lacking(bucket_of(KEY), b"", b"")
    assert len(kept.held(bucket_of(KEY))) == DIGEST_BYTES
    kept.show(KEY)
    kept.check_invariants([(KEY, HELD)])
    assert kept.lacking(bucket_of(KEY), b"", b"") == [KEY]


def test_what_changes_while_it_is_hidden_is_shown() -> None:
    kept = digests((KEY, HELD))
    kept.hide(KEY)
    kept.note(0.0, KEY, LATER)
    kept.settle(SETTLE_S)
    kept.check_invariants([(KEY, LATER)])
    assert kept.lacking(bucket_of(KEY), b"", b"") == [KEY]


def test_what_settles_while_it_is_hidden_is_summed_up_when_it_is_shown() -> None:
    kept = digests()
    kept.note(0.0, KEY, HELD)
    kept.hide(KEY)
    kept.settle(SETTLE_S)
    kept.check_invariants([(KEY, HELD)])
    kept.show(KEY)
    kept.check_invariants([(KEY, HELD)])
    assert kept.sum(all_of) == digests((KEY, HELD)).sum(all_of)


def test_lacking_is_what_is_not_held_in_order_and_after_a_key() -> None:
    keys = [key for key in (b"task/%d" % n for n in range(5000)) if bucket_of(key) == 7]
    assert len(keys) > 5
    kept = digests(*((key, HELD) for key in keys))
    in_order = sorted(keys)
    assert kept.lacking(7, b"", b"") == in_order
    assert kept.lacking(7, b"", in_order[1]) == in_order[2:]
    held = digest_of(in_order[3], HELD.ballot, HELD.seq).to_bytes(DIGEST_BYTES, "big")
    assert kept.lacking(7, held, in_order[2]) == in_order[4:]
    assert kept.lacking(7, kept.held(7), b"") == []


def test_what_is_not_settled_is_not_shipped_but_told_as_held() -> None:
    kept = digests()
    kept.note(0.0, KEY, HELD)
    assert kept.lacking(bucket_of(KEY), b"", b"") == []
    assert len(kept.held(bucket_of(KEY))) == DIGEST_BYTES
