"""Taking a hook's turn at any node: one in the whole mesh has it, and who is told so has it in time."""

from __future__ import annotations

from dataclasses import replace
from itertools import count, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.core.ids import NodeId
from mesh.hooks.commands import TakeTurn
from mesh.hooks.latest import hook_key, of_value
from mesh.wire.register_messages import Accept, Standing, Value
from tests.unit.tasks.asked import DORA, error, hall_of, result
from tests.unit.tasks.hall import VOTERS, Desk, Hall
from tests.unit.tasks.made import ANNA, BERT, NOON, TOKEN

KEY = hook_key("shortage")
COOL_DOWN_S = 60.0
_numbers = count(1)


def take(desk: Desk, mark: int, wait_s: float = 1.0) -> Any:  # noqa: ANN401 - an answer, or None
    command = TakeTurn(next(_numbers), "shortage", COOL_DOWN_S, mark)
    if desk.give(command) is None:
        desk.wait(wait_s)
    return desk.answers.pop(command.command_id, None)


def put(hall: Hall, value: Value, n: int = 90) -> None:
    """Have all voters accept a value, whatever wrote it."""
    for voter in VOTERS:
        hall.ask(voter, Accept(KEY, 1, TOKEN._replace(n=n), 0, value))


def test_of_all_that_ask_one_has_the_turn_and_the_others_are_told_who_and_how_long() -> None:
    hall, desk = hall_of()
    assert result(take(desk, 1)) == {"outcome": "granted"}
    at = NOON + hall.now - 100.0
    for number, owner in enumerate((ANNA, BERT), 2):
        told = result(take(Desk(hall, owner), number))
        assert told == {
            "outcome": "waits",
            "wait_s": pytest.approx(COOL_DOWN_S + 5, abs=0.1),
            "by": "dora",
            "begun_by": pytest.approx(at + 5, abs=0.1),
        }


def test_after_the_cool_down_the_next_one_has_it() -> None:
    hall, desk = hall_of()
    other = Desk(hall, ANNA)
    take(desk, 1)
    desk.wait(COOL_DOWN_S + 6)
    assert result(take(other, 2)) == {"outcome": "granted"}
    assert result(take(desk, 3))["by"] == "anna"


def test_a_run_blocks_its_own_node_too() -> None:
    _, desk = hall_of()
    take(desk, 1)
    assert result(take(desk, 2))["outcome"] == "waits"


def test_a_turn_whose_answer_was_lost_is_taken_again_and_is_nobody_else_s() -> None:
    hall, desk = hall_of()
    hall.no_accepts = {VOTERS[1], VOTERS[2]}  # one voter takes it, and that is no majority
    assert "did not come for 5 s" in error(take(desk, 1, 6.0))
    hall.no_accepts = set()
    assert result(take(Desk(hall, ANNA), 2))["by"] == "dora", "it may be about to begin"
    assert result(take(desk, 1)) == {"outcome": "granted"}


def test_without_a_majority_nobody_has_it_and_the_words_say_who_is_missed() -> None:
    hall, desk = hall_of()
    hall.cut = {VOTERS[0], VOTERS[1]}
    assert "2 of the hook's 3 voters (anna, bert, carl)" in error(take(desk, 1, 6.0))
    hall.cut = set()
    assert result(take(Desk(hall, ANNA), 2)) == {"outcome": "granted"}, "nothing was written"


def test_an_answer_that_is_heard_too_late_grants_nothing() -> None:
    hall, desk = hall_of()
    hall.cut = set(VOTERS)
    command = TakeTurn(next(_numbers), "shortage", COOL_DOWN_S, 1)
    desk.give(command)
    hall.cut = set()
    hall.now += 30.0  # as a node does that was stopped meanwhile
    desk.wait(1.0)
    assert "did not come" in error(desk.answers.get(command.command_id))


def test_what_a_later_version_holds_is_left_as_it_is_and_bytes_that_are_nothing_are_replaced() -> (
    None
):
    hall, desk = hall_of()
    later = Value(Standing.OPEN, b"\x02 of a later version")
    put(hall, later)
    assert "cannot be read by this version" in error(take(desk, 1))
    assert [hall.voters[voter].record(KEY).value for voter in VOTERS] == [later] * 3
    put(hall, Value(Standing.OPEN, b"\x01rot"), 95)
    assert result(take(desk, 1)) == {"outcome": "granted"}


TRIES = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sets(st.sampled_from(VOTERS), max_size=2),  # hear nothing
        st.sets(st.sampled_from(VOTERS)),  # hear no write
        st.sampled_from([0.02, 0.3, 6.0, COOL_DOWN_S]),
    ),
    max_size=10,
)


@settings(max_examples=60, deadline=None)
@given(TRIES)
def test_whatever_is_lost_no_two_have_a_turn_within_a_cool_down(
    tries: list[tuple[int, set[NodeId], set[NodeId], float]],
) -> None:
    hall = Hall()
    desks = [Desk(hall, owner) for owner in (ANNA, BERT, DORA)]
    asked: dict[int, TakeTurn] = {}  # by desk: what waits for its answer
    marks = [0, 1, 2]
    granted: list[float] = []

    def hear() -> None:
        for number, desk in enumerate(desks):
            if number in asked and (answer := desk.answers.pop(asked[number].command_id, None)):
                del asked[number]
                if answer.error is None and answer.result["outcome"] == "granted":
                    granted.append(hall.now)
                    marks[number] += 3

    for client, cut, no_accepts, pause_s in tries:
        hall.cut, hall.no_accepts = set(cut), set(no_accepts)
        if client not in asked:
            asked[client] = TakeTurn(next(_numbers), "shortage", COOL_DOWN_S, marks[client])
            desks[client].give(asked[client])
            hear()
        for desk in desks:
            desk.wait(pause_s)
            hear()
    hall.cut, hall.no_accepts = set(), set()
    for desk in desks:
        desk.wait(COOL_DOWN_S + 6)
        hear()
    assert not asked
    assert all(late - early >= COOL_DOWN_S for early, late in pairwise(granted))
    answer = take(desks[0], marks[0])
    assert result(answer) == {"outcome": "granted"}, "once nothing is lost it is had again"
    held = hall.voters[VOTERS[0]].record(KEY).value
    assert held is not None
    assert of_value(held) == replace(of_value(held), by="anna", mark=marks[0])
