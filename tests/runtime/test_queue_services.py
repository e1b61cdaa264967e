"""What clients ask about queues: in which words the node hears it, and what comes back over the socket."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from mesh.client import Client
from mesh.core import effects as fx
from mesh.errors import CommandRefused, ConfigError
from mesh.node.commands import Command
from mesh.queues.commands import ListQueues, SetQueue, ShowQueue
from mesh.queues.settings import Strategy
from tests.runtime.scripted_tasks import ScriptedNode, ok, refusal, serving

SHOWN = {"queue": "thumbs", "strategy": "pull", "set_at": 5.0, "set_by": "anna"}


async def call(data_dir: Path, name: str, **given: Any) -> Any:  # noqa: ANN401 - JSON comes back
    with Client(data_dir) as client, trio.fail_after(10):
        return await trio.to_thread.run_sync(
            partial(client.call, name, **given), abandon_on_cancel=True
        )


def answers(command: Command) -> list[fx.Effect]:
    if isinstance(command, SetQueue):
        return ok(command, SHOWN | {"outcome": "set"})
    if isinstance(command, ShowQueue) and command.queue == "thumbs":
        return ok(command, SHOWN)
    if isinstance(command, ListQueues):
        return ok(command, {"queues": [SHOWN]})
    return refusal(command, "no majority answered")


async def test_a_queue_is_set_and_shown(tmp_path: Path) -> None:
    node = ScriptedNode(answers)
    async with serving(node, tmp_path):
        said = await call(tmp_path, "queue_set", queue="thumbs", strategy="pull")
        assert said == SHOWN | {"outcome": "set"}
        assert await call(tmp_path, "queue_show", queue="thumbs") == SHOWN
        assert await call(tmp_path, "queue_list") == {"queues": [SHOWN]}
        with pytest.raises(CommandRefused, match="no majority answered"):
            await call(tmp_path, "queue_show", queue="other")
    setting, *_ = node.commands
    assert isinstance(setting, SetQueue)
    assert (setting.queue, setting.strategy) == ("thumbs", Strategy.PULL)


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("queue_set", {"queue": "q"}, "'strategy' is a text"),
        ("queue_set", {"queue": "q", "strategy": 5}, "'strategy' is a text"),
        (
            "queue_set",
            {"queue": "q", "strategy": "best"},
            "one of rendezvous, contest, round_robin, pull; found 'best'",
        ),
        ("queue_set", {"strategy": "pull"}, "'queue' is a text"),
        ("queue_show", {}, "'queue' is a text"),
        ("queue_show", {"queue": ["q"]}, "'queue' is a text"),
        ("queue_show", {"queue": "q" * 129}, "1 to 128 characters"),
    ],
)
async def test_what_is_asked_wrongly_is_wrong_usage_and_reaches_no_node(
    tmp_path: Path, name: str, given: dict[str, Any], expected: str
) -> None:
    node = ScriptedNode(answers)
    async with serving(node, tmp_path):
        with pytest.raises(ConfigError, match=expected):
            await call(tmp_path, name, **given)
    assert node.commands == []
