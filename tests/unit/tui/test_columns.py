"""Columns give way in their order, and grow in theirs."""

from __future__ import annotations

from dataclasses import replace

from rich.segment import Segment

from mesh.tui.cells import Line, line_width
from mesh.tui.columns import Column, lay_out


def column(title: str, least: int, most: int = 0, rank: int = 0) -> Column[str]:
    def cell(row: str, _width: int) -> Line:
        return [Segment(row)]

    return Column(
        title=title, cell=cell, text=lambda row: row, width_min=least, width_max=most, rank=rank
    )


COLUMNS = [column("A", 4, 10), column("B", 4, rank=2), column("C", 4, rank=1), column("D", 4)]


def titles(width: int) -> list[str]:
    return [shown.title for shown, _ in lay_out(COLUMNS, ["x"], width).columns]


def test_columns_of_high_rank_leave_first() -> None:
    assert titles(19) == ["A", "B", "C", "D"]
    assert titles(18) == ["A", "C", "D"]
    assert titles(13) == ["A", "D"]
    assert titles(3) == ["A", "D"]


def test_extra_column_is_shown_only_where_no_other_is_cut_for_it() -> None:
    columns = [column("A", 4, 10), replace(column("B", 4, rank=1), is_extra=True)]
    for width, shown in ((15, ["A", "B"]), (14, ["A"])):
        layout = lay_out(columns, ["x" * 10], width)
        assert [found.title for found, _ in layout.columns] == shown
    assert [found.title for found, _ in lay_out(columns, ["x"], 9).columns] == ["A", "B"]


def test_column_that_grows_first_takes_the_room_of_those_before_it() -> None:
    columns = [column("A", 4, 10), replace(column("B", 4, 10), grows_first=True)]
    assert [width for _, width in lay_out(columns, ["x" * 10], 16).columns] == [5, 10]


def test_column_grows_to_its_longest_text_and_not_beyond_its_bound() -> None:
    assert {c.title: w for c, w in lay_out(COLUMNS, ["sevench"], 100).columns}["A"] == 7
    assert {c.title: w for c, w in lay_out(COLUMNS, ["x" * 50], 100).columns}["A"] == 10


def test_rows_have_the_width_asked_for_however_narrow() -> None:
    for width in range(40):
        layout = lay_out(COLUMNS, ["x" * 50], width)
        assert line_width(layout.row("x" * 50)) == width
        assert line_width(layout.titles()) == width
