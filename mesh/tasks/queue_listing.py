"""The queues that something is set for, as one node knows them: no majority is asked, and the answer says so.

    its own voter's registers queue/… ─┬─ of each queue the later of the two ──► `ListQueues`
    what is known of queues in use ────┘

Each setting is a register of its own, kept by three voters. So a node of a mesh of three knows all of them, one among
more voters a share, and one that votes on nothing those that are in use there.

Source: our own.
"""

from __future__ import annotations

from typing import Any, Final

from mesh.core.effects import Answer
from mesh.core.order import natural
from mesh.errors import DecodeError
from mesh.queues.commands import ListQueues
from mesh.queues.settings import QueueSettings, decode, is_queue_key, name_in, of_value
from mesh.tasks.means import Means
from mesh.tasks.queueing import shown

LIST_MAX: Final = 2_000
"""Queues of one list."""


class QueueListing:
    """Which registers of this node's voter are queues', and what they hold."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self._keys: dict[bytes, str] | None = None
        """Of those that hold a queue's setting, or did, and the queue's name; None: nobody has asked yet.

        "": the key is a hash, and what it holds was not read yet.
        """

    def changed(self, key: bytes) -> None:
        """Note that this voter stores something of a register."""
        if self._keys is not None and is_queue_key(key):
            self._keys.setdefault(key, name_in(key))

    def answer(self, command: ListQueues) -> Answer:
        """Answer with what is known, by name; only what is shown is decoded. O(queues), but the first time O(registers)."""
        known = {settings.queue: settings for settings in self._means.known_queues()}
        own, unread = self._own()
        names = sorted({**own, **known}, key=natural)
        queues: list[dict[str, Any]] = []
        looked_at = 0
        for queue in names:
            if len(queues) == LIST_MAX:
                break
            looked_at += 1
            kept, is_read = self._kept(queue, own.get(queue))
            unread += not is_read
            heard = known.get(queue)
            if kept is None or (heard is not None and heard.count > kept.count):
                kept = heard
            if kept is not None:
                queues.append(shown(queue, kept))
        name = self._means.card().name
        return Answer(
            command.command_id,
            {
                "queues": queues,
                "left_out": len(names) - looked_at,
                "unread": unread,
                "local": f"the queues that something is set for, as {name} knows them: of those that it votes on, or "
                "that are in use there; `mesh queue show NAME` asks a majority of a queue's voters",
            },
        )

    def _own(self) -> tuple[dict[str, bytes], int]:
        """Return the keys of this node's own voter by queue, and how many there are whose queue cannot be read."""
        voter = self._means.registers.voter
        if self._keys is None:
            self._keys = {key: name_in(key) for key, _ in voter if is_queue_key(key)}
        found, unread = {}, 0
        for key, queue in self._keys.items():
            value = voter.record(key).value
            if value is None:
                continue
            try:
                name = queue or decode(value.body).queue
            except DecodeError:
                unread += 1
                continue
            self._keys[key] = name
            found[name] = key
        return found, unread

    def _kept(self, queue: str, key: bytes | None) -> tuple[QueueSettings | None, bool]:
        """Return what this node's own voter holds of a queue, and whether it can be read."""
        value = None if key is None else self._means.registers.voter.record(key).value
        try:
            return (None if value is None else of_value(queue, value)), True
        except DecodeError:
            return None, False
