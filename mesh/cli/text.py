"""Plain text for people: aligned tables, times, and colour where it is wanted.

Words that come from other hosts pass through `printable`: a member's name must not be able to move
somebody's cursor.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from typing import Final

from mesh.core.time import format_duration

_LAST_CELLS_MIN: Final = 8
_COLOURS: Final = {
    "alive": "32", "done": "32", "ok": "32",
    "suspect": "33", "seeking": "33", "leaving": "33", "ready": "33", "scheduled": "33", "seek": "33", "warn": "33", "conflict": "33",
    "dead": "31", "lost": "31", "failed": "31", "bad": "31",
    "leased": "36", "running": "36",
    "left": "2", "cancelled": "2", "leave": "2",
}  # fmt: skip


def is_coloured() -> bool:
    """Say whether stdout is a terminal whose owner has not asked for plain text.

    NO_COLOR asks for it unless it is empty, as its convention has it.
    """
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def printable(text: object) -> str:
    """Return `text` with every character that does not simply show replaced by `?`."""
    return "".join(char if char.isprintable() else "?" for char in str(text))


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return aligned columns under their headings; state words are coloured on a terminal.

    On a terminal the last column is cut to its width, unless it is too narrow for the others.
    """
    cells = [[printable(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        cells = _cut_last(headings, cells, shutil.get_terminal_size().columns)
    widths = [max(map(_cells, column)) for column in zip(headings, *cells, strict=True)]
    coloured = is_coloured()
    lines = ["  ".join(map(str.ljust, headings, widths)).rstrip()]
    if coloured:
        lines[0] = f"\x1b[1m{lines[0]}\x1b[0m"
    for row in cells:
        padded = (
            cell + " " * (width - _cells(cell)) for cell, width in zip(row, widths, strict=True)
        )
        lines.append("  ".join(_paint(cell, coloured) for cell in padded).rstrip())
    return "\n".join(lines)


def _cut_last(headings: Sequence[str], rows: list[list[str]], width: int) -> list[list[str]]:
    """Return `rows` with the last column cut to what the others leave of `width` cells."""
    columns = list(zip(headings, *rows, strict=True))
    used = sum(max(map(_cells, column)) + 2 for column in columns[:-1])
    room = width - used
    if room < max(_LAST_CELLS_MIN, _cells(headings[-1])):
        return rows
    return [[*row[:-1], _cut(row[-1], room)] for row in rows]


def _cut(text: str, room: int) -> str:
    """Return `text` in at most `room` cells, with an ellipsis where something is missing."""
    if _cells(text) <= room:
        return text
    kept = ""
    for char in text:
        if _cells(kept + char) >= room:
            break
        kept += char
    return f"{kept}…"


def _cells(text: str) -> int:
    """Return how many cells of a terminal a text takes: a wide character two, a combining one none."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def facts(pairs: Sequence[tuple[str, object]]) -> str:
    """Return `name  value` lines, aligned."""
    width = max(len(name) for name, _ in pairs)
    return "\n".join(f"{name.ljust(width)}  {printable(value)}".rstrip() for name, value in pairs)


def paint(word: str) -> str:
    """Return a state's word in its colour, on a terminal."""
    return _paint(word, is_coloured())


def since(unix: float | None) -> str:
    """Return how long ago a Unix time was; "-" for None."""
    return "-" if unix is None else format_duration(time.time() - unix)


def clock(unix: float) -> str:
    """Return a Unix time as the local time of day, with milliseconds."""
    parts = time.localtime(unix)
    return f"{time.strftime('%H:%M:%S', parts)}.{int(unix * 1000) % 1000:03d}"


def size(count: float) -> str:
    """Return a number of bytes with a unit: `812 B`, `3.4 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            break
        count /= 1024
    return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"


def print_json(data: object, *, is_line: bool = False) -> None:
    """Print `data` for programs: indented, or on one line."""
    print(json.dumps(data, indent=None if is_line else 2), flush=is_line)


def _paint(word: str, coloured: bool) -> str:
    code = _COLOURS.get(word.partition(" (")[0].strip())  # "dead (silent)" is dead
    return f"\x1b[{code}m{word}\x1b[0m" if coloured and code else word
