"""Round robin and pull, at one voter: who is asked for what, in which order."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.core.ids import NodeId
from mesh.placement.live_view import LiveMember
from mesh.queues.settings import Strategy
from mesh.tasks import choosing
from mesh.tasks.body import Result
from mesh.tasks.changes import Finish, Release
from mesh.tasks.form import of_value, to_value
from mesh.wire.contest_messages import VitalsTold
from mesh.wire.register_messages import Owner, Value
from mesh.wire.task_messages import Decline
from tests.unit.tasks.made import ANNA, NOON, TOKEN, claimed, new
from tests.unit.tasks.stewarded import CONFIG, SECOND, TIMES, Stewarded, member

P, Q, R = NodeId(21), NodeId(22), NodeId(23)
OLDEST_FIRST = [Strategy.ROUND_ROBIN, Strategy.PULL]


def made(
    task_id: str,
    at: float = 0.0,
    *,
    queue: str = "default",
    key: str = "",
    gpu: int = 1,
    retries: int = 0,
) -> Value:
    """Return a task that was made so many seconds after ten minutes before noon, when the steward begins."""
    body = of_value(new(retries, task_id=task_id))
    spec = replace(body.spec, queue=queue, key=key, needs=(("gpu", gpu),) if gpu else ())
    return to_value(replace(body, spec=spec, created=NOON - 600 + at))


class Ruled(Stewarded):
    """A steward whose default queue has a strategy."""

    def __init__(self, strategy: Strategy, *members: LiveMember, place: int | None = 0) -> None:
        super().__init__(*members, place=place)
        self.strategies["default"] = strategy
        self._taken = 0

    def take(self) -> list[tuple[NodeId, str]]:
        """Return who was offered what since the last take; all of it may still be answered."""
        new, self._taken = self.offers[self._taken :], len(self.offers)
        return [(to, offer.task_id) for to, offer in new]

    def join(self, node_id: NodeId, free: int) -> None:
        """Let a member come, or say how many slots it has free."""
        self.view.put(member(node_id, free))
        self.steward.handle_member_up(node_id)
        self.look()

    def lose(self, node_id: NodeId) -> None:
        self.view.drop(node_id)
        self.steward.handle_member_down(self.now, node_id)
        self.look()

    def run(self, task_id: str, at: NodeId, free: int) -> None:
        """Let a member take the task that it was offered; so many slots are free there beside it."""
        found = self.record(task_id).value
        assert found is not None
        self.answer(at, task_id, Decline.NONE, free)
        self.hold(task_id, claimed(found, Owner(at, 1)), node=at)

    def submit(self, task_id: str, key: str = "") -> NodeId:
        """Let a task come in; return who was offered it."""
        self.hold(task_id, made(task_id, 600 + self.now, key=key))
        ((to, offered),) = self.take()
        assert offered == task_id
        return to


# Round robin.


@settings(max_examples=40)
@given(members=st.integers(1, 7), tasks=st.integers(0, 40), key=st.sampled_from(["", "one key"]))
def test_tasks_are_spread_evenly_while_all_have_slots(members: int, tasks: int, key: str) -> None:
    ids = [NodeId(21 + number) for number in range(members)]
    world = Ruled(Strategy.ROUND_ROBIN, *(member(one, tasks) for one in ids))
    asked = Counter(dict.fromkeys(ids, 0))
    for number in range(tasks):
        asked[world.submit(f"t{number}", key)] += 1
    assert max(asked.values()) - min(asked.values()) <= 1


def test_members_are_asked_by_their_ids_though_tasks_come_one_at_a_time() -> None:
    world = Ruled(Strategy.ROUND_ROBIN, member(P, 9), member(Q, 9), member(R, 9))
    asked = []
    for number in range(7):
        asked.append(world.submit(f"t{number}"))
        world.run(f"t{number}", asked[-1], 9)
        ballot = world.record(f"t{number}").ballot
        world.write(f"t{number}", ballot, 1, _ended(world, f"t{number}", asked[-1]))
        assert len(world.steward) == 0
    assert asked == [P, Q, R, P, Q, R, P]


def _ended(world: Stewarded, task_id: str, by: NodeId) -> Value:
    found = world.record(task_id).value
    assert found is not None
    value = Finish(NOON + 5, Owner(by, 1), 1, TOKEN, Result(exit_code=0), 0.0)(found)
    assert value is not None
    return value


def test_who_comes_or_goes_is_neither_asked_twice_in_a_round_nor_skips_another() -> None:
    world = Ruled(Strategy.ROUND_ROBIN, member(P, 9), member(R, 9))
    assert [world.submit("a"), world.submit("b")] == [P, R]
    assert world.submit("c") == P
    world.join(Q, 9)  # between the two
    assert [world.submit("d"), world.submit("e")] == [Q, R]
    assert world.submit("f") == P
    world.lose(P)  # it was asked last: its place is kept though it is gone
    world.take()  # and what it was asked for goes to the next
    assert [world.submit("g"), world.submit("h")] == [R, Q]
    assert world.submit("i") == R


def test_member_that_declined_is_passed_over_until_it_has_a_slot_again() -> None:
    world = Ruled(Strategy.ROUND_ROBIN, member(P, 9), member(Q, 9), member(R, 9))
    assert [world.submit("a"), world.submit("b")] == [P, Q]
    world.answer(Q, "b", Decline.BUSY)
    assert world.take() == [(R, "b")]
    assert not world.calls, "nobody is called to a contest"
    assert [world.submit("c"), world.submit("d")] == [P, R]
    world.hear_free(Q, 4)
    assert [world.submit("e"), world.submit("f"), world.submit("g")] == [P, Q, R]


def test_each_voter_begins_its_round_behind_itself() -> None:
    begin = NodeId(1)  # the steward's own, below all others
    world = Ruled(Strategy.ROUND_ROBIN, member(begin, 9), member(P, 9))
    assert [world.submit("a"), world.submit("b"), world.submit("c")] == [P, begin, P]


def test_rounds_are_remembered_for_so_many_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "ROUNDS_MAX", 8)
    world = Ruled(Strategy.ROUND_ROBIN, member(P, 2**15), member(Q, 2**15))
    for number in range(8 + 5):
        name = f"q{number}"
        world.strategies[name] = Strategy.ROUND_ROBIN
        world.hold(name, made(name, queue=name))
        world.run(name, world.offers[-1][0], 2**15)
    rounds = world.steward._queue._choosing._rounds
    assert len(rounds) == 8
    assert next(iter(rounds)).queue == "q5"


# Pull.


def test_the_oldest_goes_to_whoever_has_most_slots_free() -> None:
    world = Ruled(Strategy.PULL)
    for at in (3, 1, 2):
        world.hold(f"t{at}", made(f"t{at}", at))
    world.view.put(member(P, 1))
    world.view.put(member(Q, 3))
    world.steward.handle_member_up(Q)
    world.look()
    assert world.take()[:2] == [(Q, "t1"), (Q, "t2")]


def test_what_was_heard_last_says_how_many_slots_are_free() -> None:
    world = Ruled(Strategy.PULL, member(P, 2), member(Q, 2), member(R, 2))
    world.hear_free(Q, 3)
    assert world.submit("a") == Q
    world.steward.handle_message(world.now, R, VitalsTold(5, 10))
    assert world.submit("b") == R
    world.answer(R, "b", Decline.NONE, 0)
    world.answer(Q, "a", Decline.NONE, 7)
    assert world.submit("c") == Q


def test_of_those_with_as_many_free_who_has_had_them_for_longest_is_asked() -> None:
    world = Ruled(Strategy.PULL, member(P, 1), member(Q, 1), member(R, 1))
    for task_id in "abc":
        world.run(task_id, world.submit(task_id), 0)
    for one in (R, P, Q):
        world.hear_free(one, 1)
    assert [world.submit(task_id) for task_id in "def"] == [R, P, Q]


def test_keys_name_no_home() -> None:
    world = Ruled(Strategy.PULL, member(P, 4), member(Q, 4))
    like = of_value(made("like", key="one key")).head
    assert world.steward.name_home(like) is None
    asked = Counter(world.submit(f"t{number}", "one key") for number in range(6))
    assert asked == {P: 3, Q: 3}
    world.strategies["default"] = Strategy.RENDEZVOUS
    assert world.steward.name_home(like) is not None


def test_member_that_declines_holds_no_task_while_others_are_idle() -> None:
    world = Ruled(Strategy.PULL, member(P, 4), member(Q, 1))
    assert world.submit("a") == P
    world.answer(P, "a", Decline.BUSY)
    assert world.take() == [(Q, "a")]
    assert not world.calls, "nobody is called to a contest"


# Both: the oldest first.


@pytest.mark.parametrize("strategy", OLDEST_FIRST)
def test_what_was_lost_let_go_or_is_to_be_tried_again_goes_by_when_it_was_made(
    strategy: Strategy,
) -> None:
    world = Ruled(strategy)
    world.hold("lost", claimed(made("lost", 20)))
    released = Release(NOON + 2, ANNA, 1, TOKEN, "it is leaving")(claimed(made("back", 40)))
    assert released is not None
    world.hold("back", released)
    failed = Finish(NOON + 2, ANNA, 1, TOKEN, Result(exit_code=1), 0.0)(
        claimed(made("retry", 30, retries=1))
    )
    assert failed is not None
    assert of_value(failed).not_before
    world.hold("retry", failed)
    for at in (50, 10, 35):
        world.hold(f"new{at}", made(f"new{at}", at))
    world.wait(TIMES.voter_s + TIMES.grace_s + 15)
    world.join(P, 6)
    order = ["new10", "lost", "retry", "new35", "back", "new50"]
    assert world.take() == [(P, task_id) for task_id in order]


@pytest.mark.parametrize("strategy", OLDEST_FIRST)
def test_what_was_declined_waits_in_its_old_place(strategy: Strategy) -> None:
    world = Ruled(strategy, member(P, 1))
    world.hold("a", made("a"))
    for at in (1, 2):
        world.hold(f"t{at}", made(f"t{at}", at))
    assert world.take() == [(P, "a")]
    world.answer(P, "a", Decline.BUSY)
    world.hear_free(P, 3)
    assert world.take() == [(P, "a"), (P, "t1"), (P, "t2")]


@pytest.mark.parametrize("strategy", OLDEST_FIRST)
def test_the_oldest_of_a_queue_goes_first_whatever_it_wants(strategy: Strategy) -> None:
    world = Ruled(strategy)
    for at in (4, 2, 1, 3):
        world.hold(f"t{at}", made(f"t{at}", at, gpu=at % 2))
    world.join(P, 4)
    assert world.take() == [(P, f"t{at}") for at in (1, 2, 3, 4)]


@pytest.mark.parametrize("strategy", OLDEST_FIRST)
def test_one_that_nobody_can_run_holds_up_none_behind_it(strategy: Strategy) -> None:
    world = Ruled(strategy)
    world.hold("huge", made("huge", 0, gpu=99))
    world.hold("small", made("small", 1))
    world.join(P, 2)
    assert world.take() == [(P, "small")]


@pytest.mark.parametrize("strategy", OLDEST_FIRST)
def test_queues_take_turns_though_the_tasks_of_one_are_all_older(strategy: Strategy) -> None:
    world = Ruled(strategy)
    world.strategies["other"] = strategy
    world.hold(
        "last", made("last", 99, gpu=0)
    )  # its lane is first, and all of the other's tasks are older
    for number in range(6):
        world.hold(f"old{number}", made(f"old{number}", number))
    for number in range(3):
        world.hold(f"new{number}", made(f"new{number}", 10 + number, queue="other"))
    world.join(P, 10)
    order = [task_id for _, task_id in world.take()]
    mine = [one for one in order if not one.startswith("new")]
    assert mine == [*(f"old{n}" for n in range(6)), "last"]
    # The first queue has two lanes, and so two turns to the other's one.
    assert [order.index(f"new{n}") for n in range(3)] == [2, 5, 8]


@pytest.mark.parametrize("strategy", Strategy)
def test_task_whose_maker_is_ahead_of_time_does_not_wait_for_ever(strategy: Strategy) -> None:
    world = Ruled(strategy)
    world.hold("ahead", made("ahead", 4200))
    world.wait(1)
    world.hold("later", made("later", 601))
    world.join(P, 1)
    assert world.take() == [(P, "ahead")]


@pytest.mark.parametrize("strategy", OLDEST_FIRST)
def test_second_voter_of_one_that_seems_alive_asks_now_and_then(strategy: Strategy) -> None:
    world = Ruled(strategy, member(SECOND, 0), member(P, 4), place=1)
    for number in range(50):
        world.hold(f"t{number}", made(f"t{number}", number))
    world.wait(CONFIG.stagger_s + 2 * CONFIG.offer_retry_s)
    assert 1 <= len(world.take()) <= 4
    world.lose(SECOND)
    world.hear_free(P, 40)
    assert len(world.offers) > 30


# A change of strategy.


def test_change_applies_to_the_next_offer() -> None:
    world = Ruled(Strategy.CONTEST, member(P, 9), member(Q, 9))
    world.hold("a", made("a"))
    assert {to for to, _ in world.calls} == {P, Q}
    world.calls.clear()
    world.take()
    world.strategies["default"] = Strategy.ROUND_ROBIN
    assert [world.submit("b"), world.submit("c"), world.submit("d")] == [P, Q, P]
    world.strategies["default"] = Strategy.RENDEZVOUS
    world.submit("e")
    assert not world.calls, "it has a home that may have it"


def test_lane_that_waits_is_in_order_after_a_change() -> None:
    world = Ruled(Strategy.RENDEZVOUS)
    for at in (3, 1, 2, 4):
        world.hold(f"t{at}", made(f"t{at}", at, gpu=at % 2))
    world.strategies["default"] = Strategy.PULL
    world.join(P, 4)
    assert world.take() == [(P, f"t{at}") for at in (1, 2, 3, 4)]
