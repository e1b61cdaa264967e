"""Contests as a small SVG: for each network a row of panels, members to the right, a line for each scheme and loss.

    lan   bids (log) │ fittest wins │ granted after │ two owners       blue: Mesh   grey: the plain scheme
    wan   …                                                            dashes: the more is lost, the shorter

Written by hand, readable on light and dark pages, without scripts or fonts of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from mesh.bench.contest_results import MESH, Result
from mesh.bench.report import round_step

PANEL: Final = (170, 130)
LEFT: Final = 62
GAP: Final = (66, 62)
TOP: Final = 76
RIGHT: Final = 20
TICKS_MAX: Final = 4
_DASHES: Final = ("", "6 3", "2 3", "1 5")
_STYLE: Final = """
  text { font: 11px system-ui, sans-serif; fill: #333 }
  .title { font-weight: 600; font-size: 14px }
  .name { font-weight: 600 }
  .axis { stroke: #999; stroke-width: 1; fill: none }
  .grid { stroke: #ddd; stroke-width: 1 }
  .line { stroke: #7a8896; stroke-width: 2; fill: none }
  .dot { fill: #7a8896 }
  .ours .line { stroke: #1b6ac9 }
  .ours .dot { fill: #1b6ac9 }
  @media (prefers-color-scheme: dark) {
    text { fill: #ddd } .grid { stroke: #444 } .ours .line { stroke: #5aa2f5 } .ours .dot { fill: #5aa2f5 }
  }"""


@dataclass(frozen=True, slots=True)
class _Measure:
    """What a panel shows; `of` returns None where there is nothing to show."""

    name: str
    of: Callable[[Result], float | None]
    most: float | None = None
    is_log: bool = False


_MEASURES: Final = (
    _Measure("bids in a contest", lambda r: r.bids, is_log=True),
    _Measure("the fittest wins, %", lambda r: _percent(r.fittest), 100),
    _Measure("granted after, ms (median)", lambda r: r.grant_ms),
    _Measure("two owners, %", lambda r: 100 * r.two_owners / max(1, r.contests), 100),
)


def contest_figure(results: Sequence[Result], title: str) -> str:
    """Return the SVG."""
    networks = list(dict.fromkeys(one.network for one in results))
    losses = sorted({one.loss for one in results})
    width = LEFT + len(_MEASURES) * (PANEL[0] + GAP[0]) - GAP[0] + RIGHT
    height = TOP + len(networks) * (PANEL[1] + GAP[1])
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label={quoteattr(title)}>',
        f"<style>{_STYLE}\n</style>",
        f'<text class="title" x="{LEFT}" y="20">{escape(title)}</text>',
        *_legend(results, losses),
    ]
    for row, network in enumerate(networks):
        own = [one for one in results if one.network == network]
        top = TOP + row * (PANEL[1] + GAP[1])
        for column, measure in enumerate(_MEASURES):
            left = LEFT + column * (PANEL[0] + GAP[0])
            parts.append(
                f'<text class="name" x="{left}" y="{top - 8}">{network}: {escape(measure.name)}</text>'
            )
            parts += _panel(own, losses, measure, (left, top))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _legend(results: Sequence[Result], losses: Sequence[float]) -> list[str]:
    parts, x = [], LEFT
    for scheme in dict.fromkeys(one.scheme for one in results):
        for loss in losses:
            dash = f'stroke-dasharray="{_dash(losses, loss)}"'
            line = f'<line class="line" {dash} x1="{x}" x2="{x + 26}" y1="40" y2="40"/>'
            parts += [
                f'<g class="{_kind(scheme)}">{line}</g>',
                f'<text x="{x + 32}" y="44">{scheme}, {100 * loss:g} % lost</text>',
            ]
            x += 140
    return parts


def _panel(
    results: Sequence[Result],
    losses: Sequence[float],
    measure: _Measure,
    at: tuple[float, float],
) -> list[str]:
    left, top = at
    sizes = sorted({one.nodes for one in results})
    values = [value for one in results if (value := measure.of(one)) is not None]
    ticks = _ticks(values, measure)
    parts = []
    for tick in ticks:
        y = top + _y(tick, ticks, measure)
        parts += [
            f'<line class="grid" x1="{left}" x2="{left + PANEL[0]}" y1="{y:.1f}" y2="{y:.1f}"/>',
            f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>',
        ]
    base = top + PANEL[1]
    for size in sizes:
        x = left + _x(size, sizes)
        parts.append(f'<text x="{x:.1f}" y="{base + 16}" text-anchor="middle">{size}</text>')
    middle = left + PANEL[0] / 2
    parts += [
        f'<text x="{middle:.1f}" y="{base + 32}" text-anchor="middle">members</text>',
        f'<path class="axis" d="M{left} {top}V{base}H{left + PANEL[0]}"/>',
    ]
    for scheme in dict.fromkeys(one.scheme for one in reversed(results)):  # ours above the others
        for loss in losses:
            spots = [
                (left + _x(one.nodes, sizes), top + _y(value, ticks, measure))
                for one in results
                if one.scheme == scheme
                and one.loss == loss
                and (value := measure.of(one)) is not None
            ]
            way = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
            dash = f'stroke-dasharray="{_dash(losses, loss)}"'
            parts.append(f'<g class="{_kind(scheme)}">')
            parts.append(f'<polyline class="line" {dash} points="{way}"/>')
            parts += [f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in spots]
            parts.append("</g>")
    return parts


def _ticks(values: Sequence[float], measure: _Measure) -> list[float]:
    most = measure.most or max(values, default=1.0) or 1.0
    if measure.is_log:
        return [10.0**power for power in range(max(1, math.ceil(math.log10(max(1.0, most)))) + 1)]
    step = round_step(most, TICKS_MAX)
    return [step * number for number in range(math.ceil(most / step) + 1)]


def _x(size: int, sizes: Sequence[int]) -> float:
    """Return a place: the sizes stand evenly, with an edge."""
    return PANEL[0] * (sizes.index(size) + 0.5) / len(sizes)


def _y(value: float, ticks: Sequence[float], measure: _Measure) -> float:
    share = value / ticks[-1]
    if measure.is_log:
        share = math.log10(max(1.0, value)) / math.log10(ticks[-1])
    return PANEL[1] * (1 - share)


def _dash(losses: Sequence[float], loss: float) -> str:
    return _DASHES[min(losses.index(loss), len(_DASHES) - 1)]


def _kind(scheme: str) -> str:
    return "ours" if scheme == MESH else "peer"


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
