"""What clients ask about tasks: in which words the node hears it, and what comes back over the socket."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import pytest
import trio

from mesh.client import Client
from mesh.core import effects as fx
from mesh.errors import CommandRefused, ConfigError
from mesh.node.commands import Command, Leave, Why
from mesh.runtime import task_services
from mesh.tasks.asking import LIST_MAX
from mesh.tasks.body import Terms
from mesh.tasks.commands import (
    LISTED,
    Abandon,
    CancelTask,
    Follow,
    GetTask,
    ListTasks,
    RetryTask,
    Submit,
    SubmitMany,
    Unfollow,
)
from tests.runtime.conftest import Until
from tests.runtime.scripted_tasks import Output, ScriptedNode, ok, refusal, serving, tell

P = ParamSpec("P")
R = TypeVar("R")

TASK = {"id": "t", "state": "done"}


async def do(call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    with trio.fail_after(10):
        return await trio.to_thread.run_sync(partial(call, *args, **kwargs), abandon_on_cancel=True)


def answers(command: Command) -> list[fx.Effect]:
    """Answer as a node does for which all goes well."""
    match command:
        case Submit(_, new):
            return ok(command, {"id": new.spec.task_id or "drawn"})
        case SubmitMany(_, news):
            return ok(command, {"tasks": [{"id": new.spec.task_id} for new in news]})
        case Follow(_, _, task_id):
            return ok(command, {"id": task_id})
        case GetTask(_, task_id) | CancelTask(_, task_id):
            return ok(command, {"id": task_id, "state": "cancelled"})
        case RetryTask(_, task_id):
            return ok(command, {"id": f"{task_id}~1", "retry_of": task_id})
        case ListTasks():
            return ok(command, {"tasks": [], "counts": {}, "local": "as this node knows them"})
        case Why(_, whom):
            return refusal(command, f"no member is known here by the name or id {whom!r}")
        case _:
            return []


async def test_terms_of_a_task_reach_the_node(tmp_path: Path) -> None:
    node = ScriptedNode(answers)
    async with serving(node, tmp_path):
        with Client(tmp_path) as client:
            answer = await do(
                client.call,
                "submit",
                argv=["make", "all"],
                id="t",
                queue="q",
                key="k",
                retries=3,
                retry_delay_s=5,
                retain_s=60.0,
                not_before=2e9,
            )
    assert answer == {"id": "t"}
    (command,) = node.commands
    assert isinstance(command, Submit)
    spec, new = command.new.spec, command.new
    assert (spec.task_id, spec.argv, spec.queue, spec.key) == ("t", ("make", "all"), "q", "k")
    assert new.terms == Terms(retries=3, retry_delay_s=5.0, retain_s=60.0)
    assert new.not_before == 2e9


@pytest.mark.parametrize(
    "wrong",
    [
        {"retries": 1.5},
        {"retries": True},
        {"retry_delay_s": "soon"},
        {"not_before": -1},
        {"not_before": float("nan")},
        {"argv": []},
    ],
)
async def test_task_that_is_described_wrongly_is_wrong_usage(
    tmp_path: Path, wrong: dict[str, Any]
) -> None:
    node = ScriptedNode(answers)
    async with serving(node, tmp_path):
        with Client(tmp_path) as client, pytest.raises(ConfigError):
            await do(client.call, "submit", **({"argv": ["x"]} | wrong))
    assert node.commands == []


async def test_many_are_submitted_in_batches_and_answered_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_services, "BATCH", 3)
    node = ScriptedNode(answers)
    tasks: list[dict[str, Any]] = [{"id": f"t{n}", "argv": ["x"]} for n in range(8)]
    tasks[4] = {"id": "odd", "argv": "x"}
    async with serving(node, tmp_path):
        with Client(tmp_path) as client:
            found = (await do(client.call, "submit_many", tasks=tasks))["tasks"]
            wrongs: list[object] = [[], {}, [5], [{"argv": ["x"]}] * 1_001]
            for wrong in wrongs:
                with pytest.raises(ConfigError):
                    await do(client.call, "submit_many", tasks=wrong)
    assert [one["id"] for one in found] == [task["id"] for task in tasks]
    assert [one["id"] for one in found if "error" in one] == ["odd"]
    assert "'argv', a list" in found[4]["error"]
    sizes = [len(command.news) for command in node.commands if isinstance(command, SubmitMany)]
    assert sizes == [3, 2, 2]


async def test_batch_that_is_refused_does_not_hide_what_became_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_services, "BATCH", 1)

    def second_is_refused(command: Command) -> list[fx.Effect]:
        is_first = len(node.commands) == 1
        return answers(command) if is_first else refusal(command, "this node is stopping")

    node = ScriptedNode(second_is_refused)
    tasks = [{"id": "a", "argv": ["x"]}, {"id": "b", "argv": ["x"]}]
    async with serving(node, tmp_path):
        with Client(tmp_path) as client:
            found = (await do(client.call, "submit_many", tasks=tasks))["tasks"]
    assert found == [{"id": "a"}, {"id": "b", "error": "this node is stopping"}]


async def test_submitted_task_is_followed_once_it_is_taken_and_ends_with_its_json(
    tmp_path: Path, until: Until
) -> None:
    node = ScriptedNode(answers)
    node.output.pieces = [(1, b"first")]
    async with serving(node, tmp_path) as driver:
        with Client(tmp_path) as client:
            stream = await do(client.stream, "submit", argv=["x"], id="t", wait=True)
            assert await do(next, stream) == {"id": "t"}
            assert await do(next, stream) == {"stream": 1, "data": b"first"}
            assert node.kinds() == ["Submit", "Follow"]
            node.output = Output([(2, b"last")], TASK)
            tell(driver, "t")
            assert await do(list, stream) == [{"stream": 2, "data": b"last"}]
            assert stream.result == TASK
        await until(lambda: not node.watchers)
    assert node.kinds() == ["Submit", "Follow", "Unfollow"]


async def test_task_that_is_not_taken_is_followed_by_nobody(tmp_path: Path) -> None:
    node = ScriptedNode(lambda c: refusal(c, "no majority") if isinstance(c, Submit) else [])
    async with serving(node, tmp_path):
        with Client(tmp_path) as client:
            stream = await do(client.stream, "submit", argv=["x"], wait=True)
            with pytest.raises(CommandRefused, match="no majority"):
                await do(list, stream)
    assert "Follow" not in node.kinds()


async def test_wait_follows_a_task_that_is_there_and_says_why_it_does_so_no_more(
    tmp_path: Path,
) -> None:
    node = ScriptedNode(answers)
    node.output = Output([(1, b"out")], {"watch_error": "nothing was taken for a minute"})
    async with serving(node, tmp_path):
        with Client(tmp_path) as client:
            stream = await do(client.stream, "wait", id="t")
            assert await do(next, stream) == {"stream": 1, "data": b"out"}
            with pytest.raises(CommandRefused, match="nothing was taken"):
                await do(next, stream)
    assert node.kinds() == ["Follow", "Unfollow"]


async def test_client_that_hangs_up_while_it_follows_is_followed_for_no_more(
    tmp_path: Path, until: Until
) -> None:
    node = ScriptedNode(answers)
    async with serving(node, tmp_path):
        client = Client(tmp_path)
        await do(client.stream, "wait", id="t")
        await until(lambda: bool(node.watchers))
        client.close()
        await until(lambda: not node.watchers)
    assert node.kinds() == ["Follow", "Unfollow"]


async def test_client_that_hangs_up_before_the_answer_abandons_its_command(
    tmp_path: Path, until: Until
) -> None:
    node = ScriptedNode(lambda _: [])
    async with serving(node, tmp_path):
        client = Client(tmp_path)
        await do(client.stream, "submit", argv=["x"], wait=True)
        await until(lambda: "Submit" in node.kinds())
        client.close()
        await until(lambda: "Unfollow" in node.kinds())
    submit, abandon, unfollow = node.commands
    assert isinstance(submit, Submit)
    assert abandon == Abandon(submit.command_id)
    assert isinstance(unfollow, Unfollow)


async def test_tasks_are_listed_read_cancelled_and_retried(tmp_path: Path) -> None:
    node = ScriptedNode(answers)
    async with serving(node, tmp_path):
        with Client(tmp_path) as client:
            assert (await do(client.call, "tasks"))["local"] == "as this node knows them"
            assert (await do(client.call, "task", id="t"))["id"] == "t"
            assert (await do(client.call, "cancel", id="t"))["state"] == "cancelled"
            assert await do(client.call, "retry", id="t") == {"id": "t~1", "retry_of": "t"}
    assert node.kinds() == ["ListTasks", "GetTask", "CancelTask", "RetryTask"]


async def test_no_more_tasks_are_listed_than_are_asked_for(tmp_path: Path) -> None:
    node = ScriptedNode(answers)
    async with serving(node, tmp_path):
        with Client(tmp_path) as client:
            given: dict[str, Any]
            for given in ({}, {"limit": 0}, {"limit": LIST_MAX}):
                await do(client.call, "tasks", **given)
            for given in ({"limit": LIST_MAX + 1}, {"limit": -1}, {"limit": "all"}):
                with pytest.raises(ConfigError, match="limit"):
                    await do(client.call, "tasks", **given)
    assert [command.count_max for command in node.commands if isinstance(command, ListTasks)] == [
        LISTED,
        0,
        LIST_MAX,
    ]


async def test_why_of_no_member_is_why_of_a_task(tmp_path: Path) -> None:
    node = ScriptedNode(answers)
    async with serving(node, tmp_path):
        with Client(tmp_path) as client:
            told = await do(client.call, "why", whom="t")
            assert told == {"task": {"id": "t", "state": "cancelled"}, "observer": "scripted"}
            with pytest.raises(CommandRefused, match="no member is known here"):
                await do(client.call, "why", whom="scripted")
    assert node.kinds() == ["Why", "WhyTask", "Why"]


@pytest.mark.parametrize(
    ("whom", "is_task"), [("a1", True), ("scripted", False), ("a" * 16, False)]
)
async def test_why_of_a_tasks_whole_id_is_no_beginning_of_a_members(
    tmp_path: Path, whom: str, is_task: bool
) -> None:
    def knows(command: Command) -> list[fx.Effect]:
        if isinstance(command, Why):
            return [fx.Answer(command.command_id, {"name": "scripted", "node_id": "a" * 16})]
        assert isinstance(command, GetTask)
        if command.task_id == "a1":
            return [fx.Answer(command.command_id, {"id": "a1"})]
        return refusal(command, "no such task is known")

    async with serving(ScriptedNode(knows), tmp_path):
        with Client(tmp_path) as client:
            told = await do(client.call, "why", whom=whom)
            assert ("task" in told) == is_task
            beginning = await do(client.call, "why", whom="aaa")
            assert beginning["name"] == "scripted"


async def test_why_of_nobody_says_that_no_task_is_called_so_either(tmp_path: Path) -> None:
    def nothing(command: Command) -> list[fx.Effect]:
        is_task = isinstance(command, GetTask)
        return refusal(command, "no task x is known" if is_task else "no member is known")

    async with serving(ScriptedNode(nothing), tmp_path):
        with Client(tmp_path) as client, pytest.raises(CommandRefused) as found:
            await do(client.call, "why", whom="x")
    assert str(found.value) == "no member is known; no task x is known"


async def test_leave_tells_for_how_long_what_runs_may_go_on(tmp_path: Path) -> None:
    node = ScriptedNode(answers)
    async with serving(node, tmp_path):
        with Client(tmp_path) as client:
            await do(client.call, "leave", reason="asked", within_s=30)
            with pytest.raises(ConfigError):
                await do(client.call, "leave", within_s=-1)
            await do(client.call, "leave")
    assert node.commands == [Leave("asked", 30.0), Leave("asked to leave", 0.0)]
