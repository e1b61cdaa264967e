"""What clients ask of queues, at any node: each is answered by exactly one `Answer`."""

from __future__ import annotations

from dataclasses import dataclass

from mesh.queues.settings import Strategy


@dataclass(frozen=True, slots=True)
class SetQueue:
    """Set a queue's strategy. Answer, once a majority holds it: as for `ShowQueue`, with `"outcome"`.

    That is `set`; `kept`: it was so already; or `overtaken`: it was set, and set to what is told by somebody else
    at the same time.
    """

    command_id: int
    queue: str
    strategy: Strategy
    timeout_s: float = 5.0


@dataclass(frozen=True, slots=True)
class ShowQueue:
    """What a majority holds of a queue. Answer: `{"queue", "strategy", "set_at", "set_by"}`; never set: the latter null."""

    command_id: int
    queue: str
    timeout_s: float = 5.0


@dataclass(frozen=True, slots=True)
class ListQueues:
    """The queues that something is set for, as this node knows them; no majority is asked.

    Answer: `{"queues": [as for ShowQueue, …], "left_out", "unread", "local"}`: how many more there are, how many this
    version cannot read, and in words how far the list goes.
    """

    command_id: int
