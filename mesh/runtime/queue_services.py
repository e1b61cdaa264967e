"""What a client can ask about queues: set a strategy and weights, show them."""

from __future__ import annotations

from typing import Final

from mesh.contest.weighing import Given, merged
from mesh.errors import ConfigError
from mesh.queues.commands import ListQueues, SetQueue, ShowQueue
from mesh.queues.settings import check_name, read_strategy
from mesh.runtime.control import ControlClient, Request, Service
from mesh.runtime.driver import Driver
from mesh.runtime.requests import text

NUMBER_MAX: Final = 10**15
"""Integers beyond this are no weights, whatever bounds those have."""


class QueueServices:
    """The requests about queues, for one node."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def table(self) -> dict[str, Service]:
        """Return every request by name."""
        return {
            "queue_set": self._on_set,
            "queue_show": self._on_show,
            "queue_list": self._on_list,
        }

    async def _on_set(self, request: Request, client: ControlClient) -> None:
        queue = _queue(request)
        strategy = read_strategy(text(request, "strategy")) if "strategy" in request else None
        weights = _weights(request)
        if strategy is None and weights is None:
            raise ConfigError(
                "queue_set: 'strategy', 'weights' or both are expected, found neither"
            )
        found = await self._driver.ask(lambda number: SetQueue(number, queue, strategy, weights))
        await client.ok(found)

    async def _on_show(self, request: Request, client: ControlClient) -> None:
        queue = _queue(request)
        await client.ok(await self._driver.ask(lambda number: ShowQueue(number, queue)))

    async def _on_list(self, _request: Request, client: ControlClient) -> None:
        await client.ok(await self._driver.ask(ListQueues))


def _queue(request: Request) -> str:
    queue = text(request, "queue")
    check_name(queue)
    return queue


def _weights(request: Request) -> Given | None:
    """Return what the parts named are to weigh; none at all: all go back to the default; None: nothing is said of them."""
    given = request.get("weights")
    if given is None:
        return None
    if not isinstance(given, dict) or not all(map(_is_number, given.values())):
        raise ConfigError(
            "queue_set: 'weights' is an object of parts and numbers, null for the default, such as {\"cpu\": 0.5}"
        )
    merged((), given)  # what is none of a part is said at once
    return given


def _is_number(found: object) -> bool:
    return (
        found is None or type(found) is float or (type(found) is int and abs(found) <= NUMBER_MAX)
    )
