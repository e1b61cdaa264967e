"""A picture of the real screen: `python -m mesh.tui.export --data DIR --size 100x30 --out FILE.svg`.

It connects as `mesh top` does, takes what the node tells within a few seconds, and draws the same
panes into an SVG file that needs no font from anywhere.
"""

from __future__ import annotations

import argparse
import io
import re
import select
import sys
import time
from datetime import tzinfo
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from mesh.errors import CommandRefused, MeshUnreachable
from mesh.tui.board import Board
from mesh.tui.feed import Feed
from mesh.tui.screen import HEIGHT_MIN, WIDTH_MIN, Screen

_THEME: Final = TerminalTheme(
    (22, 24, 29),
    (214, 218, 226),
    [
        (22, 24, 29),
        (232, 95, 101),
        (120, 200, 120),
        (229, 192, 94),
        (97, 150, 235),
        (190, 130, 230),
        (86, 190, 205),
        (214, 218, 226),
    ],
)
_FONT_FACE: Final = re.compile(r"@font-face\s*\{[^}]*\}\s*")
_FONTS: Final = "ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace"


def export_svg(
    board: Board, width: int, height: int, path: Path, *, zone: tzinfo | None = None
) -> None:
    """Write the screen of `board` at `width` by `height` cells to `path` as an SVG picture."""
    console = Console(
        record=True,
        width=width,
        height=height,
        file=io.StringIO(),
        force_terminal=True,
        color_system="standard",
        legacy_windows=False,
        _environ={},
    )
    console.print(Screen(board, width, height, zone=zone), end="")
    svg = console.export_svg(title="mesh top", theme=_THEME, unique_id="mesh")
    svg = _FONT_FACE.sub("", svg).replace("Fira Code", _FONTS)
    # Not every program that draws SVG takes the blanks at the ends of a text for more than layout.
    svg = svg.replace("<svg ", '<svg xml:space="preserve" ', 1)
    path.write_text(svg, encoding="utf-8")


def watch(data_dir: Path, seconds: float) -> Board:
    """Return what the node in `data_dir` tells within `seconds`.

    Raises:
        MeshUnreachable: no node answers, or it went away.
        CommandRefused: it does not give the stream.
    """
    board = Board()
    feed = Feed(data_dir)
    feed.connect()
    try:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and feed.fd is not None:
            readable, _, _ = select.select([feed.fd], [], [], left)
            for item in feed.take() if readable else []:
                board.fold(item)
    finally:
        feed.close()
    return board


def _size(text: str) -> tuple[int, int]:
    width, cross, height = text.partition("x")
    if not (cross and width.isdecimal() and height.isdecimal()):
        raise argparse.ArgumentTypeError(f"a size is expected as WIDTHxHEIGHT, found {text!r}")
    size = int(width), int(height)
    if not (WIDTH_MIN <= size[0] <= 500 and HEIGHT_MIN <= size[1] <= 200):
        raise argparse.ArgumentTypeError(
            f"a size from {WIDTH_MIN}x{HEIGHT_MIN} to 500x200 is expected, found {text!r}"
        )
    return size


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m mesh.tui.export", description="Draw the screen of a running node as SVG."
    )
    parser.add_argument("--data", type=Path, required=True, help="the node's data directory")
    parser.add_argument("--size", type=_size, default=(100, 30), help="cells, as 100x30")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    parser.add_argument("--wait", type=float, default=2.0, help="seconds to watch first")
    options = parser.parse_args(arguments)
    try:
        board = watch(options.data, options.wait)
    except (MeshUnreachable, CommandRefused) as error:
        sys.stderr.write(f"export: {error}\n")
        return 3 if isinstance(error, MeshUnreachable) else 1
    width, height = options.size
    export_svg(board, width, height, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
