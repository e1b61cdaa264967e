"""Which member has the most to do: most of its slots taken; among equals, the highest load.

Loads differ by a hair from view to view: the member that was the busiest stays so until another one is
clearly busier, so that the mark does not jump about.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mesh.tui.rows import MemberRow

LOAD_LEAST: Final = 0.25
"""Below this load, and with all slots free, nobody is called busy."""

_CLEARLY: Final = 0.1


def busiest(members: Iterable[MemberRow], before: str = "") -> str:
    """Return the key of the busiest member, "" when all are idle; `before` is the one so far. O(members)."""
    best: MemberRow | None = None
    held: MemberRow | None = None
    for member in members:
        if not _is_busy(member):
            continue
        if best is None or _rank(member) > _rank(best):
            best = member
        if member.key == before:
            held = member
    if best is None:
        return ""
    if held is not None and _ratio(held) == _ratio(best) and _load(held) > _load(best) - _CLEARLY:
        return held.key
    return best.key


def _is_busy(member: MemberRow) -> bool:
    return member.is_living and (_ratio(member) > 0 or _load(member) >= LOAD_LEAST)


def _rank(member: MemberRow) -> tuple[float, float]:
    return _ratio(member), _load(member)


def _ratio(member: MemberRow) -> float:
    return member.slot_ratio or 0.0


def _load(member: MemberRow) -> float:
    return member.load or 0.0
