"""Why nobody can run a task, in words: the demands that no member meets, or that none meets all of them at once.

Members are those that may get work, by what they declare: who is suspected is none of them. Who could run it and takes nothing just now, by its own word, is named for that; who is dedicated to other queues lacks nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from mesh.placement.live_view import Wants, suits
from mesh.wire.records import Availability, Metadata


def lacking(wants: Wants, declared: Sequence[Metadata]) -> str:
    """Return what keeps every member from running such a task, given what each declares. O(demands times members)."""
    if not declared:
        return "no member takes tasks"
    able = [one for one in declared if suits(_opened(one), wants)]
    if closed := [one for one in able if one.availability is not Availability.OPEN]:
        return _closed(closed)
    any_of_queue = Wants(key="", queue=wants.queue)
    opened = [one for one in map(_opened, declared) if _meets(one, any_of_queue)]
    if not opened:
        return f"every member that takes tasks is dedicated to other queues than {wants.queue}"
    demands = list(_demands(wants))
    unmet = [words for words, one in demands if not any(_meets(meta, one) for meta in opened)]
    whose = "" if len(opened) == len(declared) else f" of queue {wants.queue}"
    if unmet:
        return f"no member that takes tasks{whose} {', none '.join(unmet)}"
    return f"no member that takes tasks{whose} meets all of this at once: {', '.join(words for words, _ in demands)}"


def _closed(those: Sequence[Metadata]) -> str:
    """Say why those take nothing that could."""
    counts = Counter(one.availability for one in those)
    parts = [f"{counts[why]} {words}" for why, words in _CLOSED.items() if counts[why]]
    return f"those that could run it take nothing now: {', '.join(parts)}"


_CLOSED: Final = {
    Availability.UNFIT: "not fit, as the health check there says",
    Availability.STANDBY: "standing by until the load is high",
    Availability.DRAINING: "about to leave",
}


def _demands(wants: Wants) -> Iterator[tuple[str, Wants | None]]:
    """Yield each demand by itself, as the end of a sentence; the last, of None, is for a slot."""
    bare = Wants(key="", queue=wants.queue)
    if wants.pool:
        yield f"is in pool {wants.pool}", replace(bare, pool=wants.pool)
    if wants.node_class:
        yield f"is of class {wants.node_class}", replace(bare, node_class=wants.node_class)
    for label in wants.labels:
        yield f"has label {label[0]}={label[1]}", replace(bare, labels=(label,))
    for need in wants.needs:
        yield f"offers {need[0]} {need[1]} or more", replace(bare, needs=(need,))
    yield "has a slot", None


def _meets(meta: Metadata, demand: Wants | None) -> bool:
    if demand is None:
        return meta.slots > 0
    return suits(replace(meta, slots=max(1, meta.slots)), demand)


def _opened(meta: Metadata) -> Metadata:
    return replace(meta, availability=Availability.OPEN)
