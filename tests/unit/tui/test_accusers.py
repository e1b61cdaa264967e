"""Who accuses whom, on the screen: in a suspect's row, and on its page."""

from __future__ import annotations

from datetime import UTC

import pytest

from mesh.tui.board import Board
from mesh.tui.painter import Painter
from mesh.tui.screen import Screen
from tests.unit.tui.boards import AT, board_of, event_json, member_json, page, text_of

ID = f"{3:016x}"
EVIDENCE = ["suspected by n2", "its lifeline ended, as n2 saw"]

ROWS_80 = """\
│ NAME         STATE        FOR ADDRESS           RTT SLOTS    LOAD            │
│ n3 ▲ busiest ◐ suspect   2.0s suspected by n2 (+2): its lifeline ended, as … │
│ n1 (me)      ● alive    1m00s 127.0.0.1:7946      - ▮▯▯▯ 1/4 ▮▮▯▯▯▯▯▯   20%  │
"""
ROWS_200 = """\
│ NAME          STATE         FOR  ADDRESS            RTT  SLOTS     LOAD            CLASS      POOL     NODE ID           VERSION  LABELS                                                             │
│ n3 ▲ busiest  ◐ suspect    2.0s  suspected by n2 (+2): its lifeline ended, as n2 saw                                                                                                                 │
│ n1 (me)       ● alive     1m00s  127.0.0.1:7946       -  ▮▯▯▯ 1/4  ▮▮▯▯▯▯▯▯   20%  general    default  0000000000000001  0.1.0    zone=eu                                                            │
"""


def board_with_a_suspect(*accusers: str, evidence: list[str] = EVIDENCE) -> Board:
    suspect = member_json(3, state="suspect", since=AT - 2, suspected_by=list(accusers))
    board = board_of([member_json(1), member_json(2), suspect])
    event = event_json("suspect", "n3", 2, evidence=evidence, accuser=accusers[0], member_id=ID)
    board.fold({"event": event})
    return board


def row(board: Board, width: int, height: int) -> str:
    return next(
        line for line in text_of(board, width, height) if "◐ suspect  " in line and "n3" in line
    )


@pytest.mark.parametrize(
    ("accusers", "words"),
    [
        (("n2",), "suspected by n2: its lifeline ended"),
        (("n2", "n1"), "suspected by n2 (+1): its lifeline ended"),
        (("n2", "n1", "n4"), "suspected by n2 (+2): its lifeline ended"),
    ],
)
def test_a_suspects_row_says_by_whom_and_how_many_more(
    accusers: tuple[str, ...], words: str
) -> None:
    assert words in row(board_with_a_suspect(*accusers), 80, 24)
    assert f"{words}, as n2 saw" in row(board_with_a_suspect(*accusers), 200, 60)


def test_a_suspect_of_whom_nothing_else_is_known_says_by_whom() -> None:
    line = row(board_with_a_suspect("n2", evidence=["suspected by n2"]), 80, 24)
    assert "suspected by n2  " in line


def test_a_node_that_does_not_tell_who_accuses_is_shown_as_before() -> None:
    board = board_of([member_json(1), member_json(3, state="suspect", since=AT - 2)])
    assert "does not answer" in row(board, 80, 24)


def test_a_suspects_page_names_all_accusers_and_the_evidence() -> None:
    why = page(board_with_a_suspect("n2", "n1", "n4"), "enter").partition("WHY")[2]
    why = why.partition("WHAT IT IS")[0]
    assert "· accused by n2, n1, n4" in why
    assert "· its lifeline ended, as n2 saw" in why
    assert "suspected by n2" not in why  # it is said once


def test_a_dead_members_page_names_those_who_accused_it() -> None:
    board = board_of([member_json(3, state="dead", cause="crashed", since=AT - 20)])
    changes = {"accuser": "n2", "confirmed_by": ["n4"], "member_id": ID, "cause": "crashed"}
    board.fold({"event": event_json("dead", "n3", 20, evidence=[EVIDENCE[1]], **changes)})
    assert "· accused by n2, n4" in page(board, "enter")


def test_accusers_that_the_evidence_names_are_not_named_twice() -> None:
    board = board_of([member_json(3, state="dead", cause="silent", since=AT - 20)])
    evidence = ["no refutation within 1.0 s", "accused by n2, n4"]
    changes = {"accuser": "n2", "confirmed_by": ["n4"], "member_id": ID, "cause": "silent"}
    board.fold({"event": event_json("dead", "n3", 20, evidence=evidence, **changes)})
    why = page(board, "enter").partition("WHY")[2].partition("WHAT IT IS")[0]
    assert why.count("accused by n2, n4") == 1


@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 60)])
def test_without_colour_the_words_are_all_there(width: int, height: int) -> None:
    lines = Screen(board_with_a_suspect("n2", "n1"), width, height, zone=UTC).render()
    frame = Painter("ascii", is_colorful=False).paint(lines).decode("ascii")
    assert "suspected by n2 (+1)" in frame


def test_an_accusers_name_never_reaches_the_terminal_as_it_is() -> None:
    evil = "\x1b]0;owned\x07"
    board = board_with_a_suspect(evil, evil, evidence=[evil])
    board.fold({"event": event_json("dead", "n3", 1, accuser=evil, confirmed_by=[evil, 7])})
    assert all(line.isprintable() for line in text_of(board, 200, 60))


@pytest.mark.parametrize(
    ("width", "height", "first", "rows"), [(80, 24, 4, ROWS_80), (200, 60, 7, ROWS_200)]
)
def test_the_list_with_a_suspect_looks_like_this(
    width: int, height: int, first: int, rows: str
) -> None:
    lines = text_of(board_with_a_suspect("n2", "n1", "n4"), width, height)
    assert [line.rstrip() for line in lines[first : first + 3]] == rows.splitlines()
