"""Follow the mesh from outside while it works: what each node saw, and what each task brought.

Both kinds of follower are threads with a connection of their own, and end when their node does.
"""

from __future__ import annotations

import queue
import threading
from typing import Any, Final

from mesh.errors import MeshError
from mesh.fleet.fleet import NodeProcess

EVENTS_MAX: Final = 1_000
COLLECTORS_PER_NODE: Final = 4


class Witness:
    """What one node's own event stream says, from its first event on."""

    def __init__(self, node: NodeProcess) -> None:
        self.name = node.name
        self._events: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        self._client = node.client()
        threading.Thread(target=self._follow, name=f"witness of {node.name}", daemon=True).start()

    def _follow(self) -> None:
        try:
            for event in self._client.stream("events", follow=True, last=EVENTS_MAX):
                with self._changed:
                    self._events.append(event)
                    self._changed.notify_all()
        except MeshError:
            return  # the node has ended, and with it what it can tell
        finally:
            self._client.close()

    def events(self, since_ns: int = 0) -> list[dict[str, Any]]:
        """Return what was seen at or after `since_ns` (Unix time), oldest first."""
        with self._changed:
            return [event for event in self._events if event["at_ns"] >= since_ns]

    def wait_event(
        self, kind: str, member: str, since_ns: int, timeout_s: float
    ) -> dict[str, Any] | None:
        """Return the first such event at or after `since_ns`; None if none comes in time."""

        def found() -> dict[str, Any] | None:
            for event in self._events:
                if (event["kind"], event["member"]) == (kind, member) and event[
                    "at_ns"
                ] >= since_ns:
                    return event
            return None

        with self._changed:
            return self._changed.wait_for(found, timeout_s)


class Collector:
    """Waits for tasks at the nodes that keep them, and gathers their output and their record."""

    def __init__(self, nodes: list[NodeProcess]) -> None:
        self.finished: dict[str, dict[str, Any]] = {}
        self.output: dict[str, bytes] = {}
        self.failures: list[str] = []
        self._changed = threading.Condition()
        self._queues: dict[str, queue.SimpleQueue[str]] = {}
        for node in nodes:
            self._queues[node.name] = queue.SimpleQueue()
            for number in range(COLLECTORS_PER_NODE):
                name = f"collector {number} of {node.name}"
                threading.Thread(target=self._collect, args=(node,), name=name, daemon=True).start()

    def add(self, node: NodeProcess, task_id: str) -> None:
        """Wait for this task too; `node` is the one that took it."""
        self._queues[node.name].put(task_id)

    def wait_count(self, count: int, timeout_s: float) -> int:
        """Wait until `count` tasks have ended or something failed; return how many have ended."""
        with self._changed:
            self._changed.wait_for(
                lambda: len(self.finished) >= count or bool(self.failures), timeout_s
            )
            return len(self.finished)

    def cancelled(self) -> set[str]:
        """Return the tasks that ended because they were cancelled."""
        with self._changed:
            return {i for i, task in self.finished.items() if task["state"] == "cancelled"}

    def _collect(self, node: NodeProcess) -> None:
        tasks = self._queues[node.name]
        while True:
            task_id = tasks.get()
            try:
                with node.client() as client:
                    stream = client.stream("wait", id=task_id)
                    stdout = b"".join(item["data"] for item in stream if item["stream"] == 1)
                    task = stream.result
            except MeshError as error:
                with self._changed:
                    self.failures.append(f"{node.name} lost task {task_id}: {error}")
                    self._changed.notify_all()
                return
            with self._changed:
                self.output[task_id] = stdout
                self.finished[task_id] = task
                self._changed.notify_all()
