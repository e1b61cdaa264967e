"""How stories are told: titles, times of day with their date where it is needed, and lines that fit."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import Final

from mesh.cli.text import clock, is_coloured, printable
from mesh.core.time import format_duration

_DAY_S: Final = 86_400.0
_WIDTH: Final = 80
_TITLE: Final = "\x00"


def title(text: str) -> str:
    """Return a line that `page` shows as a title."""
    return f"{_TITLE}{text}"


def page(lines: Iterable[str]) -> str:
    """Return lines as they are printed: titles are bold on a terminal, other hosts' words cannot move the cursor."""
    return "\n".join(map(_shown, lines))


def day_clock(now: float, at: float) -> str:
    """Return a time of day; with its date when it is more than a day away."""
    date = time.strftime("%Y-%m-%d ", time.localtime(at)) if abs(now - at) > _DAY_S else ""
    return date + clock(at)


def when(now: float, at: float) -> str:
    """Return when something happened: the time of day, and how long ago that is."""
    return f"{day_clock(now, at)}  {format_duration(now - at):>6} ago"


def paragraphs(texts: Sequence[str]) -> list[str]:
    """Return each text folded under a hanging indent."""
    return [
        line
        for text in texts
        for line in wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="    ")
    ]


def happening(at: str, words: str, evidence: Sequence[str]) -> list[str]:
    """Return the lines of one thing that happened; what it is told by stands below it."""
    lines = [f"  {at}  {words}"]
    blank = " " * (len(at) + 4)
    for piece in evidence:
        begin, rest = f"{blank}· ", f"{blank}  "
        lines += wrap(piece, _WIDTH, initial_indent=begin, subsequent_indent=rest)
    return lines


def _shown(line: str) -> str:
    text = printable(line.removeprefix(_TITLE))
    return f"\x1b[1m{text}\x1b[0m" if line.startswith(_TITLE) and is_coloured() else text
