"""The digest: equal for equal knowledge, different wherever the living differ."""

import random

import pytest

from mesh.errors import DecodeError
from mesh.membership.digest import bucket_hashes, bucket_of, differing, pack_hashes
from mesh.membership.table import MemberTable
from mesh.wire.records import Cause, State
from tests.unit.membership.pump import card_bytes, node_id


def table_of(numbers: list[int]) -> MemberTable:
    table = MemberTable(node_id(1))
    for number in numbers:
        table.apply_card(0.0, card_bytes(number))
    return table


def test_digest_does_not_depend_on_the_order_in_which_members_were_met() -> None:
    numbers = list(range(1, 40))
    shuffled = random.Random(1).sample(numbers, len(numbers))
    ours, theirs = table_of(numbers), table_of(shuffled)
    assert bucket_hashes(ours) == bucket_hashes(theirs)
    assert ours.view_hash == theirs.view_hash


@pytest.mark.parametrize("change", ["newcomer", "suspicion", "new incarnation", "restart", "death"])
def test_any_difference_among_the_living_shows_in_exactly_its_bucket(change: str) -> None:
    ours, theirs = table_of(list(range(1, 30))), table_of(list(range(1, 30)))
    subject = node_id(40 if change == "newcomer" else 7)
    if change == "newcomer":
        theirs.apply_card(1.0, card_bytes(40))
    elif change == "suspicion":
        theirs.apply_verdict(1.0, subject, (1, 0, State.SUSPECT, Cause.NONE))
    elif change == "new incarnation":
        theirs.apply_card(1.0, card_bytes(7, incarnation=1))
    elif change == "restart":
        theirs.apply_card(1.0, card_bytes(7, boot=2))
    else:
        theirs.apply_verdict(1.0, subject, (1, 0, State.DEAD, Cause.SILENT))
    mine, other = bucket_hashes(ours), bucket_hashes(theirs)
    assert ours.view_hash != theirs.view_hash
    assert differing(mine, pack_hashes(other)) == (bucket_of(subject),)


def test_when_the_gone_were_forgotten_does_not_matter() -> None:
    ours, theirs = table_of([1, 2, 3]), table_of([1, 2])
    ours.apply_verdict(1.0, node_id(3), (1, 0, State.DEAD, Cause.SILENT))
    assert bucket_hashes(ours) == bucket_hashes(theirs)


@pytest.mark.parametrize("size", [0, 8, 511, 520])
def test_hashes_of_another_length_are_refused(size: int) -> None:
    with pytest.raises(DecodeError):
        differing(bucket_hashes(table_of([1])), bytes(size))
