"""What of an output is new when it is told a second time."""

from __future__ import annotations

import pytest

from mesh.cli import shown
from mesh.cli.shown import Shown

OUT, ERR = 1, 2


def told(shown_: Shown, *pieces: bytes, stream: int = OUT) -> bytes:
    return b"".join(shown_.rest(stream, piece) for piece in pieces)


def test_first_telling_is_written_whole() -> None:
    one = Shown()
    assert told(one, b"a\n", b"b\n") == b"a\nb\n"
    assert (one.total, one.is_repeating) == (4, False)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_equal_telling_is_written_from_where_it_broke_off_however_it_is_cut(size: int) -> None:
    one = Shown()
    told(one, b"one\ntwo\nthr")
    one.begin_again()
    data = b"one\ntwo\nthree\nfour\n"
    again = told(one, *(data[at : at + size] for at in range(0, len(data), size)))
    assert again == b"ee\nfour\n"
    assert (one.total, one.is_repeating) == (len(data), False)


def test_streams_are_told_apart() -> None:
    one = Shown()
    told(one, b"out")
    told(one, b"err", stream=ERR)
    one.begin_again()
    assert told(one, b"error", stream=ERR) == b"or"
    assert told(one, b"output") == b"put"


def test_telling_that_differs_is_written_from_the_line_that_differs() -> None:
    one = Shown()
    told(one, b"same\nat 12:00\nmore\n")
    one.begin_again()
    assert told(one, b"same\nat 1", b"3:00\nmore\n") == b"at 13:00\nmore\n"
    assert one.is_repeating


def test_telling_that_begins_in_the_middle_is_written_whole() -> None:
    one = Shown()
    told(one, b"one\ntwo\n")
    one.begin_again()
    assert told(one, b"two\nthree\n") == b"two\nthree\n"
    assert one.is_repeating


def test_third_telling_is_compared_with_what_was_written_last() -> None:
    one = Shown()
    told(one, b"a\nx\n")
    one.begin_again()
    told(one, b"a\ny\n")
    one.begin_again()
    assert told(one, b"a\ny\nz\n") == b"z\n"


def test_more_than_is_remembered_is_written_again_and_that_is_known_beforehand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shown, "REMEMBERED_BYTES_MAX", 8)
    one = Shown()
    told(one, b"123456789")
    one.begin_again()
    assert one.is_repeating
    assert told(one, b"123456789") == b"123456789"
