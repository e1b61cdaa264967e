"""A voter's lanes: they take turns, and how many have gone by costs nothing."""

import random
import time
from dataclasses import replace

from mesh.core.ids import NodeId
from mesh.placement.live_view import LiveView, Wants
from mesh.queues.settings import Strategy
from mesh.tasks.config import TasksConfig
from mesh.tasks.lane import Lane, LaneKey, Queued
from mesh.tasks.ready_queue import ReadyQueue
from tests.unit.tasks.stewarded import OWN, member

P, AHEAD, Q, BUSY = NodeId(21), NodeId(22), NodeId(23), NodeId(24)
WANTS = Wants(key="")
FEW, MANY = 500, 100_000


def wants_of(lane: Lane, _key: bytes) -> Wants:
    return lane.key.wants


class Queue:
    """A ready queue, and who is in its view."""

    def __init__(self) -> None:
        self.view = LiveView()
        self.strategies: dict[str, Strategy] = {}
        self.queue = ReadyQueue(
            own_id=OWN,
            view=self.view,
            rng=random.Random(1),
            config=TasksConfig(),
            strategy_of=lambda _now, queue: self.strategies.get(queue, Strategy.RENDEZVOUS),
        )
        self.waiting: dict[bytes, tuple[Lane, Queued]] = {}

    def add(self, name: str, number: int = 0, ahead: tuple[NodeId, ...] = ()) -> None:
        """Let one more task wait in a queue of this name."""
        lane = self.queue.enter(LaneKey(replace(WANTS, queue=name), ahead))
        task = Queued(f"{name}{number}".encode(), 0.0)
        self.waiting[task.key] = (lane, task)
        self.queue.add(0.0, lane, task)

    def leave(self, key: bytes) -> None:
        self.queue.leave(*self.waiting.pop(key))

    def taken(self) -> list[bytes]:
        """Return the tasks that are offered now, in their order."""
        found = []
        while (picked := self.queue.take_offer(0.0, wants_of)) is not None:
            found.append(picked[0])
        self.check()
        return found

    def check(self) -> None:
        lanes = {lane.key: lane for lane, _ in self.waiting.values()}
        sizes = {key: lane.tasks for key, lane in lanes.items()}
        self.queue.check_invariants(sizes, {key: len(lane.waiting) for key, lane in lanes.items()})


def _sweep_s(lanes: int) -> float:
    """Return the time that a look at so many lanes takes each of them, where nobody can run their tasks."""
    one = Queue()
    for number in range(lanes):
        one.add(f"q{number}-")
    began = time.process_time()
    assert one.queue.take_offer(0.0, wants_of) is None
    return (time.process_time() - began) / lanes


def test_lanes_take_turns_in_the_order_in_which_their_tasks_came() -> None:
    one = Queue()
    one.view.put(member(P, 5))
    for name, number in (("a", 1), ("a", 2), ("b", 1), ("a", 3), ("c", 1), ("b", 2)):
        one.add(name, number)
    assert one.taken() == [b"a1", b"b1", b"c1", b"a2", b"b2"]


def test_lane_that_found_nobody_stands_behind_those_that_still_wait_for_their_turn() -> None:
    one = Queue()
    one.view.put(member(P, 1))
    for name in ("a", "b", "c"):
        one.add(name, 1)
    assert one.taken() == [b"a1"]  # and the other two found nobody
    one.add("d", 1)
    one.queue.note_free(P, 4)
    assert one.taken() == [b"d1", b"b1", b"c1"]


def test_lane_whose_last_task_goes_has_no_turn_any_more() -> None:
    one = Queue()
    for name in ("a", "b", "c"):
        one.add(name, 1)
    one.leave(b"b1")
    one.view.put(member(P, 4))
    assert one.taken() == [b"a1", b"c1"]


def test_lane_of_a_voter_that_is_gone_gets_its_turn_once() -> None:
    one = Queue()
    one.view.put(member(AHEAD, 0))
    one.add("a", 1, (AHEAD,))
    one.add("b", 1)
    one.view.drop(AHEAD)
    one.view.put(member(P, 4))
    one.queue.drop_member(0.0, AHEAD)
    one.queue.drop_member(0.0, AHEAD)
    assert one.taken() == [b"b1", b"a1"]


def test_lanes_that_had_their_turn_cost_those_behind_them_nothing() -> None:
    few_s = min(_sweep_s(FEW) for _ in range(5))
    many_s = _sweep_s(MANY)
    print(f"\n{1e6 * few_s:.1f} us a lane of {FEW}, {1e6 * many_s:.1f} us of {MANY}")
    assert many_s < 5 * few_s


def test_who_is_called_is_told_of_with_the_slots_that_nobody_else_asks_for() -> None:
    one = Queue()
    for node_id, free in ((P, 3), (Q, 2), (BUSY, 0)):
        one.view.put(member(node_id, free))
    one.add("a", 1)
    lane, _ = one.waiting[b"a1"]
    picked = one.queue.take_offer(0.0, wants_of)
    assert picked is not None
    first = picked[1]
    able = {one.node_id: one.free_slots for one in one.queue.able(lane, WANTS, first)}
    if first.node_id == BUSY:  # it is asked for its word alone, and is no match
        assert able == {P: 3, Q: 2, BUSY: 0}
    else:  # the slot that is counted as asked for is for this task
        assert able == {P: 3, Q: 2}
    other = one.view.get(P if first.node_id != P else Q)
    assert other is not None
    able = {one.node_id: one.free_slots for one in one.queue.able(lane, WANTS, other)}
    assert able.get(first.node_id, 0) == max(0, first.free_slots - 1)
