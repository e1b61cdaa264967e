"""Each attempt says how whoever has it was found, and why its home was passed over."""

from __future__ import annotations

import pytest

from mesh.core.ids import NodeId
from mesh.queues.settings import Strategy
from mesh.tasks.commands import New, Submit
from mesh.tasks.form import of_value
from mesh.tasks.words import placed_text
from mesh.wire.task_messages import Decline, PlacedBy, Placement
from mesh.wire.work_messages import Spec
from tests.unit.tasks.crew import A, Crew
from tests.unit.tasks.stewarded import CONFIG, member
from tests.unit.tasks.test_strategies import P, Q, R, Ruled, made

IDS = (P, Q, R)


def homes(world: Ruled, task_id: str) -> list[NodeId]:
    """Return who comes first by rendezvous for a task, who next."""
    value = world.record(task_id).value
    assert value is not None
    wants = of_value(value).head.wants
    return [one.node_id for one in world.view.candidates(wants)]


def placed(world: Ruled) -> Placement | None:
    """Return why whoever was offered a task last was."""
    return world.offers[-1][1].placement


def test_a_home_with_a_slot_is_asked_as_the_home() -> None:
    world = Ruled(Strategy.RENDEZVOUS, *(member(one, 1) for one in IDS))
    home = world.submit("t")
    assert homes(world, "t")[0] == home
    assert placed(world) == Placement(PlacedBy.RANK, home)


@pytest.mark.parametrize("decline", [Decline.BUSY, Decline.UNSUITED])
def test_where_the_home_declined_that_is_said_of_it(decline: Decline) -> None:
    world = Ruled(Strategy.RENDEZVOUS, *(member(one, 1) for one in IDS[:2]))
    home = world.submit("t")
    world.answer(home, "t", decline)
    world.look()
    ((other, _),) = world.take()
    assert other != home
    assert placed(world) == Placement(PlacedBy.RANK, home, decline)


def test_a_home_that_is_full_is_passed_over_for_the_next() -> None:
    world = Ruled(Strategy.RENDEZVOUS, *(member(one, 4) for one in IDS))
    first = world.submit("a", "one key")
    world.hear_free(first, 0)
    next_one = world.submit("b", "one key")
    assert homes(world, "b")[:2] == [first, next_one]
    assert placed(world) == Placement(PlacedBy.RANK, first, Decline.BUSY)


@pytest.mark.parametrize(
    ("strategy", "by"), [(Strategy.ROUND_ROBIN, PlacedBy.TURN), (Strategy.PULL, PlacedBy.PULL)]
)
def test_without_homes_none_is_named(strategy: Strategy, by: PlacedBy) -> None:
    world = Ruled(strategy, member(P, 2), member(Q, 1))
    world.submit("t")
    assert placed(world) == Placement(by)


def test_a_contest_of_several_is_one_and_of_one_is_none() -> None:
    world = Ruled(Strategy.CONTEST, member(P, 2))
    world.submit("t")
    assert placed(world) == Placement(PlacedBy.ALONE)
    world = Ruled(Strategy.CONTEST, member(P, 2), member(Q, 2))
    world.hold("t", made("t"))
    world.look()
    assert {call.offer.placement for _, call in world.calls} == {Placement(PlacedBy.CONTEST)}


def test_whoever_is_asked_though_no_slot_is_known_is_asked_now_and_then() -> None:
    world = Ruled(Strategy.PULL, member(P, 0))
    world.submit("t")
    world.answer(P, "t", Decline.BUSY)
    world.offers.clear()
    world.look()
    assert not world.offers
    world.wait(2 * CONFIG.offer_retry_s)
    assert placed(world) == Placement(PlacedBy.ANYBODY)


@pytest.mark.parametrize("task_id", ["", "given"], ids=["named", "offered"])
def test_it_is_kept_with_the_attempt(task_id: str) -> None:
    crew = Crew({P: 1})
    new = New(Spec(task_id=task_id, argv=("work",)))
    answer = crew.give(A, lambda number: Submit(number, new))
    assert answer is not None
    found = crew.body(answer.result["id"])
    (start,) = crew.nodes[P].starts()
    crew.exit(P, start.run_id)
    ended = crew.body(answer.result["id"])
    by = PlacedBy.RANK if task_id else PlacedBy.NAMED
    for body in (found, ended):
        assert [one.placement for one in body.attempts] == [Placement(by, P)]


@pytest.mark.parametrize(
    ("placed", "words"),
    [
        (None, ""),
        (("named", "n1", None), "n1 is its home, and was named as the task was created"),
        (("rank", "n1", None), "n1 is its home"),
        (
            ("rank", "n2", "busy"),
            "n2 is its home, but no slot of it was known to be free; n1 came next by rendezvous",
        ),
        (
            ("contest", "n2", "unsuited"),
            "n2 is its home, but it said that it cannot run the like of this; n1 was granted it in a contest",
        ),
        (("contest", "n1", "busy"), "n1 is its home; n1 was granted it in a contest"),
        (("contest", None, None), "n1 was granted it in a contest"),
        (("pull", None, None), "n1 had the most slots free"),
        (("turn", None, None), "it was the turn of n1"),
    ],
)
def test_it_is_told_in_words(placed: tuple[str, str | None, str | None] | None, words: str) -> None:
    found = None if placed is None else dict(zip(("by", "home", "passed"), placed, strict=True))
    assert placed_text(found, "n1") == words
