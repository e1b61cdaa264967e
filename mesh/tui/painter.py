"""Lines become the bytes that a terminal draws, and only for those lines that changed.

The last defence stands here: whatever text comes this far, no control character leaves in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rich.color import ColorSystem
from rich.segment import Segment

from mesh.tui.cells import Line, clean
from mesh.tui.palette import ASCII

_BEGIN: Final = "\x1b[?2026h"  # terminals that know it show the frame in one piece
_END: Final = "\x1b[?2026l"


class Painter:
    """Remembers what stands on the terminal, and writes the difference.

    Args:
        encoding: the terminal's; one that is not UTF-8 gets our signs as ASCII.
        is_colorful: False leaves bold, dim and the words, and drops all colours.
    """

    def __init__(self, encoding: str, *, is_colorful: bool) -> None:
        self._encoding = encoding
        self._is_unicode = encoding.lower().replace("-", "").replace("_", "") == "utf8"
        self._is_colorful = is_colorful
        self._shown: list[str] = []
        self._lines: list[Line] = []

    def forget(self) -> None:
        """Take nothing for granted any more: the next frame is written whole, on a cleared screen."""
        self._shown = []
        self._lines = []

    def paint(self, lines: Iterable[Line]) -> bytes:
        """Return what turns the frame on the terminal into `lines`; nothing when they are equal."""
        drawn = list(lines)
        known = [*self._lines, *[None] * len(drawn)]
        rows = [
            self._shown[number] if line == known[number] else self._row(line)
            for number, line in enumerate(drawn)
        ]
        self._lines = drawn
        is_new = len(rows) != len(self._shown)
        changes = [
            f"\x1b[{number};1H\x1b[2K{row}"
            for number, row in enumerate(rows, start=1)
            if is_new or row != self._shown[number - 1]
        ]
        self._shown = rows
        if not changes:
            return b""
        clear = "\x1b[0m\x1b[2J" if is_new else ""
        return "".join((_BEGIN, clear, *changes, _END)).encode(self._encoding, "replace")

    def _row(self, line: Line) -> str:
        pieces = line if self._is_colorful else Segment.remove_color(line)
        return "".join(self._piece(piece) for piece in pieces)

    def _piece(self, piece: Segment) -> str:
        text = piece.text if piece.text.isprintable() else clean(piece.text, len(piece.text))
        if not self._is_unicode:
            text = text.translate(ASCII)
        return piece.style.render(text, color_system=ColorSystem.STANDARD) if piece.style else text
