"""What a client can ask about queues: set a strategy, show it."""

from __future__ import annotations

from mesh.queues.commands import ListQueues, SetQueue, ShowQueue
from mesh.queues.settings import check_name, read_strategy
from mesh.runtime.control import ControlClient, Request, Service
from mesh.runtime.driver import Driver
from mesh.runtime.requests import text


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
        queue, strategy = _queue(request), read_strategy(text(request, "strategy"))
        await client.ok(await self._driver.ask(lambda number: SetQueue(number, queue, strategy)))

    async def _on_show(self, request: Request, client: ControlClient) -> None:
        queue = _queue(request)
        await client.ok(await self._driver.ask(lambda number: ShowQueue(number, queue)))

    async def _on_list(self, _request: Request, client: ControlClient) -> None:
        await client.ok(await self._driver.ask(ListQueues))


def _queue(request: Request) -> str:
    queue = text(request, "queue")
    check_name(queue)
    return queue
