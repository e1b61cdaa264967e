"""The rounds as a small SVG: for each contestant one line a round, from its first report to its last.

A dot stands at the round's median; a taller stroke marks the median of all last reports. How many
reports never came stands beside, since no line can tell of those. Written by hand, readable on light and
dark pages, without scripts or fonts of its own.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from mesh.bench.records import Record, Spread, spread
from mesh.bench.report import round_step

WIDTH: Final = 760
LEFT: Final = 110
RIGHT: Final = 90
ROW: Final = 7
GAP: Final = 22
TOP: Final = 44
BOTTOM: Final = 36
TICKS_MAX: Final = 6
_STYLE: Final = """
  text { font: 12px system-ui, sans-serif; fill: #333 }
  .title { font-weight: 600; font-size: 14px }
  .axis { stroke: #999; stroke-width: 1 }
  .grid { stroke: #ddd; stroke-width: 1 }
  .round { stroke: #7a8896; stroke-width: 3; stroke-linecap: round }
  .ours .round { stroke: #1b6ac9 }
  .dot { fill: #56626e }
  .ours .dot { fill: #1b6ac9 }
  .last { stroke: #333; stroke-width: 2 }
  @media (prefers-color-scheme: dark) {
    text { fill: #ddd } .dot { fill: #b4bec8 } .last { stroke: #eee } .grid { stroke: #444 }
    .ours .round { stroke: #5aa2f5 } .ours .dot { fill: #5aa2f5 }
  }"""


def figures(records: Sequence[Record], faults: Sequence[str], about: str) -> str:
    """Return one SVG with a panel for each fault that reports are due of, one below the other."""
    told = [fault for fault in faults if any(_tells(record, fault) for record in records)]
    if len(told) <= 1:
        fault = (*told, *faults)[0]
        return figure(records, fault, f"{fault}: {about}")
    panels, height = [], 0
    for fault in told:
        one, below = _panel(records, fault, f"{fault}: {about}", height)
        panels.append(one)
        height = below
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    label = quoteattr(f"{', '.join(told)}: {about}")
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label={label}>'
    return "\n".join([head, *panels, "</svg>"]) + "\n"


def figure(records: Sequence[Record], fault: str, title: str) -> str:
    """Return the SVG of one fault's rounds; contestants that neither told nor missed anything are left out."""
    return _panel(records, fault, title, 0)[0] + "\n"


def _tells(record: Record, fault: str) -> bool:
    return any(one.times_ms or one.missing for one in record.of_fault(fault))


def _panel(records: Sequence[Record], fault: str, title: str, y: int) -> tuple[str, int]:
    """Return a fault's SVG, to stand at a height, and the height below it."""
    bands = [
        (record, _spreads(record, fault), sum(len(one.missing) for one in record.of_fault(fault)))
        for record in records
    ]
    bands = [band for band in bands if band[1] or band[2]]
    top_ms = max((each.last_ms or 0.0 for _, spreads, _ in bands for each in spreads), default=1.0)
    step_ms = round_step(top_ms, TICKS_MAX)
    end_ms = step_ms * max(1, -(-top_ms // step_ms))
    height = TOP + sum(_rows(spreads) * ROW + GAP for _, spreads, _ in bands) + BOTTOM
    size = f'y="{y}" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label={quoteattr(title)}>',
        f"<style>{_STYLE}\n</style>",
        f'<text class="title" x="{LEFT}" y="20">{escape(title)}</text>',
        *_axis(end_ms, step_ms, height),
    ]
    top = float(TOP)
    for record, spreads, missing in bands:
        parts += _band((record.name, missing), spreads, top, end_ms)
        top += _rows(spreads) * ROW + GAP
    parts.append("</svg>")
    return "\n".join(parts), y + height


def _spreads(record: Record, fault: str) -> list[Spread]:
    found = [spread(one.times_ms) for one in record.of_fault(fault)]
    return [each for each in found if each.last_ms is not None]


def _rows(spreads: Sequence[Spread]) -> int:
    return max(1, len(spreads))


def _band(of: tuple[str, int], spreads: Sequence[Spread], top: float, end_ms: float) -> list[str]:
    """Draw a contestant: its name and how many reports are missing, and its rounds."""
    name, missing = of
    bottom = top + _rows(spreads) * ROW
    centre = (top + bottom) / 2 + 4
    parts = [
        f'<g class="{"ours" if name == "mesh" else "peer"}">',
        f'<text x="{LEFT - 12}" y="{centre:.1f}" text-anchor="end">{escape(name)}</text>',
    ]
    if missing:
        below = f'x="{WIDTH - RIGHT + 10}" y="{centre + 14:.1f}"'
        parts.append(f"<text {below}>{missing} missing</text>")
    if not spreads:
        return [*parts, "</g>"]
    middle_ms = statistics.median(each.last_ms or 0.0 for each in spreads)
    for number, each in enumerate(sorted(spreads, key=lambda one: one.last_ms or 0.0)):
        y = top + (number + 0.5) * ROW
        first, median, last = (
            _x(time_ms or 0.0, end_ms) for time_ms in (each.first_ms, each.median_ms, each.last_ms)
        )
        parts.append(
            f'<line class="round" x1="{first:.1f}" x2="{last:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        parts.append(f'<circle class="dot" cx="{median:.1f}" cy="{y:.1f}" r="2.6"/>')
    x = _x(middle_ms, end_ms)
    parts += [
        f'<line class="last" x1="{x:.1f}" x2="{x:.1f}" y1="{top - 3:.1f}" y2="{bottom + 3:.1f}"/>',
        f'<text x="{WIDTH - RIGHT + 10}" y="{centre:.1f}">{middle_ms / 1000:.2f} s</text>',
        "</g>",
    ]
    return parts


def _axis(end_ms: float, step_ms: float, height: int) -> list[str]:
    base = height - BOTTOM + 4
    parts = []
    for number in range(round(end_ms / step_ms) + 1):
        at_ms = number * step_ms
        x = _x(at_ms, end_ms)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{base}"/>')
        parts.append(
            f'<text x="{x:.1f}" y="{base + 16}" text-anchor="middle">{at_ms / 1000:g}</text>'
        )
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{base}" y2="{base}"/>')
    parts.append(f'<text x="{WIDTH - RIGHT + 10}" y="{base + 16}">seconds</text>')
    parts.append(f'<text x="{WIDTH - RIGHT + 10}" y="{TOP - 12}">last, median</text>')
    return parts


def _x(time_ms: float, end_ms: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * time_ms / end_ms
