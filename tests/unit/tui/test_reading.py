"""The node's JSON read with care: what is missing, odd or long."""

from __future__ import annotations

import pytest

from mesh.tui.reading import command_text, number, prose, texts, whole


@pytest.mark.parametrize("value", [None, True, "1", [1], float("nan"), float("inf"), 1 << 64])
def test_what_is_no_number_that_can_be_shown_is_none(value: object) -> None:
    assert number({"n": value}, "n") is None
    assert whole({"n": value}, "n") is None


def test_unix_time_in_nanoseconds_is_a_number() -> None:
    assert number({"at_ns": 1_800_000_000 * 10**9}, "at_ns") == 1.8e18


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["gzip", "-9", "a file"], "gzip -9 'a file'"),
        (["true", ""], "true ''"),
        (["x", 3], "x '?'"),
        (["echo", "it's"], """echo 'it'"'"'s'"""),
        (["échò"], "échò"),
        (["w"] * 12, " ".join("w" * 12)),
        (["w"] * 13, " ".join("w" * 12) + " …"),
        ("no list", ""),
    ],
)
def test_command_reads_as_it_would_be_typed(argv: object, text: str) -> None:
    assert command_text(argv) == text


def test_texts_and_prose_are_cleaned_and_bounded() -> None:
    assert texts(["a\x07", 3, "b", "c"], 3) == ("a\\x07", "b")
    assert prose({"tail": "one\ntwo\tx\nthree"}, "tail", 2) == ("two x", "three")
