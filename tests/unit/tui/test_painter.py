"""What is written to the terminal: only what changed, and nothing that a terminal would obey."""

from __future__ import annotations

import re
from datetime import UTC

from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment
from rich.style import Style

from mesh.tui.board import Board
from mesh.tui.painter import Painter
from mesh.tui.screen import Screen
from tests.unit.tui.boards import board_of, event_json, member_json, small_board, task_json

OURS = re.compile(r"\x1b\[(\d+;1H|2K|2J|\?2026[hl]|[\d;]*m)")


def paint(painter: Painter, board: Board) -> str:
    return painter.paint(Screen(board, 80, 24, zone=UTC).render()).decode("utf-8")


def test_first_frame_clears_and_writes_every_line() -> None:
    frame = paint(Painter("utf-8", is_colorful=True), small_board())
    assert "\x1b[2J" in frame
    assert re.findall(r"\x1b\[(\d+);1H", frame) == [str(row) for row in range(1, 25)]
    assert "\n" not in frame


def test_unchanged_frame_writes_nothing() -> None:
    painter = Painter("utf-8", is_colorful=True)
    paint(painter, small_board())
    assert paint(painter, small_board()) == ""


def test_only_changed_lines_are_written() -> None:
    painter = Painter("utf-8", is_colorful=True)
    board = small_board()
    paint(painter, board)
    board.mark_gone("")
    board.fold({"event": event_json("leave", "n2", 1)})
    frame = paint(painter, board)
    # The events move down by one and are one more: their pane changes, nothing else does.
    assert re.findall(r"\x1b\[(\d+);1H", frame) == ["17", "18", "19", "20", "21", "22"]
    assert "2J" not in frame


def test_new_size_is_written_whole() -> None:
    painter = Painter("utf-8", is_colorful=True)
    paint(painter, small_board())
    frame = painter.paint(Screen(small_board(), 100, 30, zone=UTC).render()).decode("utf-8")
    assert "\x1b[2J" in frame


def test_without_colours_bold_and_words_remain() -> None:
    frame = paint(Painter("utf-8", is_colorful=False), small_board())
    codes = {code for match in re.findall(r"\x1b\[([\d;]*)m", frame) for code in match.split(";")}
    assert codes <= {"", "0", "1", "2"}
    assert "1" in codes
    assert "✗ dead" in frame


def test_terminal_that_is_not_utf8_gets_plain_signs_of_equal_width() -> None:
    painter = Painter("ascii", is_colorful=False)
    frame = painter.paint(Screen(small_board(), 80, 24, zone=UTC).render()).decode("ascii")
    plain = OURS.sub("", frame)
    assert len(plain) == 80 * 24
    assert "x dead silent" in plain
    assert "?" not in plain.replace("? 0 suspect", "").replace("? n1 suspects", "").replace(
        "? help", ""
    )


@given(st.text(min_size=1, max_size=40))
def test_control_characters_from_the_mesh_never_reach_the_terminal(evil: str) -> None:
    evil = f"\x1b]0;owned\x07\x9b2J{evil}\r\n"
    member = member_json(2, name=evil, address=evil, cause=evil, labels={evil: evil}, pool=evil)
    board = board_of([member], tasks=[task_json(evil, evil, argv=[evil], owner=evil)])
    board.fold({"event": event_json(evil, evil, 1, observer=evil, detail=evil, cause=evil)})
    board.mark_gone("")
    frame = painter_frame(board)
    assert OURS.sub("", frame).isprintable()
    assert "\\x1b]0;owned\\x07" in frame


def painter_frame(board: Board) -> str:
    lines = Screen(board, 200, 60, zone=UTC).render()
    return Painter("utf-8", is_colorful=True).paint(lines).decode("utf-8")


def test_painter_itself_lets_no_control_character_through() -> None:
    line = [Segment("a\x1b[2Jb", Style(bold=True)), Segment("\x07")]
    frame = Painter("utf-8", is_colorful=True).paint([line]).decode("utf-8")
    assert OURS.sub("", frame) == "a\\x1b[2Jb\\x07"
