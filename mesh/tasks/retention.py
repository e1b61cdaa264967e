"""For how long the record of a task is kept after its end: what each task says, by this node's clock."""

from __future__ import annotations

from mesh.registers.record import Record
from mesh.registers.upkeep import RETAIN_S, Expires
from mesh.tasks.body import Terms, is_task_key
from mesh.tasks.entry import head_of

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
