"""Succession: who learns of a roster takes its part in it, from any point on, and only a long-standing member is asked in."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from mesh.core.ballot import Ballot
from mesh.errors import LocalProtocolError
from mesh.registers.admission import Admission
from mesh.registers.asker import Late
from mesh.registers.handover import Adopt, Install
from mesh.registers.leases import local
from mesh.registers.roster import chosen_roster, successor_key
from mesh.registers.succession import PAUSE_S, Succession, held_rosters
from mesh.registers.voter import StoreEpoch, Voter
from mesh.wire.register_messages import Accept, Prepare, WrongEpoch
from mesh.wire.roster_messages import AskRoster, Fetch, Page, Roster, Seal, Sealed
from tests.unit.registers.sessions import (
    ONE,
    OPEN,
    PACE,
    TWO,
    A,
    B,
    C,
    D,
    adopted,
    asked,
    chosen,
    founder,
    learn,
    member,
    proposals,
    session,
    stood,
    value_of,
    voter,
)

# Founding.


def test_founder_installs_the_first_epoch_and_its_disk_tells_of_it() -> None:
    of = voter(A)
    at = session(A, of)
    install, adopt = at.found(0.0)
    assert isinstance(install, Install)
    assert adopt == Adopt(ONE)
    (stored,) = of.install(0.0, install.epoch, install.records)
    assert isinstance(stored, StoreEpoch)
    again = Voter(
        A, local(), epoch=stored.epoch, sealed=stored.sealed, now=0.0, records=stored.records
    )
    assert session(A, again).roster == ONE


def test_node_that_knows_a_mesh_founds_none() -> None:
    at = founder()
    with pytest.raises(LocalProtocolError, match="knows no roster"):
        at.found(0.0)


# Who is asked in.


def test_two_that_have_stood_longest_are_proposed_and_not_before_their_time() -> None:
    at = founder()
    at.note_members(0.0, [member(C)])
    at.note_members(1.0, [member(C), member(D)])
    assert not proposals(at.note_members(2.0, [member(B), member(C), member(D)]))
    assert not proposals(at.handle_timeout(PACE.stand_s + 0.9))
    (proposed,) = proposals(at.handle_timeout(PACE.stand_s + 1))
    assert proposed.key == successor_key(1)
    value = proposed.change(None)
    assert value is not None
    assert chosen_roster(value) == Roster(2, (A, C, D))


def test_deadline_is_when_the_second_of_two_has_stood_long_enough() -> None:
    admission = Admission(A, PACE)
    admission.note(0.0, [member(B), member(A)])
    assert admission.due_at(2) is None
    admission.note(5.0, [member(B), member(C)])
    assert admission.due_at(2) == 5.0 + PACE.stand_s
    assert admission.longest(2) == [B, C]


def test_member_that_was_suspected_stands_anew() -> None:
    admission = Admission(A, PACE)
    admission.note(0.0, [member(B)])
    admission.note(1.0, [])
    admission.note(2.0, [member(B)])
    assert admission.due_at(1) == 2.0 + PACE.stand_s


def test_member_that_began_another_session_stands_anew() -> None:
    admission = Admission(A, PACE)
    admission.note(0.0, [member(B)])
    admission.note(2.0, [member(B, boot=2)])
    assert admission.due_at(1) == 2.0 + PACE.stand_s


def test_member_without_a_store_is_never_asked_in() -> None:
    at = founder()
    at.note_members(0.0, [member(B), member(C, keeps_store=False)])
    assert not proposals(at.handle_timeout(10 * PACE.stand_s))


def test_nobody_but_the_voter_that_is_alone_proposes() -> None:
    plain = session(D)
    learn(plain, 0.0, A, ONE)
    assert not proposals(stood(plain, A, B, C))
    full = session(A, voter(A, 2, 1, ONE, TWO))
    assert not proposals(stood(full, B, C, D))


def test_proposal_that_came_to_nothing_is_made_again_after_a_pause() -> None:
    at = founder()
    assert proposals(stood(at, B, C))
    assert not proposals(at.handle_timeout(PACE.stand_s + 1)), "one is under way"
    assert not at.proposed(70.0, Late(may_be_chosen=True))
    assert not proposals(at.handle_timeout(70.0))
    assert proposals(at.handle_timeout(70.0 + 2 * PAUSE_S))


def test_roster_that_another_proposed_is_the_one_that_follows() -> None:
    at = founder()
    stood(at, B, C)
    other = Roster(2, (A, C, D))
    moves = at.proposed(61.0, chosen(other))
    assert adopted(moves) == [other]


def test_change_that_somebody_began_is_completed() -> None:
    three = Roster(3, (B, C, D))
    at = session(A, voter(A, 2, 1, ONE, TWO, three))
    assert at.roster == TWO, "what one of three has accepted may not be chosen"
    (proposed,) = proposals(at.handle_timeout(30.0))
    assert proposed.key == successor_key(2)
    assert proposed.change(None) is None
    assert proposed.change(value_of(three)) == value_of(three)


# From a chosen successor to voting.


def test_proposer_seals_its_own_epoch_and_tells_the_others() -> None:
    at = founder()
    stood(at, B, C)
    moves = at.proposed(61.0, chosen(TWO))
    assert (A, Seal(1)) in moves
    told = at.handle_timeout(61.0)
    for other in (B, C):
        assert [one for one in told if one in ((other, ONE), (other, TWO))] == [
            (other, ONE),
            (other, TWO),
        ]


def test_voters_are_told_until_each_has_said_that_it_knows() -> None:
    at = founder()
    at.proposed(0.0, chosen(TWO))
    at.handle_timeout(0.0)
    at.handle(0.1, B, AskRoster(2))
    told = at.handle_timeout(5.0)
    assert (C, TWO) in told
    assert (B, TWO) not in told
    at.handle(5.1, C, AskRoster(2))
    assert not {(B, TWO), (C, TWO)} & set(at.handle_timeout(20.0))


def test_voter_to_be_seals_fetches_installs_and_says_that_it_knows() -> None:
    of = voter(B)
    at = session(B, of)
    assert adopted(learn(at, 0.0, A, ONE)) == [ONE]
    moves = learn(at, 0.0, A, TWO)
    assert moves == [Adopt(TWO), (A, Seal(1)), (A, AskRoster(2))]
    assert at.handle(0.1, A, Sealed(1, 0)) == [(A, Fetch(1, b""))]
    (install,) = at.handle(0.2, A, Page(1, b"", (), is_last=True))
    assert isinstance(install, Install)
    assert install.epoch == 2
    assert of.install(0.2, install.epoch, install.records)
    at.check_invariants()
    assert at.handle(0.3, A, TWO) == [(A, AskRoster(2))], "told again, it only says so again"


def test_voter_to_be_that_does_not_know_whom_to_seal_asks_for_the_roster_before() -> None:
    at = session(B)
    assert adopted(learn(at, 0.0, A, TWO)) == [TWO]
    found = at.handle_timeout(10.0)
    assert any(isinstance(move, tuple) and move[1] == AskRoster(0) for move in found)
    (answering,) = asked(at.handle(20.0, C, ONE))
    assert (A, Seal(1)) in at.handle(20.1, answering, ONE)


def test_seal_that_is_lost_is_asked_for_again() -> None:
    at = session(B)
    learn(at, 0.0, A, ONE)
    learn(at, 0.0, A, TWO)
    assert (A, Seal(1)) in at.handle_timeout(1.0)


def test_who_is_no_voter_adopts_the_roster_and_seals_nothing() -> None:
    at = session(D)
    learn(at, 0.0, A, ONE)
    assert learn(at, 0.0, A, TWO) == [Adopt(TWO)]
    assert at.roster == TWO


def test_earlier_roster_changes_nothing() -> None:
    at = session(D)
    learn(at, 0.0, A, TWO)
    assert not adopted(learn(at, 1.0, A, ONE))
    assert at.roster == TWO


# Restarts.


def test_sole_voter_that_restarts_after_its_proposal_was_chosen_goes_on() -> None:
    at = session(A, voter(A, 1, 0, ONE, TWO))
    assert at.roster == TWO
    assert (A, Seal(1)) in at.handle_timeout(0.0)


def test_sole_voter_that_restarts_after_it_sealed_goes_on() -> None:
    at = session(A, voter(A, 0, 1, ONE, TWO))
    moves = at.handle_timeout(0.0)
    assert adopted(moves)[-1] == TWO
    assert (A, Seal(1)) in moves


def test_voter_that_restarts_after_it_installed_knows_its_epoch_and_the_one_before() -> None:
    of = voter(B, 2, 1, ONE, TWO)
    assert held_rosters(B, of) == [ONE, TWO]
    at = session(B, of)
    moves = at.handle_timeout(0.0)
    assert not any(isinstance(move, Install) for move in moves)
    assert not any(isinstance(move, tuple) and isinstance(move[1], Seal) for move in moves)
    assert at.handle(0.1, D, AskRoster(0)) == [(D, ONE), (D, TWO)]


def test_voter_that_sealed_and_knows_no_successor_asks_whoever_sealed_it() -> None:
    of = voter(A, 2, 1, ONE, TWO)
    at = session(A, of)
    of.seal(0.0, Seal(2))
    assert at.handle(0.0, D, Seal(2)) == [(D, AskRoster(2))]
    assert at.handle(0.1, D, Seal(2)) == [], "it was asked a moment ago"
    three = Roster(3, (B, C, D))
    (answering,) = asked(at.handle(0.2, D, three))
    assert answering in {B, C}, "D votes in no roster that is known"
    assert adopted(at.handle(0.3, answering, three)) == [three]


# How rosters travel.


def test_node_that_knows_none_asks_a_member_until_it_is_told() -> None:
    at = session(D)
    assert (A, AskRoster(0)) in at.note_members(0.0, [member(A), member(D)])
    assert (A, AskRoster(0)) in at.handle_timeout(1.0), "the first was lost"
    assert adopted(learn(at, 1.1, A, ONE)) == [ONE]


def test_two_that_know_none_do_not_ask_each_other_for_ever() -> None:
    at = session(D)
    assert at.handle(0.0, C, AskRoster(0)) == []


def test_who_is_asked_by_one_that_knows_more_asks_back() -> None:
    at = session(D)
    assert at.handle(0.0, C, AskRoster(2)) == [(C, AskRoster(0))]


def test_what_is_known_is_told_to_whoever_knows_less_and_no_more_than_that() -> None:
    at = session(A, voter(A, 2, 1, ONE, TWO))
    assert at.handle(0.0, D, AskRoster(0)) == [(D, ONE), (D, TWO)]
    assert at.handle(0.0, D, AskRoster(1)) == [(D, TWO)]
    assert at.handle(0.0, D, AskRoster(2)) == []


def test_who_asks_in_an_epoch_that_is_over_is_told_once_in_a_while() -> None:
    at = session(A, voter(A, 2, 1, ONE, TWO))
    late = Prepare(b"k", Ballot(1, 1, 9, D), 1)
    assert at.handle(0.0, D, late) == [(D, TWO)]
    assert at.handle(0.1, D, late) == []
    assert at.handle(9.0, D, Accept(b"k", 1, late.ballot, 0, OPEN)) == [(D, TWO)]


def test_who_asks_in_the_epoch_that_this_voter_votes_in_is_told_nothing() -> None:
    at = founder()
    assert at.handle(0.0, D, Prepare(b"k", Ballot(1, 1, 9, D), 1)) == []


@pytest.mark.parametrize("epoch", [0, 2], ids=["it votes in none", "it votes in a later one"])
def test_voter_that_refuses_by_its_epoch_is_asked_for_its_roster(epoch: int) -> None:
    at = session(D)
    learn(at, 0.0, A, ONE)
    refusal = WrongEpoch(b"k", Ballot(1, 1, 9, D), epoch)
    assert at.handle(1.0, A, refusal) == [(A, AskRoster(1))]


def test_nothing_is_due_forever_after_it_was_done() -> None:
    at = session(A, voter(A, 2, 1, ONE, TWO))
    first = at.next_deadline()
    assert first is not None
    assert first <= 0.0
    at.handle_timeout(0.0)
    for _ in range(100):
        due = at.next_deadline()
        assert due is not None
        at.handle_timeout(due)
        later = at.next_deadline()
        assert later is not None
        assert later > due
        at.check_invariants()


def test_node_that_lacks_nothing_asks_seldom() -> None:
    calm = replace(PACE, ask_s=30)
    at = Succession(D, voter(D), calm, random.Random(1), 0.0)
    learn(at, 0.0, A, ONE)
    asked = sum(len(at.handle_timeout(float(second))) for second in range(600))
    assert 10 <= asked <= 30
