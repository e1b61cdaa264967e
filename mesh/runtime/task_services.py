"""What a client can ask about tasks: submit, list, read, cancel, retry, and follow one to its end.

    submit, wait=True    Submit ──► {"id"} as an item ──► Follow ──► its output as items ──► its JSON
    wait                                                  Follow ──► its output as items ──► its JSON
    tasks                ListTasks: the newest, `limit` of them at most, which is what it costs; and all by state
    submit_many          SubmitMany, a batch at a time ──► {"tasks": […]}, in the order given

A client that hangs up is followed for no more. What it asked to begin goes on: it is the mesh's by then.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from mesh.errors import CommandRefused, ConfigError
from mesh.runtime.control import ControlClient, Request, Service
from mesh.runtime.driver import Driver
from mesh.runtime.requests import flag, maps, number, read_new, text
from mesh.tasks.asking import LIST_MAX
from mesh.tasks.commands import (
    LISTED,
    CancelTask,
    Follow,
    GetTask,
    ListTasks,
    New,
    RetryTask,
    Submit,
    SubmitMany,
    Unfollow,
    WhyTask,
)

MANY_MAX: Final = 1_000
"""Tasks of one request."""

BATCH: Final = 100
"""Tasks that the node takes in at once: the next ones wait until these are answered, and its gossip does not."""

TakeWatch = Callable[[int], tuple[list[tuple[int, bytes]], dict[str, Any] | None]]


class TaskServices:
    """The requests about tasks, for one node."""

    def __init__(self, driver: Driver, take_watch: TakeWatch) -> None:
        self._driver = driver
        self._take_watch = take_watch

    def table(self) -> dict[str, Service]:
        """Return every request by name."""
        return {
            "tasks": self._on_tasks,
            "task": self._on_task,
            "submit": self._on_submit,
            "submit_many": self._on_submit_many,
            "cancel": self._on_cancel,
            "retry": self._on_retry,
            "wait": self._on_wait,
        }

    async def task(self, task_id: str) -> dict[str, Any]:
        """Return the JSON of a task, as a majority of its voters holds it.

        Raises:
            CommandRefused: there is none, or no majority answered.
        """
        found: dict[str, Any] = await self._driver.ask(lambda number: GetTask(number, task_id))
        return found

    async def why(self, task_id: str) -> dict[str, Any]:
        """Return the same, with how its latest contests went. It takes up to half a second more."""
        found: dict[str, Any] = await self._driver.ask(lambda number: WhyTask(number, task_id))
        return found

    async def _on_tasks(self, request: Request, client: ControlClient) -> None:
        limit = int(number(request, "limit", LISTED, (0, LIST_MAX)))
        await client.ok(await self._driver.ask(lambda number: ListTasks(number, limit)))

    async def _on_task(self, request: Request, client: ControlClient) -> None:
        await client.ok(await self.task(text(request, "id")))

    async def _on_cancel(self, request: Request, client: ControlClient) -> None:
        task_id = text(request, "id")
        await client.ok(await self._driver.ask(lambda number: CancelTask(number, task_id)))

    async def _on_retry(self, request: Request, client: ControlClient) -> None:
        task_id = text(request, "id")
        await client.ok(await self._driver.ask(lambda number: RetryTask(number, task_id)))

    async def _on_submit(self, request: Request, client: ControlClient) -> None:
        new = read_new(request)
        if not flag(request, "wait"):
            await client.ok(await self._submit(new))
            return

        async def begin() -> str:
            answer = await self._submit(new)
            await client.item(answer)
            return str(answer["id"])

        await self._follow(begin, client)

    async def _submit(self, new: New) -> dict[str, Any]:
        answer: dict[str, Any] = await self._driver.ask(lambda number: Submit(number, new))
        return answer

    async def _on_submit_many(self, request: Request, client: ControlClient) -> None:
        described = maps(request, "tasks", MANY_MAX)
        answers: list[dict[str, Any]] = []
        for first in range(0, len(described), BATCH):
            answers += await self._submit_batch(described[first : first + BATCH])
        await client.ok({"tasks": answers})

    async def _submit_batch(self, described: list[Request]) -> list[dict[str, Any]]:
        """Submit these, and return what became of each; what is described wrongly is left out of it."""
        answers: list[dict[str, Any] | None] = []
        news: list[New] = []
        for one in described:
            try:
                news.append(read_new(one))
            except ConfigError as error:
                answers.append(_failed(one, str(error)))
            else:
                answers.append(None)
        taken = iter(await self._take_in(tuple(news)))
        return [next(taken) if answer is None else answer for answer in answers]

    async def _take_in(self, news: tuple[New, ...]) -> list[dict[str, Any]]:
        if not news:
            return []
        try:
            answer = await self._driver.ask(lambda number: SubmitMany(number, news))
        except (
            CommandRefused
        ) as error:  # batches before it may have been taken: each task is answered
            return [{"id": new.spec.task_id, "error": str(error)} for new in news]
        found: list[dict[str, Any]] = answer["tasks"]
        return found

    async def _on_wait(self, request: Request, client: ControlClient) -> None:
        task_id = text(request, "id")

        async def begin() -> str:
            return task_id

        await self._follow(begin, client)

    async def _follow(self, begin: Callable[[], Awaitable[str]], client: ControlClient) -> None:
        """Stream the output of the task that `begin` names, then answer with its JSON."""
        watcher_id = self._driver.next_id()
        try:
            with client.streaming():
                task_id = await begin()
                await self._driver.ask(lambda number: Follow(number, watcher_id, task_id))
                task = await self._pass_output(task_id, watcher_id, client)
        finally:
            self._driver.tell(Unfollow(watcher_id))
        await client.ok(task)

    async def _pass_output(
        self, task_id: str, watcher_id: int, client: ControlClient
    ) -> dict[str, Any]:
        while True:
            changed = self._driver.changes.next_of(task_id)
            pieces, task = self._take_watch(watcher_id)
            for stream, data in pieces:
                await client.item({"stream": stream, "data": data})
            if task is not None and "watch_error" in task:
                raise CommandRefused(task["watch_error"])
            if task is not None:
                return task
            if not pieces:
                await changed.wait()


def _failed(described: Request, why: str) -> dict[str, Any]:
    task_id = described.get("id")
    return {"id": task_id if isinstance(task_id, str) else "", "error": why}
