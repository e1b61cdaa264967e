"""What clients ask of queues, at any node: each is answered by exactly one `Answer`."""

from __future__ import annotations

from dataclasses import dataclass

from mesh.contest.weighing import Given
from mesh.queues.settings import Strategy


@dataclass(frozen=True, slots=True)
class SetQueue:
    """Set a queue's strategy, its weights, or both. Answer, once a majority holds it: as for `ShowQueue`, with `"outcome"`.

    None: that one stays as it is, and so does every part that `weights` does not name; of none at all: all are set back to
    the default. The outcome is `set`; `kept`: it was so already; or `overtaken`: it was set, and set to what is told by somebody else
    at the same time.
    """

    command_id: int
    queue: str
    strategy: Strategy | None = None
    weights: Given | None = None
    timeout_s: float = 5.0


@dataclass(frozen=True, slots=True)
class ShowQueue:
    """What a majority holds of a queue.

    Answer: `{"queue", "strategy", "weights", "default_weights", "set_at", "set_by"}`; never set: the last two null. `weights`
    says what each part weighs, `default_weights` whether none were set.
    """

    command_id: int
    queue: str
    timeout_s: float = 5.0


@dataclass(frozen=True, slots=True)
class ListQueues:
    """The queues that something is set for, as this node knows them; no majority is asked.

    Answer: `{"queues": [as for ShowQueue, …], "left_out", "unread", "local"}`: how many more there are, how many of the others this
    version cannot read, and in words how far the list goes.
    """

    command_id: int
