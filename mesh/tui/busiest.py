"""Which member has the most to do: the greater of its slots taken and of its load, as shares of what it has.

Members whose shares differ by a hair (all on one host tell one load) are as busy as each other, unless
one has more of its slots taken: then nobody is called the busiest. The one that was stays so until
another has as much to do, so that the mark does not jump about.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from mesh.tui.rows import MemberRow

LOAD_LEAST: Final = 0.25
"""Below this load, and with all slots free, nobody is called busy."""

CLEARLY: Final = 0.1
"""By so much a share must be greater to count as more."""


class Busiest(NamedTuple):
    """The key of the busiest member, "" when there is none; and how many are as busy as each other then."""

    key: str = ""
    tied: int = 0


def busiest(members: Iterable[MemberRow], before: str = "") -> Busiest:
    """Return who has the most to do; `before` is the key of the one so far. O(members)."""
    busy = [member for member in members if _is_busy(member)]
    if not busy:
        return Busiest()
    most = max(map(_share, busy))
    near = [member for member in busy if _share(member) > most - CLEARLY]
    taken = max(map(_ratio, near))
    first = [member for member in near if _ratio(member) == taken]
    if any(member.key == before and _share(member) >= most for member in first):
        return Busiest(before)
    return Busiest(first[0].key) if len(first) == 1 else Busiest(tied=len(first))


def _is_busy(member: MemberRow) -> bool:
    return member.is_living and (_ratio(member) > 0 or _load(member) >= LOAD_LEAST)


def _share(member: MemberRow) -> float:
    return max(_ratio(member), _load(member))


def _ratio(member: MemberRow) -> float:
    return member.slot_ratio or 0.0


def _load(member: MemberRow) -> float:
    return member.load or 0.0
