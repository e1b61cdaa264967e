"""One node's questions to three voters, over a network that loses and delays what the test wants."""

from __future__ import annotations

import random

from mesh.core.ballot import Ballot
from mesh.core.effects import Persist
from mesh.core.ids import NodeId
from mesh.registers.asker import PAUSE_S, Exists, Late
from mesh.registers.numbers import BLOCK
from mesh.registers.proposal import RESEND_S, Chosen, Reason, Refused
from mesh.registers.reading import Seen
from mesh.wire.register_messages import (
    Accept,
    Answer,
    Prepare,
    Promised,
    Read,
    Request,
    Standing,
    Value,
)
from mesh.wire.roster_messages import Roster
from tests.unit.registers.askers import (
    DONE,
    KEY,
    ME,
    OTHER,
    READY,
    TIMES,
    VOTERS,
    A,
    B,
    C,
    World,
    answers,
    owned,
)


def test_register_that_nobody_knows_is_created_at_a_majority() -> None:
    world = World()
    outcome = world.create()
    assert isinstance(outcome, Chosen)
    assert [world.voters[voter].record(KEY).value for voter in VOTERS] == [READY] * 3
    assert len(world.askers[ME]) == 0
    assert world.askers[ME].next_deadline() is None


def test_ballot_number_is_stored_before_anything_is_asked_under_it_and_a_block_at_a_time() -> None:
    world = World()
    out = world.askers[ME].propose(0.0, KEY, lambda _found: READY, "p", 5.0)
    assert out[0] == Persist({"ballot_numbers": 1 + BLOCK})
    assert all(isinstance(one[1], Prepare) for one in out[1:] if isinstance(one, tuple))
    again = world.askers[ME].propose(0.0, b"other", lambda _found: READY, "q", 5.0)
    assert not [one for one in again if isinstance(one, Persist)]


def test_register_that_a_majority_knows_exists_and_is_left_alone() -> None:
    world = World()
    world.put(owned(), A, B)
    assert world.create() == Exists(owned())
    assert world.voters[C].record(KEY).value is None
    assert world.voters[A].record(KEY).promised == Ballot(0, 1, 1, A)


def test_register_that_one_voter_knows_is_written_back_before_it_counts() -> None:
    world = World()
    world.put(Value(Standing.OPEN, b"earlier"), A)
    outcome = world.create()
    assert isinstance(outcome, Chosen)
    assert outcome.value.body == b"earlier"
    held = [world.voters[voter].record(KEY).value for voter in VOTERS]
    assert held.count(outcome.value) >= 2


def test_register_that_is_leased_at_one_voter_is_created_by_nobody_else_meanwhile() -> None:
    world = World()
    world.put(owned(), A, B)
    world.reaches = lambda to, _request: to in {B, C}
    world.carry(world.askers[ME].create(0.0, KEY, READY, "create", 5.0))
    for _ in range(4):
        world.wait()
    assert "create" not in world.done
    world.put(owned(), C)  # the owner's accept comes through
    assert world.settle("create") == Exists(owned())


def test_lease_that_lapsed_where_only_one_voter_knew_it_is_written_back_as_it_was() -> None:
    world = World()
    world.put(owned(), A)
    world.reaches = lambda to, _request: to in {A, B}
    world.carry(world.askers[ME].create(0.0, KEY, READY, "create", 30.0))
    outcome = world.settle("create")
    assert isinstance(outcome, Chosen | Exists)
    assert outcome.value == owned()
    assert world.now >= TIMES.voter_s + TIMES.grace_s
    assert world.voters[B].record(KEY).value == owned()


def test_end_that_only_some_hold_is_written_back_before_a_creator_is_told_of_it() -> None:
    world = World()
    world.put(READY, A, B)
    world.put(DONE, A, n=2)
    world.reaches = lambda to, _request: to in {A, B}
    outcome = world.create()
    assert isinstance(outcome, Chosen)
    assert outcome.value == world.voters[B].record(KEY).value == DONE


def test_question_at_its_owners_own_node_leaves_a_lease_alone() -> None:
    world = World()
    world.put(owned(ME), A)
    world.reaches = lambda to, _request: to in {A, B}
    world.carry(world.askers[ME].read(0.0, KEY, "r", 30.0))
    world.carry(world.askers[ME].create(0.0, KEY, READY, "create", 30.0))
    while (world.askers[ME].next_deadline() or 0.0) < TIMES.voter_s:
        world.wait()
    assert not world.done
    assert world.voters[A].record(KEY).promised == Ballot(0, 1, 1, A)
    world.put(owned(ME), B)
    assert world.settle("create") == Exists(owned(ME))
    assert world.settle("r") == Seen(owned(ME), is_chosen=True, is_known=True)


def test_two_creations_at_once_make_one_register() -> None:
    for seed in range(40):
        world = World()
        rng = random.Random(seed)
        world.reaches = lambda _to, _request, rng=rng: rng.random() < 0.7  # type: ignore[misc]  # bound now
        values = {node: Value(Standing.OPEN, b"%d" % node) for node in (ME, OTHER)}
        for node in (ME, OTHER):
            world.carry(world.askers[node].create(0.0, KEY, values[node], node, 30.0), node)
        found = []
        for node in (OTHER, ME):
            outcome = world.settle(node, node)
            assert isinstance(outcome, Chosen | Exists), (seed, outcome)
            found.append(outcome.value)
        assert found[0] == found[1], seed


def test_lost_messages_are_sent_again() -> None:
    world = World()
    lost: set[tuple[NodeId, type]] = set()

    def reaches(to: NodeId, request: Request) -> bool:
        is_first = (to, type(request)) not in lost
        lost.add((to, type(request)))
        return not is_first

    world.reaches = reaches
    assert isinstance(world.create(), Chosen)
    assert world.now >= 3 * RESEND_S, "the read, the prepare and the accept were each lost once"


def test_outbid_asker_asks_again_above_what_it_heard_of() -> None:
    world = World()
    for voter in VOTERS:
        world.voters[voter].handle(0.0, Prepare(KEY, Ballot(0, 1, 500, OTHER), 1))
    world.carry(world.askers[ME].propose(0.0, KEY, lambda _found: READY, "p", 5.0))
    outcome = world.settle("p")
    assert isinstance(outcome, Chosen)
    assert outcome.ballot.n > 500
    assert world.now <= 2 * PAUSE_S


def test_lease_that_lives_ends_a_claim_at_once_and_leaves_no_trace() -> None:
    world = World()
    world.put(owned())
    world.carry(world.askers[ME].propose(0.0, KEY, lambda _found: owned(ME), "p", 5.0))
    outcome = world.settle("p")
    assert isinstance(outcome, Refused)
    assert outcome.reason is Reason.LEASED
    assert outcome.remaining_s == TIMES.voter_s + TIMES.grace_s - world.now
    assert {world.voters[voter].record(KEY).promised.node_id for voter in VOTERS} == {A}


def test_change_that_has_no_business_there_writes_nothing() -> None:
    world = World()
    world.put(READY)
    world.carry(world.askers[ME].propose(0.0, KEY, lambda _found: None, "p", 5.0))
    outcome = world.settle("p")
    assert isinstance(outcome, Refused)
    assert (outcome.reason, outcome.found) == (Reason.UNCHANGED, READY)


def test_final_value_is_found_and_never_handed_to_a_change() -> None:
    world = World()
    world.put(DONE, A)
    world.reaches = lambda to, _request: to in {A, B}

    def change(_found: Value | None) -> Value | None:
        raise AssertionError("it is final")

    world.carry(world.askers[ME].propose(0.0, KEY, change, "p", 5.0))
    outcome = world.settle("p")
    assert isinstance(outcome, Chosen)
    assert outcome.is_found
    assert world.voters[B].record(KEY).value == DONE, "a majority holds it before anybody is told"


def test_read_is_answered_by_a_majority_that_agrees_and_disturbs_nobody() -> None:
    world = World()
    world.put(owned(), A, B)
    world.reaches = lambda to, _request: to in {A, B}
    world.carry(world.askers[ME].read(0.0, KEY, "r", 5.0))
    assert world.done["r"] == Seen(owned(), is_chosen=True, is_known=True)
    assert not world.persisted


def test_read_of_a_register_that_nobody_has_created_says_so() -> None:
    world = World()
    world.carry(world.askers[ME].read(0.0, KEY, "r", 5.0))
    assert world.done["r"] == Seen(None, is_chosen=True, is_known=False)


def test_read_writes_back_what_only_some_hold() -> None:
    world = World()
    world.put(DONE, A)
    world.reaches = lambda to, _request: to in {A, B}
    world.carry(world.askers[ME].read(0.0, KEY, "r", 5.0))
    assert world.settle("r") == Seen(DONE, is_chosen=True, is_known=True)
    assert world.voters[B].record(KEY).value == DONE


def test_read_waits_for_an_owner_whose_write_is_on_its_way() -> None:
    world = World()
    world.put(owned(), A)
    world.reaches = lambda to, _request: to in {A, B}
    world.carry(world.askers[ME].read(0.0, KEY, "r", 5.0))
    world.wait()
    assert "r" not in world.done
    world.put(owned(), B)
    assert world.settle("r") == Seen(owned(), is_chosen=True, is_known=True)


def test_question_ends_in_time_and_says_what_may_have_become_of_it() -> None:
    world = World()
    world.reaches = lambda _to, request: not isinstance(request, Accept)
    world.carry(world.askers[ME].propose(0.0, KEY, lambda _found: READY, "p", 2.0))
    assert world.settle("p") == Late(may_be_chosen=True)
    assert world.now == 2.0
    world.reaches = lambda _to, _request: False
    world.carry(world.askers[ME].propose(2.0, KEY, lambda _found: READY, "q", 2.0))
    assert world.settle("q") == Late(may_be_chosen=False)
    assert len(world.askers[ME]) == 0
    assert world.askers[ME]._by_ballot == {}


def test_another_epoch_starts_the_question_over_with_a_ballot_of_it() -> None:
    world = World()
    for voter in VOTERS:
        world.voters[voter].install(0.0, 2, {})
    world.carry(world.askers[ME].create(0.0, KEY, READY, "c", 5.0))
    world.carry(world.askers[ME].propose(0.0, b"p", lambda _found: READY, "p", 5.0))
    world.roster = Roster(2, VOTERS)
    for tag in ("c", "p"):
        outcome = world.settle(tag)
        assert isinstance(outcome, Chosen)
        assert outcome.ballot.epoch == 2


def test_answers_to_questions_that_are_over_are_dropped() -> None:
    world = World()
    outcome = world.create()
    assert isinstance(outcome, Chosen)
    late: list[Answer] = [Promised(KEY, outcome.ballot, Ballot(0, 0, 0, NodeId(0)), 0, None)]
    late += answers(world.voters[A], 0.0, Read(KEY, 1, 1))
    for answer in late:
        assert world.askers[ME].handle(0.0, A, answer) == []
