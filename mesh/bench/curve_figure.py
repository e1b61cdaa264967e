"""A curve as a small SVG: seconds until all have noticed to the right, false accusations upwards.

The nearer to the corner at the left below, the better. The points of one contestant are joined in the
order of their settings, which stand beside them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from mesh.bench.points import Point
from mesh.bench.report import round_step

WIDTH: Final = 760
HEIGHT: Final = 460
LEFT: Final = 80
RIGHT: Final = 150
TOP: Final = 44
BOTTOM: Final = 56
TICKS_MAX: Final = 8
X_TITLE: Final = "lost host held dead by all others, seconds after the loss (median)"
Y_TITLE: Final = "held dead while only slow, per member-hour"
_COLOURS: Final = {
    "mesh": "#1b6ac9",
    "memberlist": "#c9691b",
    "serf": "#3c8f4d",
    "kinship": "#9a4fb0",
}
_STYLE: Final = """
  text { font: 12px system-ui, sans-serif; fill: #333 }
  .title { font-weight: 600; font-size: 14px }
  .axis { stroke: #999; stroke-width: 1 }
  .grid { stroke: #ddd; stroke-width: 1 }
  .curve { fill: none; stroke-width: 2 }
  @media (prefers-color-scheme: dark) { text { fill: #ddd } .grid { stroke: #444 } }"""


def curve_figure(points: Sequence[Point], title: str) -> str:
    """Return the SVG; a point without a detection or without slow members is left out."""
    placed = [
        (point, point.noticed.last_ms / 1000, point.accused_per_hour)
        for point in points
        if point.noticed.last_ms is not None and point.accused_per_hour is not None
    ]
    x_ticks = _ticks([x for _, x, _ in placed])
    y_ticks = _ticks([y for _, _, y in placed])
    scale = (x_ticks[-1], y_ticks[-1])
    spots = [(point, *_spot(x, y, scale)) for point, x, y in placed]
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label={quoteattr(title)}>',
        f"<style>{_STYLE}\n</style>",
        f'<text class="title" x="{LEFT}" y="20">{escape(title)}</text>',
        *_axes(x_ticks, y_ticks),
    ]
    for number, name in enumerate(dict.fromkeys(point.name for point, *_ in spots)):
        own = [(point.setting, x, y) for point, x, y in spots if point.name == name]
        parts += _curve(name, own, number)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _curve(name: str, spots: Sequence[tuple[str, float, float]], number: int) -> list[str]:
    colour = _COLOURS.get(name, "#777")
    way = " ".join(f"{x:.1f},{y:.1f}" for _, x, y in spots)
    parts = [
        f'<g class="contestant" id={quoteattr(name)}>',
        f'<polyline class="curve" stroke="{colour}" points="{way}"/>',
    ]
    for setting, x, y in spots:
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>')
        if setting:
            parts.append(f'<text x="{x + 7:.1f}" y="{y - 6:.1f}">{escape(setting)}</text>')
    x, y = WIDTH - RIGHT + 24, TOP + 18 * number
    parts += [
        f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}"/>',
        f'<text x="{x + 12}" y="{y + 4}">{escape(name)}</text>',
        "</g>",
    ]
    return parts


def _ticks(values: Sequence[float]) -> list[float]:
    """Return round numbers from 0 to the first that is no less than all of these, at least 0 and one more."""
    top = max(values, default=0.0)
    step = round_step(top, TICKS_MAX)
    return [number * step for number in range(max(1, math.ceil(top / step)) + 1)]


def _axes(x_ticks: Sequence[float], y_ticks: Sequence[float]) -> list[str]:
    right, base = WIDTH - RIGHT, HEIGHT - BOTTOM
    scale = (x_ticks[-1], y_ticks[-1])
    parts = []
    for tick in x_ticks:
        x, _ = _spot(tick, 0.0, scale)
        parts += [
            f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{base}"/>',
            f'<text x="{x:.1f}" y="{base + 18}" text-anchor="middle">{tick:g}</text>',
        ]
    for tick in y_ticks:
        _, y = _spot(0.0, tick, scale)
        parts += [
            f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>',
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>',
        ]
    middle = (TOP + base) / 2
    return [
        *parts,
        f'<line class="axis" x1="{LEFT}" x2="{right}" y1="{base}" y2="{base}"/>',
        f'<line class="axis" x1="{LEFT}" x2="{LEFT}" y1="{TOP}" y2="{base}"/>',
        f'<text x="{(LEFT + right) / 2:.1f}" y="{base + 40}" text-anchor="middle">{X_TITLE}</text>',
        f'<text transform="translate(22 {middle:.1f}) rotate(-90)" text-anchor="middle">{Y_TITLE}</text>',
    ]


def _spot(x: float, y: float, scale: tuple[float, float]) -> tuple[float, float]:
    return (
        LEFT + (WIDTH - LEFT - RIGHT) * x / scale[0],
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * y / scale[1],
    )
