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
        weights = {"cpu": 2, "lag": 0.0, "match": None}
        await call(tmp_path, "queue_set", queue="thumbs", weights=weights)
        await call(tmp_path, "queue_set", queue="thumbs", weights={})
    setting, _, _, _, weighing, resetting = node.commands
    assert isinstance(weighing, SetQueue)
    assert weighing.strategy is None
    assert weighing.weights == weights
    assert isinstance(resetting, SetQueue)
    assert resetting.weights == {}
    assert isinstance(setting, SetQueue)
    assert (setting.queue, setting.strategy) == ("thumbs", Strategy.PULL)


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("queue_set", {"queue": "q"}, "'strategy', 'weights' or both are expected, found neither"),
        ("queue_set", {"queue": "q", "weights": 5}, "'weights' is an object of parts and numbers"),
        ("queue_set", {"queue": "q", "weights": {"cpu": "much"}}, "'weights' is an object"),
        ("queue_set", {"queue": "q", "weights": {"cpu": True}}, "'weights' is an object"),
        ("queue_set", {"queue": "q", "weights": {"cpu": 10**6 + 1}}, "from 0 to 1,000,000"),
        ("queue_set", {"queue": "q", "weights": {"warm": 1}}, "members load no apps ahead yet"),
        ("queue_set", {"queue": "q", "weights": {"speed": 1}}, "one of cpu, distance, free_slots"),
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
