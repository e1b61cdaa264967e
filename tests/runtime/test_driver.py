"""The driver with a scripted node: order, deadlines, answers, and bugs that come from outside."""

from __future__ import annotations

import math

import pytest
import trio
import trio.testing

from mesh.core import effects as fx
from mesh.core.events import Event, EventKind
from mesh.core.process import ProcessExit
from mesh.errors import CommandRefused, DataDirectoryError, LocalProtocolError
from mesh.node.commands import Command, Leave, SetLoad
from mesh.runtime.busy import load_average_pct
from mesh.runtime.driver import Driver
from mesh.runtime.store.faults import StoreError
from mesh.tasks.commands import GetTask
from tests.runtime.scripted_driver import PEER, ScriptedNode, driven


def send(text: bytes) -> fx.SendDatagram:
    return fx.SendDatagram(PEER, text)


async def test_effects_are_carried_out_in_order() -> None:
    effects: list[fx.Effect] = [
        fx.Persist({"boot": 5}),
        send(b"a"),
        fx.Emit(Event(kind=EventKind.WARN)),
        fx.StartExchange(1, PEER, b"x", 1.0),
        fx.Resolve("host"),
        fx.ReadOutput(1, 2),
        fx.StopProcess(1, 2.5),
        send(b"b"),
    ]
    async with driven(ScriptedNode(datagram=lambda _: effects)) as (driver, hand, _):
        driver.handle_datagram(PEER, b"")
        assert hand.did == [
            {"boot": 5}, b"a", EventKind.WARN, effects[3], "host", *effects[5:7], b"b"
        ]  # fmt: skip


async def test_an_effect_that_answers_at_once_does_not_overtake_those_before_it() -> None:
    node = ScriptedNode(
        datagram=lambda _: [fx.StartProcess(1, ("x",), {}, ""), send(b"first")],
        process=lambda event: [send(b"second")],
    )
    async with driven(node) as (driver, hand, _):
        driver.handle_datagram(PEER, b"")
        assert hand.did[1:] == [b"first", b"second"]


async def test_a_reply_leaves_after_its_effects() -> None:
    node = ScriptedNode(request=lambda _: [fx.Persist({"boot": 1})])
    async with driven(node) as (driver, hand, _):
        assert driver.handle_request(PEER, b"x") == b"reply"
        assert hand.did == [{"boot": 1}]


async def test_the_end_of_a_commit_is_an_input_like_any_other() -> None:
    node = ScriptedNode(
        request=lambda _: [fx.Commit(7, numbers={"n": 1}), send(b"meanwhile")],
        committed=lambda _: [send(b"after")],
    )
    async with driven(node) as (driver, hand, _):
        assert driver.handle_request(PEER, b"x") == b"reply"
        driver.handle_committed(7)
        assert hand.did == [fx.Commit(7, numbers={"n": 1}), b"meanwhile", b"after"]


@pytest.mark.parametrize("effect", [fx.Persist({"boot": 1}), fx.Commit(1, numbers={"n": 1})])
@pytest.mark.parametrize(
    "error",
    [
        DataDirectoryError("the disk is full"),
        StoreError("the disk is full"),
        OSError(5, "the disk is full"),
    ],
)
async def test_a_disk_that_refuses_stops_the_node_before_anything_leaves(
    error: Exception, effect: fx.Effect
) -> None:
    node = ScriptedNode(request=lambda _: [effect, send(b"never")])
    async with driven(node) as (driver, hand, stops):
        hand.disk_error = error
        assert driver.handle_request(PEER, b"x") == b""
        await trio.testing.wait_all_tasks_blocked()
        assert hand.did == []
        assert [stop.exit_code for stop in stops] == [1]
        assert "the disk is full" in stops[0].reason


async def test_the_node_is_woken_at_its_deadline_and_not_before(
    autojump_clock: trio.testing.MockClock,
) -> None:
    node = ScriptedNode()
    async with driven(node) as (driver, _, _):
        node.deadline = trio.current_time() + 5
        began = trio.current_time()
        driver.handle_datagram(PEER, b"arms it")
        await trio.sleep(20)
        (woken,) = (given[1] for given in node.inputs if given[0] == "timeout")
        assert woken - began == pytest.approx(5)


async def test_a_loop_that_is_held_up_tells_how_late_it_was(
    mock_clock: trio.testing.MockClock,
) -> None:
    node = ScriptedNode()
    node.deadline = trio.current_time() + 1
    async with driven(node) as (driver, _, _):
        assert driver.lateness.to_json()["deadlines"] == 0
        mock_clock.jump(1.25)  # nobody gets a turn meanwhile
        await trio.testing.wait_all_tasks_blocked()
        found = driver.lateness.to_json()
    assert (found["deadlines"], found["worst_ms"]) == (1, 250.0)


async def test_a_deadline_that_falls_due_amid_the_work_that_set_it_is_late_by_the_rest_of_that(
    mock_clock: trio.testing.MockClock,
) -> None:
    def work(_: bytes) -> list[fx.Effect]:
        node.deadline = trio.current_time() + 0.05
        mock_clock.jump(0.3)
        return []

    node = ScriptedNode(datagram=work)
    async with driven(node) as (driver, _, _):
        driver.handle_datagram(PEER, b"hard work")
        await trio.testing.wait_all_tasks_blocked()
        assert driver.lateness.to_json()["worst_ms"] == 250.0


async def test_a_node_that_has_something_to_do_from_the_first_on_is_not_late_for_ever(
    autojump_clock: trio.testing.MockClock,
) -> None:
    node = ScriptedNode()
    node.deadline = -math.inf
    async with driven(node) as (driver, hand, _):
        await trio.sleep(3)
        driver.handle_datagram(PEER, b"and the load with it")
        assert [given[0] for given in node.inputs] == ["start", "timeout", "datagram"]
        assert driver.lateness.to_json()["worst_ms"] == 0.0
        assert driver.counters["dropped_bug"] == 0
        assert hand.did == []


async def test_an_earlier_deadline_replaces_a_later_one(
    autojump_clock: trio.testing.MockClock,
) -> None:
    node = ScriptedNode()
    async with driven(node) as (driver, _, _):
        began = trio.current_time()
        for wait in (50, 3):
            node.deadline = began + wait
            driver.handle_datagram(PEER, b"")
        await trio.sleep(10)
        assert [given[0] for given in node.inputs].count("timeout") == 1


async def test_nothing_is_done_after_stop() -> None:
    node = ScriptedNode(datagram=lambda _: [fx.Stop(4, "enough"), send(b"never")])
    async with driven(node) as (driver, hand, stops):
        driver.handle_datagram(PEER, b"x")
        await trio.testing.wait_all_tasks_blocked()
        seen = len(node.inputs)
        driver.handle_datagram(PEER, b"y")
        driver.handle_exchange(1, b"")
        driver.handle_resolved("s", ())
        driver.handle_process(ProcessExit(1, 0))
        driver.tell(Leave("late"))
        assert driver.handle_request(PEER, b"z") == b""
        with pytest.raises(CommandRefused, match="stopping"):
            await driver.ask(lambda number: GetTask(number, "t"))
        assert (hand.did, len(node.inputs), stops) == ([], seen, [fx.Stop(4, "enough")])


async def test_a_node_that_stops_at_its_start_is_noticed() -> None:
    async with driven(ScriptedNode(start=lambda: [fx.Stop(1, "no")])) as (_, _, stops):
        assert stops == [fx.Stop(1, "no")]


async def test_halt_stops_without_asking_the_node() -> None:
    async with driven(ScriptedNode()) as (driver, _, stops):
        driver.halt(fx.Stop(1, "now"))
        driver.halt(fx.Stop(2, "too late"))
        await trio.testing.wait_all_tasks_blocked()
        assert stops == [fx.Stop(1, "now")]


async def test_a_command_waits_for_its_own_answer() -> None:
    late: list[int] = []

    def command(given: Command) -> list[fx.Effect]:
        assert isinstance(given, GetTask)
        if given.task_id == "late":
            late.append(given.command_id)
            return []
        return [fx.Answer(given.command_id, {"id": given.task_id})]

    node = ScriptedNode(command=command, datagram=lambda _: [fx.Answer(late[0], None, "no such")])
    async with driven(node) as (driver, _, _):
        assert await driver.ask(lambda number: GetTask(number, "t")) == {"id": "t"}
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_expect_refusal, driver)
            await trio.testing.wait_all_tasks_blocked()
            driver.handle_datagram(PEER, b"")
        driver.handle_datagram(PEER, b"an answer that nobody waits for any more")


async def _expect_refusal(driver: Driver) -> None:
    with pytest.raises(CommandRefused, match="no such"):
        await driver.ask(lambda number: GetTask(number, "late"))


def oops(*_: object) -> list[fx.Effect]:
    raise KeyError("oops")


async def test_a_bug_that_any_input_meets_is_counted_and_survived() -> None:
    names = ("datagram", "request", "exchange", "resolved", "process", "command")
    async with driven(ScriptedNode(**dict.fromkeys(names, oops))) as (driver, _, stops):
        driver.handle_datagram(PEER, b"x")
        assert driver.handle_request(PEER, b"x") == b""
        driver.handle_exchange(1, b"x")
        driver.handle_resolved("seed", ())
        driver.handle_process(ProcessExit(1, 0))
        driver.tell(Leave("now"))
        assert driver.counters["dropped_bug"] >= 6
        assert not stops
        with pytest.raises(LocalProtocolError, match="oops"):
            await driver.ask(lambda number: GetTask(number, "t"))


async def test_each_bug_is_said_once() -> None:
    texts = iter(["one", "one", "two", "one"])

    def fail(*_: object) -> list[fx.Effect]:
        raise KeyError(next(texts))

    async with driven(ScriptedNode(datagram=fail)) as (driver, hand, _):
        for _ in range(4):
            driver.handle_datagram(PEER, b"x")
        assert ["one" in said for said in hand.did] == [True, False]


async def test_a_bug_that_leaves_the_node_at_odds_with_itself_stops_it() -> None:
    class Torn(ScriptedNode):
        def check_invariants(self) -> None:
            raise AssertionError("two slots, three runs")

    async with driven(Torn(datagram=oops)) as (driver, _, stops):
        driver.handle_datagram(PEER, b"x")
        await trio.testing.wait_all_tasks_blocked()
        assert [stop.exit_code for stop in stops] == [1]
        assert "oops" in stops[0].reason
        assert "two slots, three runs" in stops[0].reason


async def test_an_effect_that_fails_does_not_hold_back_those_after_it() -> None:
    node = ScriptedNode(datagram=lambda _: [fx.Resolve("bad"), send(b"after")])
    async with driven(node) as (driver, hand, stops):
        hand.failing = "bad"
        driver.handle_datagram(PEER, b"")
        assert hand.did[-1] == b"after"
        assert driver.counters["dropped_bug"] == 1
        assert not stops


async def test_deadlines_that_meet_bugs_are_tried_again_and_stop_the_node_in_the_end(
    autojump_clock: trio.testing.MockClock,
) -> None:
    class Stubborn(ScriptedNode):
        def handle_timeout(self, now: float) -> list[fx.Effect]:
            return self._play("timeout", now)  # and what is due stays due

    node = Stubborn(timeout=oops)
    async with driven(node) as (driver, _, stops):
        began = node.deadline = trio.current_time()
        driver.handle_datagram(PEER, b"arms it")
        await trio.sleep(5.5)
        tries = [given for given in node.inputs if given[0] == "timeout"]
        assert 5 <= len(tries) <= 7  # once a second, not in a circle
        assert not stops
        await trio.sleep(30)
        assert [stop.exit_code for stop in stops] == [1]
        assert trio.current_time() - began < 60


async def test_the_load_is_told_once_a_second_at_most(
    autojump_clock: trio.testing.MockClock,
) -> None:
    loads: list[int] = []

    class Listening(ScriptedNode):
        def handle_command(self, now: float, command: Command) -> list[fx.Effect]:
            assert isinstance(command, SetLoad)
            loads.append(command.load_average_pct)
            return []

    async with driven(Listening()) as (driver, _, _):
        for _ in range(30):
            driver.handle_datagram(PEER, b"")
            await trio.sleep(0.1)
        assert 3 <= len(loads) <= 4
        assert 0 <= load_average_pct() <= 255
