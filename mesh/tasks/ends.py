"""How attempts ended, as a voter learns it from a task's record: once for each, retries included.

    what this voter kept ──► attempt 3 runs │ what it keeps now ──► 3 failed, 4 failed, 5 runs     news: 3, 4

Only an owner's verdict counts: the command ended well, or it failed, did not start, or took too long. What was
cancelled or let go says nothing of the member, and an owner that was lost is membership's matter. A task of which this
voter knew nothing says nothing either: what others ship to it may be of last week.

Source: our own.
"""

from __future__ import annotations

from mesh.contest.histories import Histories
from mesh.core.ids import NodeId
from mesh.errors import DecodeError
from mesh.registers.record import Record
from mesh.tasks.body import Body, End, Head
from mesh.tasks.entry import Entry
from mesh.tasks.form import of_value
from mesh.wire.task_messages import TaskState


def note_ends(
    now: float, histories: Histories, entry: Entry, record: Record, head: Head | None
) -> None:
    """Remember how those attempts fared that have ended since a task was looked at last: `entry` is from then."""
    for node_id, ok in ends_since(entry, record, head):
        histories.note(now, entry.lane.key.queue, node_id, ok=ok)


def ends_since(entry: Entry, record: Record, head: Head | None) -> list[tuple[NodeId, bool]]:
    """Return where attempts ended of which `entry` knew no end, in order, and whether they ended well.

    `head` is what the record says, None: nothing that can be understood. A success, and whatever ends nothing, costs
    O(1); else the whole record is read.
    """
    first = entry.attempt if entry.owner is None else entry.attempt - 1
    if head is None or record.value is None or head.attempt < first:
        return []
    is_running = head.state is TaskState.LEASED
    if is_running and head.attempt == first:
        return []
    if head.state is TaskState.DONE and head.attempt == first and entry.owner is not None:
        return [(entry.owner.node_id, True)]
    try:
        return _verdicts(of_value(record.value), first)
    except DecodeError:
        return []  # of a later version: counted where it is listed


def _verdicts(body: Body, first: int) -> list[tuple[NodeId, bool]]:
    found = []
    for one in body.attempts:
        is_last = one.number == body.attempt
        is_cancelled = is_last and (body.is_cancel_requested or body.state is TaskState.CANCELLED)
        if one.number >= first and one.end is End.VERDICT and not is_cancelled:
            found.append((one.node_id, one.exit_code == 0 and not one.error))
    return found
