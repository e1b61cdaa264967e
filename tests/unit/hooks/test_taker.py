"""A turn is used at once or not at all, and one that was not used is asked for again under its mark."""

from __future__ import annotations

import random

import pytest

from mesh.errors import ConfigError
from mesh.hooks.taker import RETRY_S, USE_S, Heard, TurnTaker

GRANTED = {"outcome": "granted"}
NOON = 1_000.0


def taker() -> TurnTaker:
    return TurnTaker("shortage/default", 60.0, random.Random(1))


def test_a_turn_that_is_heard_of_in_time_is_used_and_the_next_question_is_for_another_run() -> None:
    own = taker()
    first = own.ask(NOON, 1)
    assert (first.hook, first.cool_down_s, first.timeout_s) == ("shortage/default", 60.0, USE_S)
    assert own.hear(NOON + USE_S, GRANTED) == Heard(may_run=True, wait_s=60.0 + USE_S)
    assert own.ask(NOON + 70, 2).mark != first.mark


@pytest.mark.parametrize(
    ("after_s", "answer", "expected"),
    [
        (USE_S + 0.1, GRANTED, Heard(may_run=False, wait_s=0.0)),
        (1.0, None, Heard(may_run=False, wait_s=RETRY_S)),
        (1.0, {"outcome": "waits", "wait_s": 42.0}, Heard(may_run=False, wait_s=42.0)),
    ],
)
def test_a_turn_that_was_not_used_is_asked_for_again(
    after_s: float, answer: dict[str, object] | None, expected: Heard
) -> None:
    own = taker()
    first = own.ask(NOON, 1)
    assert own.hear(NOON + after_s, answer) == expected
    assert own.ask(NOON + 60, 2).mark == first.mark


def test_no_two_nodes_have_one_mark() -> None:
    other = TurnTaker("shortage/default", 60.0, random.Random(2))
    assert taker().ask(NOON, 1).mark != other.ask(NOON, 1).mark


def test_a_cool_down_is_longer_than_a_turn_may_take_to_be_used() -> None:
    with pytest.raises(ConfigError, match="a cool-down of more than 5 s is expected, found 5"):
        TurnTaker("shortage/default", USE_S, random.Random(1))
