"""What a mesh costs against its size, for people: a table, and a figure of curves; JSON for programs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from mesh.sim.scale import Calm

Pairs: TypeAlias = list[tuple[int, float | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One size of mesh. What the machine took for it differs from run to run; the rest repeats with the seed."""

    calm: Calm
    joined_s: float | None
    """None: it was not tried, or did not end."""

    cpu_s: float
    """The processor time of the converged run, on one core: how long it takes on an idle machine."""

    peak_mib: float
    """The most memory that the converged run took: all members together, and the simulator."""

    @property
    def members(self) -> int:
        """The size."""
        return self.calm.members

    @property
    def member_kib(self) -> float:
        """What one member with its full view takes of that."""
        return self.peak_mib * 1024 / self.members

    def to_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "members": self.members,
            "joined_s": self.joined_s,
            **self.calm.to_json(),
            "cpu_s": round(self.cpu_s, 2),
            "peak_mib": round(self.peak_mib, 1),
            "member_kib": round(self.member_kib, 1),
        }


_COLUMNS: Final[tuple[tuple[str, Callable[[Point], str]], ...]] = (
    ("members", lambda p: str(p.members)),
    ("packets/s", lambda p: _shown(p.calm.packets_s, digits=2)),
    ("bytes/s", lambda p: _shown(p.calm.bytes_s, digits=0)),
    ("killed: first", lambda p: _ms(p.calm.killed.first_s)),
    ("last", lambda p: _ms(p.calm.killed.last_s)),
    ("host lost: suspected", lambda p: _shown(p.calm.lost.suspected_s, "s", 2)),
    ("dead to all", lambda p: _shown(p.calm.lost.last_s, "s")),
    ("paused: suspected", lambda p: _shown(p.calm.paused.suspected_s, "s", 2)),
    ("dead to all", lambda p: _shown(p.calm.paused.last_s, "s")),
    ("news to all", lambda p: _ms(p.calm.spread_s)),
    ("false", lambda p: str(p.calm.false_accusations)),
    ("joined", lambda p: "-" if p.joined_s is None else _shown(p.joined_s, "s")),
    ("KiB a member", lambda p: _shown(p.member_kib, digits=0)),
    ("one core", lambda p: _shown(p.cpu_s, "s", 0)),
)


def to_text(points: Sequence[Point]) -> str:
    """Return the table, in Markdown."""
    rows = [[title for title, _ in _COLUMNS], ["---"] * len(_COLUMNS)]
    rows += [[show(point) for _, show in _COLUMNS] for point in points]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _shown(value: float | None, unit: str = "", digits: int = 1) -> str:
    return "never" if value is None else f"{value:.{digits}f} {unit}".rstrip()


def _ms(value_s: float | None) -> str:
    return _shown(None if value_s is None else value_s * 1000, "ms", 0)


def _in_ms(value_s: float | None) -> float | None:
    return None if value_s is None else value_s * 1000


# The figure: members to the right (logarithmic), each curve in a panel of its own.

_PANEL: Final = (300, 120)
_EDGE: Final = 46
_CURVES: Final[tuple[tuple[str, Callable[[Point], float | None]], ...]] = (
    ("packets a second and member, idle", lambda p: p.calm.packets_s),
    ("bytes a second and member, idle", lambda p: p.calm.bytes_s),
    ("a kill is known to all, ms", lambda p: _in_ms(p.calm.killed.last_s)),
    ("a suspicion has reached all, ms", lambda p: _in_ms(p.calm.spread_s)),
    ("a lost host is suspected, s", lambda p: p.calm.lost.suspected_s),
    ("a lost host is dead to all, s", lambda p: p.calm.lost.last_s),
    ("all that joined one seed see all, s", lambda p: p.joined_s),
    ("KiB of the simulator a member", lambda p: p.member_kib),
)


def to_svg(points: Sequence[Point]) -> str:
    """Return the curves as an SVG image."""
    rows = math.ceil(len(_CURVES) / 2)
    width, height = 2 * (_PANEL[0] + _EDGE) + 20, rows * (_PANEL[1] + _EDGE) + 10
    font = 'font-family="sans-serif" font-size="11" fill="#555"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {font}>']
    for place, (title, value) in enumerate(_CURVES):
        left = _EDGE + (place % 2) * (_PANEL[0] + _EDGE)
        top = 24 + (place // 2) * (_PANEL[1] + _EDGE)
        parts += _panel(title, [(p.members, value(p)) for p in points], left, top)
    return "\n".join([*parts, "</svg>", ""])


def _panel(title: str, pairs: Pairs, left: int, top: int) -> list[str]:
    known = [(members, value) for members, value in pairs if value is not None]
    if not known:
        return []
    width, height = _PANEL
    most = 1.15 * max(value for _, value in known) or 1.0
    low, high = (math.log10(members) for members in (pairs[0][0], pairs[-1][0]))
    spots = [
        (
            left + 14 + (width - 28) * (math.log10(members) - low) / ((high - low) or 1.0),
            top + height * (1 - value / most),
            members,
            value,
        )
        for members, value in known
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _, _ in spots)
    parts = [
        f'<text x="{left}" y="{top - 8}" font-weight="bold">{title}</text>',
        f'<path d="M{left} {top}V{top + height}H{left + width}" fill="none" stroke="#999"/>',
        f'<polyline points="{line}" fill="none" stroke="#2a7ae2" stroke-width="2"/>',
    ]
    for x, y, members, value in spots:
        shown = f"{value:.3g}" if value < 1000 else f"{value:.0f}"
        parts += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#2a7ae2"/>',
            f'<text x="{x:.1f}" y="{y - 7:.1f}" text-anchor="middle">{shown}</text>',
            f'<text x="{x:.1f}" y="{top + height + 14}" text-anchor="middle">{members}</text>',
        ]
    return parts
