"""Why nobody can run a task, in words: the demands that no member meets, or that none meets all of them at once.

Members are those that may get work, by what they declare: who drains, or is suspected, is none of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from mesh.placement.live_view import Wants, suits
from mesh.wire.records import Metadata


def lacking(wants: Wants, declared: Sequence[Metadata]) -> str:
    """Return what keeps every member from running such a task, given what each declares. O(demands times members)."""
    if not declared:
        return "no member takes tasks"
    demands = list(_demands(wants))
    unmet = [
        words for words, one in demands if not any(_meets(meta, one) for meta in declared)
    ]  # fmt: skip
    if unmet:
        return f"no member that takes tasks {', none '.join(unmet)}"
    return f"no member that takes tasks meets all of this at once: {', '.join(words for words, _ in demands)}"


def _demands(wants: Wants) -> Iterator[tuple[str, Wants | None]]:
    """Yield each demand by itself, as the end of a sentence; the last, of None, is for a slot."""
    if wants.pool:
        yield f"is in pool {wants.pool}", Wants(key="", pool=wants.pool)
    if wants.node_class:
        yield f"is of class {wants.node_class}", Wants(key="", node_class=wants.node_class)
    for label in wants.labels:
        yield f"has label {label[0]}={label[1]}", Wants(key="", labels=(label,))
    for need in wants.needs:
        yield f"offers {need[0]} {need[1]} or more", Wants(key="", needs=(need,))
    yield "has a slot", None


def _meets(meta: Metadata, demand: Wants | None) -> bool:
    if demand is None:
        return meta.slots > 0
    return suits(replace(meta, slots=max(1, meta.slots)), demand)
