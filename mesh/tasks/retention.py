"""How long a task that is over is kept: as long as whoever submitted it asked for, from its end on."""

from __future__ import annotations

from mesh.errors import DecodeError
from mesh.registers.record import Record
from mesh.registers.upkeep import Expires
from mesh.tasks.body import is_task_key
from mesh.tasks.form import peek


def expiry(unix_offset_s: float) -> Expires:
    """Return what tells of a final record until when, by this node's clock, it is kept; None: for good.

    What is no task, or one of a later version, is none of ours to throw away.
    """

    def until(key: bytes, record: Record) -> float | None:
        if not is_task_key(key) or record.value is None:
            return None
        try:
            head = peek(record.value.body)
        except DecodeError:
            return None
        return None if head.ended is None else head.ended + head.retain_s - unix_offset_s

    return until
