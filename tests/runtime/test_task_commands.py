"""`mesh retry`, `cancel`, `tasks`, `why` and `drain` at a scripted node: what they ask, say, and exit with."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trio

from mesh.core import effects as fx
from mesh.node.commands import Command, Leave, Look, Why
from mesh.node.view import View
from mesh.tasks.commands import CancelTask, GetTask, ListTasks, RetryTask, Submit
from tests.runtime.scripted_tasks import ScriptedNode, ok, refusal, serving


def task(task_id: str, state: str) -> dict[str, Any]:
    return {
        "id": task_id, "state": state, "argv": ["x"], "queue": "default", "keeper": "n1", "home": None,
        "owner": "n2", "attempt": 0, "created": 1.8e9, "not_before": None, "started": None, "ended": 1.8e9,
        "cause": "first", "cancel_requested": True, "retries_left": 0, "retry_of": None, "waits_for": "its turn",
        "attempts": [], "result": None,
    }  # fmt: skip


class Node(ScriptedNode):
    """Holds a failed task `bad` and ready ones; of any other it knows nothing."""

    def __init__(self) -> None:
        super().__init__(self._answer)
        self.running: list[dict[str, Any]] = []

    def _answer(self, command: Command) -> list[fx.Effect]:
        match command:
            case Submit(_, new):
                return ok(command, {"id": new.spec.task_id, "known": True, "same": False})
            case Why():
                return refusal(command, "no member is called so")
            case ListTasks():
                local = "the tasks that n1 votes on"
                return ok(
                    command, {"tasks": [task("ready-1", "ready")], "counts": {}, "local": local}
                )
            case RetryTask(_, "bad"):
                return ok(command, {"id": "bad~1", "retry_of": "bad"})
            case RetryTask(_, task_id):
                return refusal(command, f"task {task_id} is ready")
            case GetTask(_, "ready-1"):
                return ok(command, task("ready-1", "ready"))
            case CancelTask(_, "ready-1"):
                return ok(command, task("ready-1", "cancelled"))
            case CancelTask(_, task_id) | GetTask(_, task_id):
                return refusal(command, f"no task {task_id} is known")
            case _:
                return []

    def view(self, now: float) -> View:
        return View(
            {"name": "n1", "counters": {}, "registers": {"votes": True, "voters": ["n1"]}},
            [{"name": "n1", "node_id": "a" * 16, "state": "alive", "self": True}],
            list,
            {"scheduled": 1, "ready": 1, "leased": 0},
            self.running,
        )


@dataclass
class Done:
    code: int
    out: str
    err: str


async def mesh(data: Path, *arguments: str) -> Done:
    with trio.fail_after(20):
        done = await trio.run_process(
            [sys.executable, "-m", "mesh", arguments[0], "--data", str(data), *arguments[1:]],
            stdin=b"",
            capture_stdout=True,
            capture_stderr=True,
            check=False,
        )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


@asynccontextmanager
async def one_node(data: Path) -> AsyncIterator[Node]:
    node = Node()
    async with serving(node, data):
        yield node


async def test_each_task_is_retried_and_one_that_cannot_be_fails_the_command(
    tmp_path: Path,
) -> None:
    async with one_node(tmp_path):
        found = await mesh(tmp_path, "retry", "ready-1", "bad")
        assert (found.code, found.out) == (1, "bad~1\n")
        assert found.err == "mesh: task ready-1 is ready\n"
        found = await mesh(tmp_path, "retry", "bad", "--json")
        assert (found.code, json.loads(found.out)) == (0, {"id": "bad~1", "retry_of": "bad"})


async def test_tasks_are_cancelled_by_how_they_begin_too(tmp_path: Path) -> None:
    async with one_node(tmp_path):
        found = await mesh(tmp_path, "cancel", "ready-1", "rea", "none")
    assert (found.code, found.out) == (1, "ready-1 cancelled\nready-1 cancelled\n")
    assert found.err == "mesh: no task none is known\n"


async def test_list_says_whose_tasks_it_shows(tmp_path: Path) -> None:
    async with one_node(tmp_path):
        found = await mesh(tmp_path, "tasks")
        assert found.out.splitlines()[-2:] == ["", "the tasks that n1 votes on"]
        found = await mesh(tmp_path, "tasks", "--json")
        assert [one["id"] for one in json.loads(found.out)] == ["ready-1"]


async def test_why_tells_a_tasks_story_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    async with one_node(tmp_path):
        for given in ("ready-1", "rea"):
            found = await mesh(tmp_path, "why", given)
            assert (found.code, found.err) == (0, "")
            assert found.out.startswith("task ready-1 is ready on n2")
            assert found.out.endswith("what it waits for\n  Its turn.\n")
        told = json.loads((await mesh(tmp_path, "why", "ready-1", "--json")).out)
        assert told.keys() == {"task", "observer", "story", "next"}
        assert told["next"] == ["Its turn."]
        found = await mesh(tmp_path, "why", "nobody")
        assert (found.code, found.out) == (1, "")
        assert "no member is called so; no task nobody is known: see `mesh members`" in found.err


async def test_id_that_is_known_in_other_words_is_said(tmp_path: Path) -> None:
    async with one_node(tmp_path) as node:
        found = await mesh(
            tmp_path, "submit", "--id", "t", "--retries", "2", "--in", "1h", "--", "x"
        )
        assert (found.code, found.out) == (0, "t\n")
        assert "t is already known, as another command or with other options" in found.err
        (command,) = node.commands
        assert isinstance(command, Submit)
        assert command.new.terms.retries == 2
        assert command.new.not_before > 1e9
        wrong = await mesh(tmp_path, "submit", "--in", "1h", "--at", "03:00", "--", "x")
        assert wrong.code == 2


async def test_drain_tells_the_node_for_how_long_and_waits_until_it_is_gone(tmp_path: Path) -> None:
    node = Node()
    node.running = [{"id": "long", "attempt": 1}]
    left = trio.Event()

    def leave(command: Command) -> list[fx.Effect]:
        if isinstance(command, Leave):
            left.set()
        return []

    node._answers = leave
    found: list[Done] = []

    async def drain() -> None:
        found.append(await mesh(tmp_path, "drain", "--within", "90s"))

    async with trio.open_nursery() as nursery, serving(node, tmp_path):
        nursery.start_soon(drain)
        with trio.fail_after(10):
            await left.wait()
    assert node.commands == [Look(), Leave("asked by mesh drain", 90.0)]
    (done,) = found
    assert (done.code, done.out) == (0, "")
    assert (
        "waiting up to 1m30s for 1 task that runs here: long; after that it is stopped" in done.err
    )
    assert "no other member is left to run 2 unfinished tasks: kept in " in done.err
