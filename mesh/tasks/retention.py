"""For how long the record of a task is kept after its end: what each task says, by this node's clock.

Where too many have ended, the oldest go before that (`FINALS_MAX`); those are counted.
"""

from __future__ import annotations

from mesh.core.ids import NodeId
from mesh.registers.keeping import Keeping
from mesh.registers.record import Record
from mesh.registers.upkeep import RETAIN_S, Expires, UpkeepMove
from mesh.registers.voter import Forget
from mesh.tasks.body import Terms, is_task_key
from mesh.tasks.entry import head_of
from mesh.wire.repair_messages import Purged, RepairMessage

assert Terms().retain_s == RETAIN_S


def expiring(unix_offset_s: float) -> Expires:
    """Return what tells until when a final record is kept; `unix_offset_s`: the time of day less this node's clock.

    What is no task, and what cannot be read, is kept for good.
    """

    def expires(key: bytes, record: Record) -> float | None:
        head = head_of(record) if is_task_key(key) else None
        at = None if head is None else head.expires
        return None if at is None else at - unix_offset_s

    return expires


class TaskKeeping(Keeping):
    """Keeping that counts what went before its time."""

    purged_early: int = 0
    """Tasks that this node, as their first voter, has purged before their time, to have room for later ones."""

    def handle(self, now: float, sender: NodeId, message: RepairMessage) -> list[UpkeepMove]:
        """Take a message of another voter; return what is to be done."""
        moves = super().handle(now, sender, message)
        # What another purges is counted there: by this node's clock it may have some time left.
        return self._count(now, moves) if isinstance(message, Purged) else moves

    def handle_timeout(self, now: float) -> list[UpkeepMove]:
        """Do what is due; too early, twice or late does no harm."""
        return self._count(now, super().handle_timeout(now))

    def _count(self, now: float, moves: list[UpkeepMove]) -> list[UpkeepMove]:
        for move in moves:
            for key in move.keys if isinstance(move, Forget) else ():
                until = self._expires(key, self._voter.record(key))
                self.purged_early += until is not None and until > now
        return moves
