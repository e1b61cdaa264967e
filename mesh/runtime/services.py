"""What a client can ask of the node: one function for each request of the control socket.

A service checks what it was sent, asks the node through the driver, and answers. Text, numbers and
maps come from outside: everything is checked here before the node hears of it.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio

from mesh.errors import CommandRefused, ConfigError, DecodeError
from mesh.node.commands import ForgetMember, Leave, Why
from mesh.runtime.control import ControlClient, Request, Service
from mesh.runtime.driver import Driver
from mesh.runtime.eventlog import EVENTS_MAX, FOLLOWER_EVENTS_MAX, EventLog
from mesh.runtime.status import Status
from mesh.wire.work_messages import Spec, check_spec
from mesh.work.commands import Cancel, GetTask, ListTasks, Submit, Unwatch, Watch

VIEW_INTERVAL_S_MIN: Final = 0.2
VIEW_INTERVAL_S_MAX: Final = 3_600.0
VIEW_EVENTS_MAX: Final = 500

TakeWatch = Callable[[int], tuple[list[tuple[int, bytes]], dict[str, Any] | None]]


class Services:
    """The table of requests, for one node."""

    def __init__(
        self,
        driver: Driver,
        take_watch: TakeWatch,
        status: Status,
        log: EventLog,
        key_desk: Service,
    ) -> None:
        self._driver = driver
        self._take_watch = take_watch
        self._status = status
        self._log = log
        self._key_desk = key_desk

    def table(self) -> dict[str, Service]:
        """Return every request by name."""
        return {
            "status": self._on_status,
            "members": self._on_members,
            "tasks": self._on_tasks,
            "task": self._on_task,
            "cancel": self._on_cancel,
            "submit": self._on_submit,
            "leave": self._on_leave,
            "forget": self._on_forget,
            "why": self._on_why,
            "key": self._key_desk,
            "wait": self._on_wait,
            "events": self._on_events,
            "views": self._on_views,
        }

    async def _on_status(self, _request: Request, client: ControlClient) -> None:
        await client.ok(self._status.node())

    async def _on_members(self, _request: Request, client: ControlClient) -> None:
        await client.ok(self._status.members())

    async def _on_tasks(self, _request: Request, client: ControlClient) -> None:
        await client.ok(await self._driver.ask(ListTasks))

    async def _on_task(self, request: Request, client: ControlClient) -> None:
        task_id = _text(request, "id")
        await client.ok(await self._driver.ask(lambda number: GetTask(number, task_id)))

    async def _on_cancel(self, request: Request, client: ControlClient) -> None:
        task_id = _text(request, "id")
        await client.ok(await self._driver.ask(lambda number: Cancel(number, task_id)))

    async def _on_submit(self, request: Request, client: ControlClient) -> None:
        spec = read_spec(request)
        if not _flag(request, "wait"):
            await client.ok(await self._driver.ask(lambda number: Submit(number, spec)))
            return

        async def begin(watcher_id: int) -> str:
            answer = await self._driver.ask(lambda number: Submit(number, spec, watcher_id))
            await client.item(answer)
            return str(answer["id"])

        await self._follow(begin, client)

    async def _on_leave(self, request: Request, client: ControlClient) -> None:
        reason = _text(request, "reason", "asked to leave")[:200]
        try:
            await client.ok({})
        finally:
            self._driver.tell(Leave(reason))

    async def _on_forget(self, request: Request, client: ControlClient) -> None:
        whom = _text(request, "whom")
        await client.ok(await self._driver.ask(lambda number: ForgetMember(number, whom)))

    async def _on_why(self, request: Request, client: ControlClient) -> None:
        whom = _text(request, "whom")
        await client.ok(await self._driver.ask(lambda number: Why(number, whom)))

    async def _on_wait(self, request: Request, client: ControlClient) -> None:
        task_id = _text(request, "id")

        async def begin(watcher_id: int) -> str:
            await self._driver.ask(lambda number: Watch(number, watcher_id, task_id))
            return task_id

        await self._follow(begin, client)

    async def _follow(self, begin: Callable[[int], Awaitable[str]], client: ControlClient) -> None:
        """Stream the output of the task that `begin` lets a watcher follow, then answer with its JSON."""
        watcher_id = self._driver.next_id()
        try:
            with client.streaming():
                task_id = await begin(watcher_id)
                task = await self._pass_output(task_id, watcher_id, client)
        finally:
            self._driver.tell(Unwatch(watcher_id))
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

    async def _on_events(self, request: Request, client: ControlClient) -> None:
        last = int(_number(request, "last", EVENTS_MAX, (0, EVENTS_MAX)))
        is_following = _flag(request, "follow")
        with client.streaming(), self._log.follow(FOLLOWER_EVENTS_MAX) as follower:
            for event in self._log.last(last):
                await client.item(event)
            while is_following:
                await follower.wait()
                if follower.has_lagged:
                    raise CommandRefused(
                        "this reader fell too far behind the events and was cut off; read faster, or ask again"
                    )
                for event in follower.take():
                    await client.item(event)
        await client.ok({})

    async def _on_views(self, request: Request, client: ControlClient) -> None:
        interval_s = _number(request, "interval_s", 1.0, (VIEW_INTERVAL_S_MIN, VIEW_INTERVAL_S_MAX))
        before: dict[str, int] = {}
        due = before_at = trio.current_time()
        with client.streaming(), self._log.follow(VIEW_EVENTS_MAX) as follower:
            while True:
                for event in follower.take():
                    await client.item({"event": event})
                now = trio.current_time()
                if now >= due:
                    totals = self._status.totals()
                    rates = _rates(before, totals, now - before_at)
                    before, before_at, due = totals, now, now + interval_s
                    await client.item({"view": self._status.view_json(rates)})
                with trio.move_on_at(due):
                    await follower.wait()


def _rates(before: dict[str, int], after: dict[str, int], elapsed_s: float) -> dict[str, float]:
    """Return each total's growth in a second; nothing before there are two of them."""
    if not before or elapsed_s <= 0:
        return {}
    return {f"{name}_s": round((after[name] - before[name]) / elapsed_s, 3) for name in after}


def read_spec(request: Request) -> Spec:
    """Return the task that a request describes.

    Raises:
        ConfigError: 'argv' is no list, 'env', 'labels' or 'needs' no map of texts, or a part cannot be sent on.
    """
    argv = request.get("argv")
    if type(argv) is not list:
        raise ConfigError("submit needs 'argv', a list that begins with the command")
    spec = Spec(
        task_id=_given(request, "id", ""),
        argv=tuple(argv),
        env=_pairs(request, "env"),
        cwd=_given(request, "cwd", ""),
        key=_given(request, "key", ""),
        queue=_given(request, "queue", "default"),
        pool=_given(request, "pool", ""),
        node_class=_given(request, "class", ""),
        labels=_pairs(request, "labels"),
        needs=_pairs(request, "needs"),
    )
    try:
        check_spec(spec)
    except DecodeError as error:
        raise ConfigError(f"the task is described wrongly: {error}") from error
    return spec


def _given(request: Request, key: str, default: Any) -> Any:  # noqa: ANN401 - checked later
    """Return what was sent under `key`; nothing and "" both mean the default."""
    found = request.get(key)
    return default if found is None or found == "" else found


def _pairs(request: Request, key: str) -> tuple[tuple[Any, Any], ...]:
    found = _given(request, key, {})
    if type(found) is not dict or any(type(name) is not str for name in found):
        raise ConfigError(f"{key!r} is a map whose keys are texts, found {found!r:.40}")
    return tuple(sorted(found.items()))


def _text(request: Request, key: str, default: str | None = None) -> str:
    found = request.get(key, default)
    if type(found) is not str or not found:
        raise ConfigError(f"{key!r} is a text, found {found!r:.40}")
    return found


def _flag(request: Request, key: str) -> bool:
    found = request.get(key, False)
    if type(found) is not bool:
        raise ConfigError(f"{key!r} is true or false, found {found!r:.40}")
    return found


def _number(request: Request, key: str, default: float, bounds: tuple[float, float]) -> float:
    found = request.get(key, default)
    if type(found) not in {int, float} or not math.isfinite(found):
        raise ConfigError(f"{key!r} is a number, found {found!r:.40}")
    if not bounds[0] <= found <= bounds[1]:
        raise ConfigError(f"{key!r} lies between {bounds[0]:g} and {bounds[1]:g}, found {found}")
    return float(found)
