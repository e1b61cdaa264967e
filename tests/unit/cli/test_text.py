"""Plain text for people: tables, colours, sizes, nothing that moves a cursor."""

from __future__ import annotations

import sys

import pytest

from mesh.cli import text


def test_table_is_aligned_and_has_no_trailing_blanks() -> None:
    assert text.table(("A", "LONG"), [("one", 1), ("x", "")]) == "A    LONG\none  1\nx"


def test_columns_behind_wide_and_combining_characters_are_aligned() -> None:
    rows = [("東京", "x"), ("e\u0301", "x"), ("abcd", "x")]
    assert text.table(("A", "B"), rows).splitlines()[1:] == [
        "東京  x",
        "e\u0301     x",
        "abcd  x",
    ]


def test_on_a_terminal_the_last_column_is_cut_to_its_width(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("one", "x" * 40), ("two", "東京" * 10), ("three", "short")]
    assert "x" * 40 in text.table(("A", "COMMAND"), rows)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "20")
    assert text.table(("A", "COMMAND"), rows).splitlines()[1:] == [
        "one    " + "x" * 12 + "…",
        "two    東京東京東京…",
        "three  short",
    ]
    monkeypatch.setenv("COLUMNS", "12")
    assert "x" * 40 in text.table(("A", "COMMAND"), rows)


def test_names_from_elsewhere_cannot_move_the_cursor() -> None:
    assert text.printable("a\x1b[2Jb\nc\u202e") == "a?[2Jb?c?"
    assert "\x1b" not in text.table(("NAME",), [("\x1b]0;owned\x07",)])


def test_colour_is_for_terminals_whose_owner_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert text.paint("dead") == "dead"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert text.paint("dead") == "\x1b[31mdead\x1b[0m"
    assert text.table(("STATE",), [("alive",)]).endswith("\x1b[32malive\x1b[0m")
    monkeypatch.setenv("NO_COLOR", "1")
    assert text.paint("dead") == "dead"
    monkeypatch.setenv("NO_COLOR", "")
    assert text.paint("dead") == "\x1b[31mdead\x1b[0m"


def test_sizes_have_a_unit() -> None:
    assert [text.size(n) for n in (0, 812, 2048, 3.5 * 2**20, 2**42)] == [
        "0 B", "812 B", "2.0 KiB", "3.5 MiB", "4096.0 GiB",
    ]  # fmt: skip
