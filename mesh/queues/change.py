"""Setting a queue's strategy and weights: a change of its register, which may be tried under several ballots.

    a  pull ────── ballot 1 ── some of a majority take it ──► outbid ── tries again: what is there is above its own
    b  contest ─────── ballot 2 ── finds a's, writes its own on top ──► chosen

Of two that set one queue at once, the later one wins, and the other may find that out only when it tries again:
what it wrote was taken as the ground of what came after it. It would undo the other's by writing again. So every
change leaves its mark; who finds its own mark writes nothing, and says that it was overtaken.

Source: our own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mesh.contest.weighing import Given, merged
from mesh.errors import ConfigError, DecodeError
from mesh.queues.settings import (
    COUNT_MAX,
    DEFAULT,
    MARKS_MAX,
    QueueSettings,
    Strategy,
    decode,
    has_version,
    of_value,
    to_value,
)
from mesh.wire.contest_messages import Weighing
from mesh.wire.register_messages import Standing, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSettings:
    """The change of a queue's register; it does nothing by itself, however often it is called."""

    queue: str
    strategy: Strategy | None
    """None: it stays as it is."""

    weights: Given | None
    """None: they stay as they are, and so does every part that is not named; no part at all: the default ones."""

    at: float
    """Unix."""

    by: str
    """The node at which it is set, as people know it."""

    mark: int
    """64 bits that no other change has."""

    def __call__(self, found: Value | None) -> Value | None:
        """Return what to write in place of what a majority reports; None: nothing may be written.

        What holds already, or was overtaken, is written back as it is. Bytes that are nothing are replaced; those of a
        setting that cannot be read never are, whatever its version: what it says of the other part would be lost.
        """
        before = self._before(found)
        if found is not None and before is None and self._is_others(found):
            return None
        weights = self._weights(before)
        if weights is None:
            return None
        if before is None:
            return to_value(self._first(weights))
        strategy = before.strategy if self.strategy is None else self.strategy
        is_so = (strategy, weights) == (before.strategy, before.weights)
        if self.mark in before.marks or is_so:
            return found
        return to_value(
            replace(
                self._first(weights),
                strategy=strategy,
                count=min(before.count + 1, COUNT_MAX),
                marks=(self.mark, *before.marks)[:MARKS_MAX],
            )
        )

    def leaves_nothing(self, found: Value | None) -> bool:
        """Say whether no part would count any more, set on top of what is found."""
        return self._weights(self._before(found)) is None

    def _weights(self, before: QueueSettings | None) -> Weighing | None:
        """Return the weights from now on; None: no part would count any more."""
        weights = () if before is None else before.weights
        if self.weights is None:
            return weights
        try:
            return merged(weights, self.weights)
        except ConfigError:
            return None

    def _first(self, weights: Weighing) -> QueueSettings:
        return QueueSettings(
            queue=self.queue,
            strategy=DEFAULT if self.strategy is None else self.strategy,
            weights=weights,
            count=1,
            set_at=self.at,
            set_by=self.by,
            marks=(self.mark,),
        )

    def _before(self, found: Value | None) -> QueueSettings | None:
        try:
            return None if found is None else of_value(self.queue, found)
        except DecodeError:
            return None

    def _is_others(self, found: Value) -> bool:
        """Say whether this is for others to change: a setting that cannot be read here, or what has an owner."""
        if found.standing is not Standing.OPEN:
            return True
        try:
            decode(found.body)
        except DecodeError:
            return has_version(found.body)
        return False  # it says that it is another queue's, and is nobody's here
