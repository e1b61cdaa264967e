"""What a mesh costs against its size: join, detection, dissemination, packets, as a table and a figure.

One line for each size, each from two runs of one seed: one mesh that forms through one seed node, and
one that is converged from the start, where a member crashes. The command is `mesh sim --experiment scale`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mesh.node.node import Node
from mesh.sim.experiment import Experiment, Settings

SIZES: Final = (10, 32, 100, 300, 1000)
_QUICK_SIZES: Final = (10, 32, 100)
_IDLE_S: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One size of mesh. Seconds are simulated."""

    members: int
    joined_s: float | None
    first_s: float | None
    last_s: float | None
    spread_s: float | None
    """From the first survivor's verdict to the last one's."""

    false_accusations: int
    packets_s: float | None
    bytes_s: float | None

    def to_json(self) -> dict[str, Any]:
        """Return it for programs; it repeats with the seed."""
        return {
            "members": self.members,
            "joined_s": self.joined_s,
            "first_s": self.first_s,
            "last_s": self.last_s,
            "spread_s": self.spread_s,
            "false_accusations": self.false_accusations,
            "packets_s": self.packets_s,
            "bytes_s": self.bytes_s,
        }


def run_scale(
    seed: int = 1, *, is_quick: bool = False, progress: Callable[[str], None] | None = None
) -> list[Point]:
    """Measure every size, the smallest first; quick: up to a hundred members."""
    points = []
    for members in _QUICK_SIZES if is_quick else SIZES:
        if progress is not None:
            progress(f"{members} members")
        points.append(measure(seed, members))
    return points


def measure(seed: int, members: int) -> Point:
    """Measure one size."""
    joined_s = _run(seed, Settings(nodes=members, fault="none", idle_s=0.0)).converge()
    settings = Settings(nodes=members, fault="crash", idle_s=_IDLE_S, is_converged=True)
    experiment = _run(seed, settings)
    experiment.finish()
    result = experiment.result(wall_s=0.0)  # it differs from run to run
    seconds = result.detection.seconds
    is_known = bool(seconds) and not result.detection.missing
    return Point(
        members=members,
        joined_s=joined_s,
        first_s=min(seconds, default=None),
        last_s=max(seconds) if is_known else None,
        spread_s=max(seconds) - min(seconds) if is_known else None,
        false_accusations=result.false_accusations,
        packets_s=result.packets_s,
        bytes_s=result.bytes_s,
    )


def _run(seed: int, settings: Settings) -> Experiment:
    experiment = Experiment(seed, settings, Node, check=False, sink=None, progress=None)
    experiment.start()
    return experiment


def to_text(points: Sequence[Point]) -> str:
    """Return the table, in Markdown."""
    head = ["members", "joined", "crash: first", "last", "spread", "false", "packets/s", "bytes/s"]
    rows = [head, ["---"] * len(head)]
    rows += [
        [
            str(point.members),
            *(_shown(value, "s") for value in (point.joined_s, point.first_s, point.last_s)),
            _shown(point.spread_s, "s", 2),
            str(point.false_accusations),
            _shown(point.packets_s, "", 2),
            _shown(point.bytes_s, "", 0),
        ]
        for point in points
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _shown(value: float | None, unit: str, digits: int = 1) -> str:
    return "never" if value is None else f"{value:.{digits}f} {unit}".rstrip()


# The figure: members to the right (logarithmic), each curve in a panel of its own.

_PANEL: Final = (300, 150)
_EDGE: Final = 46
_CURVES: Final[tuple[tuple[str, Callable[[Point], float | None]], ...]] = (
    ("all see all, s", lambda point: point.joined_s),
    ("a crash is known to all, s", lambda point: point.last_s),
    ("packets a second and member", lambda point: point.packets_s),
    ("bytes a second and member", lambda point: point.bytes_s),
)


def to_svg(points: Sequence[Point]) -> str:
    """Return the curves as an SVG image."""
    width, height = 2 * (_PANEL[0] + _EDGE) + 20, 2 * (_PANEL[1] + _EDGE) + 10
    font = 'font-family="sans-serif" font-size="11" fill="#555"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {font}>']
    for place, (title, value) in enumerate(_CURVES):
        left = _EDGE + (place % 2) * (_PANEL[0] + _EDGE)
        top = 24 + (place // 2) * (_PANEL[1] + _EDGE)
        parts += _panel(title, [(p.members, value(p)) for p in points], left, top)
    return "\n".join([*parts, "</svg>", ""])


def _panel(title: str, pairs: list[tuple[int, float | None]], left: int, top: int) -> list[str]:
    known = [(members, value) for members, value in pairs if value is not None]
    if not known:
        return []
    width, height = _PANEL
    most = 1.15 * max(value for _, value in known) or 1.0
    low, high = (math.log10(members) for members in (known[0][0], known[-1][0]))
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
        parts += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#2a7ae2"/>',
            f'<text x="{x:.1f}" y="{y - 7:.1f}" text-anchor="middle">{value:.3g}</text>',
            f'<text x="{x:.1f}" y="{top + height + 14}" text-anchor="middle">{members}</text>',
        ]
    return parts
