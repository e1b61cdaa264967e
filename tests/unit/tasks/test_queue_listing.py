"""The queues that something is set for: what a voter keeps, and what anybody uses, and nothing that is made up."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mesh.core.ids import NodeId
from mesh.placement.live_view import LiveView
from mesh.queues.commands import ListQueues, SetQueue, ShowQueue
from mesh.queues.settings import QueueSettings, Strategy, of_value, queue_key, to_value
from mesh.tasks import queue_listing
from mesh.tasks.means import Means
from mesh.tasks.queue_listing import QueueListing
from mesh.wire.register_messages import Accept, Standing, Value
from tests.unit.tasks.asked import result
from tests.unit.tasks.crew import A, B, Crew
from tests.unit.tasks.hall import VOTERS, Clerk, Hall, card_of
from tests.unit.tasks.made import ANNA, NOON, TOKEN

OUT = NodeId(30)  # no voter: somebody's laptop


def listed(crew: Crew, own: NodeId) -> list[tuple[str, str]]:
    answer = crew.give(own, ListQueues)
    assert answer is not None
    assert f"as n{own} knows them" in answer.result["local"]
    return [(one["queue"], one["strategy"]) for one in answer.result["queues"]]


def give(crew: Crew, own: NodeId, queue: str, strategy: Strategy) -> None:
    answer = crew.give(own, lambda number: SetQueue(number, queue, strategy))
    assert answer is not None
    assert answer.error is None


def test_a_voter_lists_what_it_keeps_and_hears_of_what_is_set_later() -> None:
    crew = Crew({OUT: 0})
    assert listed(crew, A) == []
    give(crew, B, "q10", Strategy.CONTEST)
    give(crew, B, "q9", Strategy.PULL)
    assert listed(crew, A) == [("q9", "pull"), ("q10", "contest")]
    give(crew, B, "q9", Strategy.ROUND_ROBIN)
    assert listed(crew, A)[0] == ("q9", "round_robin")


def test_a_voter_lists_what_was_set_before_it_was_asked() -> None:
    crew = Crew({})
    give(crew, B, "heavy", Strategy.CONTEST)
    crew.submit("t")  # a task is no queue
    assert listed(crew, A) == [("heavy", "contest")]


def test_who_votes_on_nothing_lists_what_it_has_used_and_what_has_no_setting_is_on_no_list() -> (
    None
):
    crew = Crew({OUT: 0})
    give(crew, A, "heavy", Strategy.CONTEST)
    assert listed(crew, OUT) == []
    crew.give(OUT, lambda number: ShowQueue(number, "heavy"))
    crew.give(OUT, lambda number: ShowQueue(number, "never set"))
    assert listed(crew, OUT) == [("heavy", "contest")]


def told(clerk: Clerk, *known: QueueSettings) -> dict[str, Any]:
    """Return the list of a voter that also knows these of queues in use."""
    means = Means(
        registers=clerk,
        card=lambda: card_of(ANNA.node_id, ANNA.boot),
        view=LiveView(),
        rng=random.Random(5),
        unix_offset_s=NOON,
        name_of=str,
        known_queues=lambda: known,
    )
    return result(QueueListing(means).answer(ListQueues(1)))


def settings(queue: str, count: int, strategy: Strategy = Strategy.PULL) -> QueueSettings:
    return QueueSettings(queue=queue, strategy=strategy, count=count, set_at=1.0, set_by="dora")


def keep(hall: Hall, key: bytes, value: Value) -> None:
    for voter in VOTERS:
        hall.ask(voter, Accept(key, 1, TOKEN, 0, value))


def test_what_cannot_be_read_is_counted_and_a_long_list_is_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hall = Hall()
    clerk = Clerk(hall, ANNA)
    for queue in ("a", "c", "d"):
        keep(hall, queue_key(queue), to_value(settings(queue, 1)))
    keep(hall, queue_key("b"), Value(Standing.OPEN, b"of a later version"))
    found = told(clerk)
    assert [one["queue"] for one in found["queues"]] == ["a", "c", "d"]
    assert (found["left_out"], found["unread"]) == (0, 1)
    decoded = []

    def note(queue: str, value: Value) -> QueueSettings:
        decoded.append(queue)
        return of_value(queue, value)

    monkeypatch.setattr(queue_listing, "LIST_MAX", 2)
    monkeypatch.setattr(queue_listing, "of_value", note)
    found = told(clerk)
    assert [one["queue"] for one in found["queues"]] == ["a", "c"]
    assert (found["left_out"], found["unread"]) == (1, 1)
    assert decoded == ["a", "b", "c"], "and nothing of what is left out"


def test_a_queue_whose_name_is_too_long_for_a_key_is_listed_by_its_name() -> None:
    hall = Hall()
    clerk = Clerk(hall, ANNA)
    long = "\u00e9" * 100
    for queue in ("z", long):
        keep(hall, queue_key(queue), to_value(settings(queue, 1)))
    keep(hall, queue_key("x" + long), Value(Standing.OPEN, b"of a later version"))
    found = told(clerk)
    assert [one["queue"] for one in found["queues"]] == ["z", long]
    assert found["unread"] == 1


def test_of_two_that_are_known_the_later_setting_is_listed() -> None:
    hall = Hall()
    clerk = Clerk(hall, ANNA)
    keep(hall, queue_key("a"), to_value(settings("a", 2)))
    for count, strategy in ((1, "pull"), (3, "contest")):
        (one,) = told(clerk, settings("a", count, Strategy.CONTEST))["queues"]
        assert one["strategy"] == strategy
