"""Setting a queue's strategy is a change that may be tried under any number of ballots."""

from __future__ import annotations

import msgpack
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.contest.weighing import Given, shown
from mesh.core.ids import NodeId
from mesh.queues.change import ChangeSettings
from mesh.queues.settings import (
    COUNT_MAX,
    DEFAULT,
    MARKS_MAX,
    QueueSettings,
    Strategy,
    of_value,
    to_value,
)
from mesh.wire.contest_messages import WEIGHED, Weighing
from mesh.wire.register_messages import Owner, Standing, Value
from tests.unit.queues.made import NOON, setting


def change(
    strategy: Strategy | None = Strategy.CONTEST,
    mark: int = 9,
    *,
    queue: str = "thumbs",
    weights: Given | None = None,
) -> ChangeSettings:
    return ChangeSettings(
        queue=queue, strategy=strategy, weights=weights, at=NOON + 60, by="bert", mark=mark
    )


def made(found: Value | None, by: ChangeSettings) -> QueueSettings:
    value = by(found)
    assert value is not None
    return of_value("thumbs", value)


def test_the_first_setting_counts_one() -> None:
    assert made(None, change()) == setting(
        strategy=Strategy.CONTEST, count=1, set_at=NOON + 60, set_by="bert", marks=(9,)
    )


def test_a_later_setting_counts_on_and_leaves_its_mark_before_the_others() -> None:
    assert made(to_value(setting()), change()) == setting(
        strategy=Strategy.CONTEST, count=4, set_at=NOON + 60, set_by="bert", marks=(9, 7)
    )


def test_what_holds_already_is_written_back_as_it_is() -> None:
    found = to_value(setting())
    assert change(Strategy.PULL)(found) is found


CPU: Weighing = (("cpu", 2.0),)
CPU_ALONE: Given = dict.fromkeys(WEIGHED, 0.0) | {"cpu": 2.0}


def test_setting_the_weights_keeps_the_strategy_and_the_other_way_round() -> None:
    weighed = made(to_value(setting()), change(None, weights=CPU_ALONE))
    assert weighed == setting(weights=CPU, count=4, set_at=NOON + 60, set_by="bert", marks=(9, 7))
    contested = made(to_value(weighed), change(mark=10))
    assert (contested.strategy, contested.weights) == (Strategy.CONTEST, CPU)
    reset = made(to_value(contested), change(None, 11, weights={}))
    assert (reset.strategy, reset.weights, reset.count) == (Strategy.CONTEST, (), 6)


def test_weights_alone_are_set_for_a_queue_that_has_no_strategy_yet() -> None:
    found = made(None, change(None, weights=CPU_ALONE))
    assert (found.strategy, found.weights) == (DEFAULT, CPU)


def test_weights_that_hold_already_are_written_back_as_they_are() -> None:
    found = to_value(setting(weights=CPU))
    assert change(None, weights=CPU_ALONE)(found) is found
    assert change(Strategy.PULL, weights=CPU_ALONE)(found) is found
    assert change(Strategy.PULL, weights={})(found) is not found


def test_of_two_that_set_different_parts_both_count() -> None:
    one, two = (
        change(None, 1, weights={"cpu": 3.0}),
        change(None, 2, weights={"lag": None, "match": 0.5}),
    )
    weights = shown(made(two(one(None)), change(Strategy.PULL)).weights)
    assert (weights["cpu"], weights["match"]) == (3.0, 0.5)


def test_what_would_leave_no_part_that_counts_is_not_written() -> None:
    found = to_value(setting(weights=CPU))
    none = change(Strategy.PULL, weights={"cpu": 0.0})
    assert none(found) is None
    assert none.leaves_nothing(found)
    assert not none.leaves_nothing(None)


def test_who_was_overtaken_undoes_nothing() -> None:
    first, second = change(Strategy.PULL, 1), change(Strategy.CONTEST, 2)
    after_both = second(first(None))
    assert first(after_both) is after_both
    assert made(after_both, second).strategy is Strategy.CONTEST


def test_bytes_that_are_nothing_are_replaced_and_those_of_a_setting_that_cannot_be_read_never() -> (
    None
):
    assert made(Value(Standing.OPEN, b"\x00rot"), change()).count == 1
    assert made(Value(Standing.OPEN, b""), change()).count == 1
    assert made(to_value(setting("other")), change()).count == 1
    for version in (1, 2, 3):
        assert change()(Value(Standing.OPEN, bytes((version,)) + b" rot, or later")) is None


def test_what_an_earlier_version_has_set_is_kept_where_only_the_weights_are_set() -> None:
    parts = ["thumbs", "pull", 3, NOON, "anna", [7]]
    earlier = Value(Standing.OPEN, b"\x01" + bytes(msgpack.packb(parts)))
    found = made(earlier, change(None, weights=CPU_ALONE))
    assert (found.strategy, found.weights, found.count) == (Strategy.PULL, CPU, 4)


def test_what_somebody_holds_is_left_alone() -> None:
    body = to_value(setting()).body
    assert change()(Value(Standing.LEASED, body, Owner(NodeId(5), 1))) is None


def test_the_count_never_leaves_its_bounds() -> None:
    assert made(to_value(setting(count=COUNT_MAX)), change()).count == COUNT_MAX


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.sampled_from(Strategy), st.integers(0, 2**64 - 2)), min_size=1),
    st.integers(0, MARKS_MAX - 1),
)
def test_a_change_that_is_tried_again_on_top_of_fewer_others_than_are_marked_changes_nothing(
    others: list[tuple[Strategy, int]], count: int
) -> None:
    own = change(Strategy.PULL, 2**64 - 1)  # nobody else draws that
    value = own(to_value(setting(strategy=Strategy.RENDEZVOUS, marks=())))
    for strategy, mark in others[:count]:
        value = change(strategy, mark)(value)
    assert own(value) is value
