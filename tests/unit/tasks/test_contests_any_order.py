"""Calls, bids, answers, grants and losses in any order: no task without a timer, no slot counted twice."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.core.ids import NodeId
from mesh.queues.settings import Strategy
from mesh.tasks.body import Body
from mesh.tasks.changes import Release
from mesh.tasks.form import of_value
from mesh.wire.contest_messages import Bid, VitalsTold
from mesh.wire.register_messages import Owner, Value
from mesh.wire.task_messages import Decline, OfferAnswer, TaskState
from tests.unit.tasks.made import NOON, TOKEN, claimed, ended, new
from tests.unit.tasks.stewarded import CONFIG, Stewarded, member

NODES = tuple(NodeId(n) for n in range(21, 27))
TASKS = tuple(f"t{n}" for n in range(6))
PAUSES_S = (0.001, 0.02, 0.2, 2.0, 5.0, 11.0)


class AnyOrder:
    """A steward, and what may happen to it: each step is about a task or a member, and has one more number."""

    def __init__(self) -> None:
        self.world = Stewarded(*map(member, NODES))

    def do(self, what: str, number: int, more: int) -> None:
        """Take one step, and look at everything."""
        getattr(self, what)(number, more)
        self.world.look()

    def submit(self, number: int, _more: int) -> None:
        if self._value(number) is None:
            self.world.hold(TASKS[number], new(retries=9, task_id=TASKS[number]))

    def win(self, number: int, more: int) -> None:
        value = self._value(number)
        if value is not None and self._body(number).state is TaskState.READY:
            owner = Owner(NODES[more], 1)
            self.world.hold(TASKS[number], claimed(value, owner), node=owner.node_id)

    def finish(self, number: int, more: int) -> None:
        value = self._value(number)
        if value is not None and value.owner is not None:
            self._write(number, ended(value, more % 2, value.owner))

    def release(self, number: int, _more: int) -> None:
        value = self._value(number)
        if value is not None and value.owner is not None:
            attempt = self._body(number).attempt
            let_go = Release(NOON + 3, value.owner, attempt, TOKEN, "it leaves")(value)
            assert let_go is not None
            self._write(number, let_go)

    def bid(self, number: int, more: int) -> None:
        bid = Bid(TASKS[number], self._attempt(number), 0, 9_000 * more)
        self.world.steward.handle_message(self.world.now, NODES[more], bid)

    def answer(self, number: int, more: int) -> None:
        """Let somebody answer, mostly one that was asked."""
        decline = list(Decline)[(number + more) % len(Decline)]
        asked = [to for to, offer in self.world.offers if offer.task_id == TASKS[number]]
        sender = asked[-1] if asked else NODES[more]
        answer = OfferAnswer(TASKS[number], self._attempt(number), decline, more)
        self.world.steward.handle_message(self.world.now, sender, answer)

    def free(self, number: int, more: int) -> None:
        self.world.hear_free(NODES[number], more)

    def tell(self, number: int, more: int) -> None:
        message = VitalsTold(more, 10 * more)
        self.world.steward.handle_message(self.world.now, NODES[number], message)

    def down(self, number: int, _more: int) -> None:
        self.world.view.drop(NODES[number])
        self.world.steward.handle_member_down(self.world.now, NODES[number])

    def up(self, number: int, more: int) -> None:
        self.world.view.put(member(NODES[number], more))
        self.world.steward.handle_member_up(NODES[number])

    def prove(self, number: int, _more: int) -> None:
        self.world.steward.end(self.world.now, NODES[number], 1)

    def adopt(self, _number: int, more: int) -> None:
        self.world.records.at = (0, 1, None)[more % 3]
        self.world.steward.adopt(self.world.now)

    def set_strategy(self, _number: int, more: int) -> None:
        self.world.strategies["default"] = list(Strategy)[more % len(Strategy)]

    def wait(self, number: int, _more: int) -> None:
        self.world.wait(PAUSES_S[number])
        due = self.world.steward.next_timeout()
        assert due is None or due >= self.world.now

    def waiting(self) -> set[str]:
        """Return the tasks that are ready."""
        return {
            task_id
            for number, task_id in enumerate(TASKS)
            if self._value(number) is not None and self._body(number).state is TaskState.READY
        }

    # Inside.

    def _value(self, number: int) -> Value | None:
        return self.world.record(TASKS[number]).value

    def _body(self, number: int) -> Body:
        value = self._value(number)
        assert value is not None
        return of_value(value)

    def _attempt(self, number: int) -> int:
        return 1 if self._value(number) is None else self._body(number).attempt + 1

    def _write(self, number: int, value: Value) -> None:
        record = self.world.record(TASKS[number])
        self.world.write(TASKS[number], record.ballot, record.seq + 1, value)


STEPS = (
    *("submit", "win", "finish", "release", "bid", "answer", "answer", "free", "tell"),
    *("down", "up", "prove", "adopt", "set_strategy", "wait", "wait"),
)


@settings(max_examples=100, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(STEPS), st.integers(0, 5), st.integers(0, 5)), max_size=40
    )
)
def test_whatever_comes_each_task_is_looked_at_again_and_no_slot_counts_twice(
    steps: list[tuple[str, int, int]],
) -> None:
    order = AnyOrder()
    for step in steps:
        order.do(*step)
    # And nothing is held up for good: once everybody has room, each that is ready is offered in bounded time.
    world = order.world
    world.records.at = 0
    for number in range(len(NODES)):
        order.do("up", number, 4)
    world.steward.adopt(world.now)
    world.offers.clear()
    waiting = order.waiting()
    world.look()
    world.wait(CONFIG.taken_pause_s_max + CONFIG.contest_s_max + 2 * CONFIG.offer_timeout_s)
    assert waiting <= {offer.task_id for _, offer in world.offers}
