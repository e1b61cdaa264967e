"""Which member has the most to do: the greater of its slots taken and of its load, as shares of what it has.

Members whose shares differ by a hair (all on one host tell one load) are as busy as each other, unless
one has more of its slots taken: then nobody is called the busiest. The one that was stays so until
another comes within half of such a hair, so that the mark does not jump about.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from mesh.tui.rows import MemberRow

LOAD_LEAST: Final = 0.25
"""Below this load, and with all slots free, nobody is called busy."""

CLEARLY: Final = 0.1
"""By so much a share must be greater to count as more; above 1, by so much of itself."""


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
    hair = CLEARLY * max(1.0, most)
    near = [member for member in busy if _share(member) > most - hair]
    taken = max(map(_ratio, near))
    first = [member for member in near if _ratio(member) == taken]
    if len(first) == 1:
        return Busiest(first[0].key)
    others = [_share(member) for member in first if member.key != before]
    if len(others) < len(first) and max(others) <= most - hair / 2:
        return Busiest(before)
    return Busiest(tied=len(first))


def _is_busy(member: MemberRow) -> bool:
    return member.is_living and (_ratio(member) > 0 or _load(member) >= LOAD_LEAST)


def _share(member: MemberRow) -> float:
    return max(_ratio(member), _load(member))


def _ratio(member: MemberRow) -> float:
    return member.slot_ratio or 0.0


def _load(member: MemberRow) -> float:
    return member.load or 0.0
