"""The queues that something is set for, as one node knows them: no majority is asked, and the answer says so.

    its own voter's registers queue/… ─┬─ of each queue the later of the two ──► `ListQueues`
    what is known of queues in use ────┘

Each setting is a register of its own, kept by three voters. So a node of a mesh of three knows all of them, one among
more voters a share, and one that votes on nothing those that are in use there.

Source: our own.
"""

from __future__ import annotations

from typing import Final

from mesh.core.effects import Answer
from mesh.core.order import natural
from mesh.errors import DecodeError
from mesh.queues.commands import ListQueues
from mesh.queues.settings import QueueSettings, decode, is_queue_key
from mesh.tasks.means import Means
from mesh.tasks.queueing import shown

LIST_MAX: Final = 2_000
"""Queues of one list."""


class QueueListing:
    """Which registers of this node's voter are queues', and what they hold."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self._keys: dict[bytes, None] | None = None
        """Of those that hold a queue's setting, or did; None: nobody has asked yet."""

    def changed(self, key: bytes) -> None:
        """Note that this voter stores something of a register."""
        if self._keys is not None and is_queue_key(key):
            self._keys[key] = None

    def answer(self, command: ListQueues) -> Answer:
        """Answer with what is known, by name. O(queues), but the first time O(registers)."""
        own, unread = self._own()
        found = {settings.queue: settings for settings in own}
        for settings in self._means.known_queues():
            before = found.get(settings.queue)
            if before is None or settings.count > before.count:
                found[settings.queue] = settings
        name = self._means.card().name
        names = sorted(found, key=natural)
        return Answer(
            command.command_id,
            {
                "queues": [shown(queue, found[queue]) for queue in names[:LIST_MAX]],
                "left_out": max(0, len(names) - LIST_MAX),
                "unread": unread,
                "local": f"the queues that something is set for, as {name} knows them: of those that it votes on, or "
                "that are in use there; `mesh queue show NAME` asks a majority of a queue's voters",
            },
        )

    def _own(self) -> tuple[list[QueueSettings], int]:
        """Return what this node's own voter holds, and how many settings there are that this version cannot read."""
        voter = self._means.registers.voter
        if self._keys is None:
            self._keys = {key: None for key, _ in voter if is_queue_key(key)}
        found, unread = [], 0
        for key in self._keys:
            value = voter.record(key).value
            if value is None:
                continue
            try:
                found.append(decode(value.body))
            except DecodeError:
                unread += 1
        return found, unread
