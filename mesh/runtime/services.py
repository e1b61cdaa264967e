"""What a client can ask of the node: one function for each request of the control socket.

A service checks what it was sent, asks the node through the driver, and answers. What is about tasks stands in
`task_services.py`, what is about queues in `queue_services.py`.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import trio

from mesh.errors import CommandRefused
from mesh.node.commands import ForgetMember, Leave, Look, Why
from mesh.runtime.control import ControlClient, Request, Service
from mesh.runtime.driver import Driver
from mesh.runtime.eventlog import EVENTS_MAX, FOLLOWER_EVENTS_MAX, EventLog
from mesh.runtime.queue_services import QueueServices
from mesh.runtime.requests import flag, number, text
from mesh.runtime.settings import DRAIN_S_MAX
from mesh.runtime.status import Status
from mesh.runtime.task_services import TakeWatch, TaskServices

VIEW_INTERVAL_S_MIN: Final = 0.2
VIEW_INTERVAL_S_MAX: Final = 3_600.0
VIEW_EVENTS_MAX: Final = 500
EVENTS_GATHER_S_MAX: Final = 10.0


LOOK_S: Final = 0.25
"""So long whoever asks for the members waits for how busy they are, at most: others are shown as they were known."""

LOOK_STEP_S: Final = 0.01


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
        self._tasks = TaskServices(driver, take_watch)
        self._queues = QueueServices(driver)
        self._status = status
        self._log = log
        self._key_desk = key_desk

    def table(self) -> dict[str, Service]:
        """Return every request by name."""
        return {
            "status": self._on_status,
            "members": self._on_members,
            **self._tasks.table(),
            **self._queues.table(),
            "leave": self._on_leave,
            "forget": self._on_forget,
            "why": self._on_why,
            "key": self._key_desk,
            "events": self._on_events,
            "views": self._on_views,
        }

    async def _on_status(self, _request: Request, client: ControlClient) -> None:
        await client.ok(self._status.node())

    async def _on_members(self, _request: Request, client: ControlClient) -> None:
        self._driver.tell(Look())
        with trio.move_on_after(LOOK_S):
            while self._status.is_looking():  # noqa: ASYNC110 - no event tells of each answer
                await trio.sleep(LOOK_STEP_S)
        await client.ok(self._status.members())

    async def _on_leave(self, request: Request, client: ControlClient) -> None:
        reason = text(request, "reason", "asked to leave")[:200]
        within_s = number(request, "within_s", 0.0, (0.0, DRAIN_S_MAX))
        try:
            await client.ok({})
        finally:
            self._driver.tell(Leave(reason, within_s))

    async def _on_forget(self, request: Request, client: ControlClient) -> None:
        whom = text(request, "whom")
        await client.ok(await self._driver.ask(lambda number: ForgetMember(number, whom)))

    async def _on_why(self, request: Request, client: ControlClient) -> None:
        """Tell a member's story; where no member is called so, a task's: `{"task": its JSON, "observer"}`.

        A task's whole id goes before the beginning of a member's.
        """
        whom = text(request, "whom")
        try:
            told = await self._driver.ask(lambda number: Why(number, whom))
        except CommandRefused as refused:
            members = self._status.members()
            if any(m["name"] == whom or m["node_id"].startswith(whom.lower()) for m in members):
                raise
            told = await self._why_of_task(whom, refused)
        else:
            if whom not in {told["name"], told["node_id"]}:
                # The beginning of a member's id, unless a task is called just so.
                with suppress(CommandRefused):
                    told = await self._why_of_task(whom, CommandRefused(""))
        await client.ok(told)

    async def _why_of_task(self, whom: str, refused: CommandRefused) -> dict[str, Any]:
        try:
            task = await self._tasks.why(whom)
        except CommandRefused as error:
            raise CommandRefused(f"{refused}; {error}") from error
        return {"task": task, "observer": self._status.node()["name"]}

    async def _on_events(self, request: Request, client: ControlClient) -> None:
        last = int(number(request, "last", EVENTS_MAX, (0, EVENTS_MAX)))
        is_following = flag(request, "follow")
        gather_s = number(request, "gather_s", 0.0, (0.0, EVENTS_GATHER_S_MAX))
        with client.streaming(), self._log.follow(FOLLOWER_EVENTS_MAX, gather_s) as follower:
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
        interval_s = number(request, "interval_s", 1.0, (VIEW_INTERVAL_S_MIN, VIEW_INTERVAL_S_MAX))
        before: dict[str, int] = {}
        due = before_at = trio.current_time()
        with client.streaming(), self._log.follow(VIEW_EVENTS_MAX) as follower:
            while True:
                for event in follower.take():
                    await client.item({"event": event})
                now = trio.current_time()
                if now >= due:
                    self._driver.tell(Look())
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
