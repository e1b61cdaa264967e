"""Creations in one step, by a register's first voter, and of what is new."""

from __future__ import annotations

from mesh.core.ballot import Ballot
from mesh.registers.asker import Exists
from mesh.registers.proposal import Chosen
from mesh.registers.voter import Store
from mesh.wire.register_messages import (
    Accepted,
    Owner,
    Prepare,
    Read,
    Standing,
    Value,
)
from mesh.wire.roster_messages import Roster
from tests.unit.registers.askers import (
    KEY,
    ME,
    OTHER,
    READY,
    VOTERS,
    A,
    B,
    C,
    World,
)


def first_voter_creates(world: World, value: Value = READY, first: Value | None = None) -> None:
    """Let voter A, which is its own asker, create the register in one step."""
    world.askers[A] = world._asker(A)
    first = first or value
    steps = world.voters[A].create(world.now, KEY, 0, first)
    assert steps is not None
    store, accepted = steps
    assert isinstance(store, Store)
    assert isinstance(accepted, Accepted)
    asker = world.askers[A]
    world.carry(
        asker.finish_creation(
            world.now, KEY, value, accepted.ballot, first=first, tag="first", timeout_s=30.0
        ),
        A,
    )
    world.carry(asker.handle(world.now, A, accepted), A)  # its own, now that it is durable


def test_first_voter_creates_in_one_step() -> None:
    world = World()
    first_voter_creates(world)
    outcome = world.done["first"]
    assert isinstance(outcome, Chosen)
    assert outcome.ballot == Ballot(0, 1, 0, A)
    assert world.sent == 2
    assert [world.voters[voter].record(KEY).value for voter in VOTERS] == [READY] * 3


def test_what_a_first_voter_writes_may_be_more_than_anybody_else_would() -> None:
    world = World()
    more = Value(Standing.LEASED, b"named", Owner(OTHER, 1))
    first_voter_creates(world, READY, more)
    outcome = world.done["first"]
    assert isinstance(outcome, Chosen)
    assert outcome.value == more


def test_what_is_new_is_created_without_being_asked_for_first() -> None:
    world = World()
    asker = world.askers[ME]
    asked = asker.create(world.now, KEY, READY, "new", 30.0, is_new=True)
    assert not any(isinstance(one[1], Read) for one in asked if isinstance(one, tuple))
    world.carry(asked)
    assert isinstance(world.settle("new"), Chosen)


def test_first_voter_that_is_alone_has_created_it_when_it_hears_itself() -> None:
    world = World()
    world.roster = Roster(1, (A,))
    first_voter_creates(world)
    assert isinstance(world.done["first"], Chosen)
    assert world.sent == 0


def test_first_voter_asks_as_ever_where_the_others_know_of_another_creation() -> None:
    world = World()
    earlier = Value(Standing.OPEN, b"earlier")
    world.put(earlier, B, C, node=ME)
    first_voter_creates(world)
    assert world.settle("first", A) == Exists(earlier)


def test_first_voter_asks_as_ever_where_the_others_have_promised() -> None:
    world = World()
    for voter in (B, C):
        world.voters[voter].handle(0.0, Prepare(KEY, Ballot(0, 1, 5, OTHER), 1))
    first_voter_creates(world)
    outcome = world.settle("first", A)
    assert isinstance(outcome, Chosen)
    assert outcome.value == READY
    assert outcome.ballot.n > 5
