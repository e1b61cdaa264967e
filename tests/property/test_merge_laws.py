"""Merging news is idempotent, commutative and associative: who hears what, when, how often and from
whom does not matter in the end.

A verdict on a session that is not known yet is ignored until its card arrives, so the order is free
only after the cards: that part is told separately, and anti-entropy brings the verdict again.
"""

from __future__ import annotations

import random
from typing import Any, TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from mesh.core.ids import NodeId
from mesh.membership.table import MemberTable
from mesh.wire.records import Cause, Standing, State
from tests.unit.membership.pump import address, card_bytes, node_id

News: TypeAlias = tuple[Any, ...]

numbers = st.integers(2, 4)
boots = st.integers(1, 3)
incarnations = st.integers(0, 3)
cards = st.builds(
    lambda number, boot, incarnation, at: (
        "card",
        card_bytes(number, boot=boot, incarnation=incarnation, address=address(at)),
    ),
    numbers,
    boots,
    incarnations,
    st.sampled_from([10, 11]),
)
verdicts = st.sampled_from(
    [
        (State.SUSPECT, Cause.NONE),
        (State.DEAD, Cause.SILENT),
        (State.DEAD, Cause.CRASHED),
        (State.DEAD, Cause.ENDED),
        (State.LEFT, Cause.NONE),
        (State.FORGOTTEN, Cause.NONE),
    ]
)


whole = st.builds(
    lambda number, boot, incarnation, verdict: (
        "standing",
        Standing(boot, incarnation, verdict[0], verdict[1], 0, card_bytes(number, boot=boot)),
    ),
    numbers,
    boots,
    incarnations,
    verdicts | st.just((State.ALIVE, Cause.NONE)),
)


def standings(boot: st.SearchStrategy[int]) -> st.SearchStrategy[News]:
    return st.tuples(st.just("verdict"), numbers, boot, incarnations, verdicts)


def merged(*parts: list[News]) -> MemberTable:
    """A table that was told everything, in this order."""
    table = MemberTable(node_id(1))
    table.apply_card(0.0, card_bytes(1))
    for now, news in enumerate(item for part in parts for item in part):
        if news[0] == "card":
            table.apply_card(float(now), news[1])
        elif news[0] == "standing":
            table.apply(float(now), news[1])
        else:
            _, number, boot, incarnation, verdict = news
            table.apply_verdict(float(now), node_id(number), (boot, incarnation, *verdict))
        table.check_invariants()
    return table


def known(table: MemberTable) -> dict[NodeId, tuple[object, ...]]:
    return {m.node_id: (m.boot, m.incarnation, m.state, m.cause, m.card_bytes) for m in table}


@given(st.lists(cards | standings(boots), max_size=20))
def test_merging_everything_again_changes_nothing(news: list[News]) -> None:
    once = merged(news)
    cards_of_now = [item for item in news if item[0] == "card"]
    settled = merged(news, news)
    assert known(merged(news, news, news)) == known(settled)
    assert known(merged(news, cards_of_now)) == known(once)


@given(st.lists(cards, max_size=12), st.randoms(use_true_random=False))
def test_cards_merge_to_the_same_in_any_order(news: list[News], rng: random.Random) -> None:
    shuffled = rng.sample(news, len(news))
    assert known(merged(news)) == known(merged(shuffled))


@given(st.lists(cards | whole, max_size=12), st.randoms(use_true_random=False))
def test_cards_with_verdicts_on_them_merge_to_the_same_in_any_order(
    news: list[News], rng: random.Random
) -> None:
    one, other = merged(news), merged(rng.sample(news, len(news)))
    assert known(one) == known(other)
    assert (one.view_hash, one.tombstones.hash) == (other.view_hash, other.tombstones.hash)


@given(
    st.lists(cards, max_size=8),
    st.lists(standings(boots), max_size=12),
    st.randoms(use_true_random=False),
)
def test_verdicts_merge_to_the_same_in_any_order_once_the_cards_are_known(
    told: list[News], news: list[News], rng: random.Random
) -> None:
    assert known(merged(told, news)) == known(merged(told, rng.sample(news, len(news))))


@given(st.lists(cards | standings(st.just(1)), max_size=20), st.randoms(use_true_random=False))
def test_restarts_and_verdicts_on_a_known_first_session_merge_to_the_same_in_any_order(
    news: list[News], rng: random.Random
) -> None:
    first = [("card", card_bytes(number)) for number in (2, 3, 4)]
    shuffled = rng.sample(news, len(news))
    assert known(merged(first, news)) == known(merged(first, shuffled))


@given(
    st.lists(standings(st.just(1)), max_size=8),
    st.lists(standings(st.just(1)), max_size=8),
    st.lists(standings(st.just(1)), max_size=8),
)
def test_it_does_not_matter_who_told_whom_first(
    left: list[News], middle: list[News], right: list[News]
) -> None:
    """(a + b) + c is a + (b + c): what a middleman merged passes on as one standing per member."""
    first = [("card", card_bytes(number)) for number in (2, 3, 4)]

    def summary(*parts: list[News]) -> list[News]:
        return [
            ("verdict", number, m.boot, m.incarnation, (m.state, m.cause))
            for number in (2, 3, 4)
            if (m := merged(first, *parts).get(node_id(number))) is not None
        ]

    one = known(merged(first, summary(left, middle), right))
    other = known(merged(first, left, summary(middle, right)))
    assert one == other == known(merged(first, left, middle, right))


@given(st.lists(cards | standings(boots), max_size=30))
def test_knowledge_of_a_member_never_goes_back(news: list[News]) -> None:
    ranks: dict[NodeId, tuple[int, int, int, int]] = {}
    for count in range(1, len(news) + 1):
        for m in merged(news[:count]):
            rank = (m.boot, m.incarnation, int(m.state), int(m.cause))
            assert rank >= ranks.get(m.node_id, rank)
            ranks[m.node_id] = rank
