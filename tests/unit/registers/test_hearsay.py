"""Rosters by hearsay: what is only named makes a node ask the voters, and changes nothing by itself."""

from __future__ import annotations

import pytest

from mesh.core.ids import NodeId
from mesh.registers.hearsay import ANSWER_S
from mesh.registers.succession import Succession
from mesh.wire.roster_messages import Roster, Seal
from tests.unit.registers.sessions import (
    ONE,
    TWO,
    A,
    B,
    C,
    D,
    E,
    adopted,
    asked,
    learn,
    session,
)

FAR = Roster(999, (C, D))


def following() -> Succession:
    """Return that of a member that has no vote and has learnt of both rosters."""
    at = session(E)
    learn(at, 0.0, A, ONE)
    learn(at, 0.0, A, TWO)
    assert at.roster == TWO
    return at


@pytest.mark.parametrize("sender", [D, A], ids=["any member", "in a voter's name"])
def test_far_roster_that_was_only_named_changes_nothing_and_voters_are_asked(
    sender: NodeId,
) -> None:
    at = following()
    moves = at.handle(60.0, sender, FAR)
    assert not adopted(moves)
    assert asked(moves) & {A, B, C}
    assert sender == A or D not in asked(moves), "whoever named it does not confirm it"
    for second in range(61, 200):
        assert not adopted(at.handle_timeout(float(second)))
    assert at.roster == TWO


def test_who_names_a_roster_again_and_again_confirms_nothing() -> None:
    at = following()
    for second in range(60, 200):
        moves = at.handle(float(second), D, Roster(1000 + second, (D,)))
        assert not adopted(moves)
        assert not adopted(at.handle_timeout(second + 0.5))
    assert at.roster == TWO


def test_roster_that_a_voter_confirms_when_asked_is_adopted() -> None:
    at = following()
    three = Roster(3, (A, B, D))
    (voter,) = asked(at.handle(60.0, D, three))
    assert voter in TWO.voters
    assert adopted(at.handle(60.1, voter, three)) == [three]


def test_answer_that_comes_too_late_is_but_heard() -> None:
    at = following()
    three = Roster(3, (A, B, D))
    (voter,) = asked(at.handle(60.0, D, three))
    assert not adopted(at.handle(60.0 + ANSWER_S, voter, three))


def test_where_no_voter_that_is_known_lives_another_of_the_next_confirms_it() -> None:
    at = session(E)
    learn(at, 0.0, A, ONE)
    found = {node for second in range(60, 90) for node in asked(at.handle(float(second), B, TWO))}
    assert found == {A, C}
    assert adopted(at.handle(90.0, C, TWO)) == [TWO]


def test_roster_before_that_was_only_named_is_sealed_by_nobody() -> None:
    at = session(B)
    learn(at, 0.0, A, TWO)
    moves = at.handle(60.0, E, Roster(1, (E,)))
    assert not any(isinstance(move, tuple) and isinstance(move[1], Seal) for move in moves)
    assert (A, Seal(1)) in learn(at, 61.0, A, ONE)


def test_long_roster_that_was_only_named_makes_a_node_ask_few() -> None:
    at = following()
    many = Roster(3, tuple(NodeId(number) for number in range(10, 1010)))
    for second in range(60, 90):
        assert len(asked(at.handle(float(second), D, many))) == 1
        assert not asked(at.handle(second + 0.1, D, many)), "one was asked a moment ago"
