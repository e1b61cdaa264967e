"""`submit --wait` at scripted nodes: one is lost in the middle, and the next one of this host is asked to go on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trio

from mesh.core import effects as fx
from mesh.node.commands import Command
from mesh.tasks.commands import CancelTask, Follow, GetTask, Submit
from tests.runtime.conftest import Until
from tests.runtime.scripted_tasks import Output, ScriptedNode, ok, refusal, serving

DONE: dict[str, Any] = {
    "id": "t",
    "state": "done",
    "owner": "far",
    "attempts": [],
    "result": {"exit_code": 7, "error": "", "output_bytes": 0},
}


def answers(command: Command) -> list[fx.Effect]:
    match command:
        case Submit(_, new):
            return ok(command, {"id": new.spec.task_id})
        case Follow(_, _, task_id):
            return ok(command, {"id": task_id})
        case GetTask(_, task_id) | CancelTask(_, task_id):
            return ok(command, DONE | {"id": task_id, "state": "leased"})
        case _:
            return []


@dataclass
class Host:
    """Two nodes of one host, `a` and `b`; `lose` lets `a` go away."""

    home: Path
    a: ScriptedNode
    b: ScriptedNode
    lose: Callable[[], None]

    async def submit(self, *options: str) -> trio.Process:
        data = os.pathsep.join(str(self.home / name) for name in "ab")
        return await trio.lowlevel.open_process(
            [sys.executable, "-m", "mesh", "submit", "--wait", *options, "--", "work"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "MESH_DATA": data},
        )


@asynccontextmanager
async def two_nodes(
    home: Path, a: ScriptedNode | None = None, b: ScriptedNode | None = None
) -> AsyncIterator[Host]:
    host = Host(home, a or ScriptedNode(answers), b or ScriptedNode(answers), lambda: None)
    lost = trio.Event()
    host.lose = lost.set

    async def serve_a(task_status: trio.TaskStatus[None]) -> None:
        async with serving(host.a, home / "a"):
            task_status.started()
            await lost.wait()

    for name in "ab":
        (home / name).mkdir()
    with trio.fail_after(30):
        async with AsyncExitStack() as stack:
            nursery = await stack.enter_async_context(trio.open_nursery())
            await nursery.start(serve_a)
            await stack.enter_async_context(serving(host.b, home / "b"))
            yield host
            nursery.cancel_scope.cancel()


async def read_until(stream: trio.abc.ReceiveStream | None, wanted: bytes) -> bytes:
    assert stream is not None
    found = b""
    while wanted not in found:
        piece = await stream.receive_some()
        assert piece, found
        found += bytes(piece)
    return found


async def rest(stream: trio.abc.ReceiveStream | None) -> bytes:
    assert stream is not None
    return b"".join([bytes(piece) async for piece in stream])


async def test_output_goes_on_where_it_broke_off_when_the_node_is_lost(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as host:
        host.a.output.pieces = [(1, b"one\ntw"), (2, b"oh\n")]
        process = await host.submit("--id", "t")
        begun = await read_until(process.stdout, b"tw")
        host.b.output = Output([(1, b"one\n"), (2, b"oh\n"), (1, b"two\nthree\n")], DONE)
        host.lose()
        assert begun + await rest(process.stdout) == b"one\ntwo\nthree\n"
        said = (await rest(process.stderr)).decode()
        assert await process.wait() == 7
    assert said.startswith("oh\nmesh: the node in ")
    assert "was lost while task t was not finished: going on with the one in " in said
    assert said.count("\n") == 2
    assert "repeated" not in said
    assert host.b.kinds() == ["Follow", "Unfollow"]


async def test_output_of_another_run_is_written_from_the_line_that_differs(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as host:
        host.a.output.pieces = [(1, b"begin\nat 12:00\n")]
        process = await host.submit("--id", "t")
        begun = await read_until(process.stdout, b"12:00\n")
        host.b.output = Output([(1, b"begin\nat 13:00\nend\n")], DONE)
        host.lose()
        assert begun + await rest(process.stdout) == b"begin\nat 12:00\nat 13:00\nend\n"
        said = (await rest(process.stderr)).decode()
        assert await process.wait() == 7
    assert "task t is told otherwise than before: output from here on may be repeated" in said


async def test_node_that_is_lost_before_it_answered_is_asked_again_at_the_next_under_one_id(
    tmp_path: Path, until: Until
) -> None:
    silent = ScriptedNode(lambda command: [] if isinstance(command, Submit) else answers(command))

    def known(command: Command) -> list[fx.Effect]:
        if isinstance(command, Submit):
            return ok(command, {"id": command.new.spec.task_id, "known": True, "same": True})
        return answers(command)

    async with two_nodes(tmp_path, silent, ScriptedNode(known)) as host:
        host.b.output.task = DONE
        process = await host.submit()
        await until(lambda: "Submit" in host.a.kinds())
        host.lose()
        said = (await rest(process.stderr)).decode()
        assert await process.wait() == 7
    first, second = host.a.commands[0], host.b.commands[0]
    assert isinstance(first, Submit)
    assert isinstance(second, Submit)
    assert first.new.spec.task_id == second.new.spec.task_id != ""
    assert "already known" not in said


async def test_node_that_refuses_to_go_on_for_a_moment_is_asked_again(
    tmp_path: Path, until: Until
) -> None:
    refused: list[Command] = []

    def slow(command: Command) -> list[fx.Effect]:
        if isinstance(command, Follow) and not refused:
            refused.append(command)
            return refusal(command, "no majority answered")
        return answers(command)

    async with two_nodes(tmp_path, b=ScriptedNode(slow)) as host:
        process = await host.submit("--id", "t")
        await until(lambda: bool(host.a.watchers))
        host.b.output.task = DONE
        host.lose()
        assert await process.wait() == 7
    assert refused


async def test_last_node_that_is_lost_is_125_and_the_task_goes_on(
    tmp_path: Path, until: Until
) -> None:
    async with two_nodes(tmp_path) as host:
        process = await host.submit("--id", "t", "--data", str(tmp_path / "a"))
        await until(lambda: bool(host.a.watchers))
        host.lose()
        said = (await rest(process.stderr)).decode()
        assert await process.wait() == 125
    assert said.endswith("was lost: task t goes on without this command; see mesh task t\n")


async def test_submission_that_the_mesh_refuses_is_125_under_wait(tmp_path: Path) -> None:
    refusing = ScriptedNode(lambda command: refusal(command, "no majority answered"))
    async with two_nodes(tmp_path, refusing) as host:
        process = await host.submit("--data", str(tmp_path / "a"))
        assert await rest(process.stderr) == b"mesh: no majority answered\n"
        assert await process.wait() == 125


@pytest.mark.parametrize("is_wrong", [True, False])
async def test_wrong_usage_and_no_node_keep_their_codes_under_wait(
    tmp_path: Path, *, is_wrong: bool
) -> None:
    async with two_nodes(tmp_path) as host:
        options = ("--env", "A=\udcff") if is_wrong else ("--data", str(tmp_path / "nowhere"))
        process = await host.submit(*options)
        await rest(process.stderr)
        assert await process.wait() == (2 if is_wrong else 3)
