"""Keys: names come out, in whatever pieces the bytes arrive."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.tui.keys import Keys

ARROWS = {b"\x1b[A": "up", b"\x1bOB": "down", b"\x1b[5~": "page_up", b"\x1b[6~": "page_down"}


@pytest.mark.parametrize(("data", "key"), ARROWS.items())
def test_sequence_split_anywhere_is_one_key(data: bytes, key: str) -> None:
    for cut in range(1, len(data)):
        keys = Keys()
        assert keys.feed(data[:cut]) == []
        assert keys.is_waiting
        assert keys.feed(data[cut:]) == [key]
        assert not keys.is_waiting


def test_keys_of_one_read_come_in_order() -> None:
    assert Keys().feed(b"j\x1b[Bq\t\x1b[Z\x03 ") == [
        "j",
        "down",
        "q",
        "tab",
        "back_tab",
        "ctrl_c",
        " ",
    ]


def test_lone_escape_is_a_key_once_nothing_follows() -> None:
    keys = Keys()
    assert keys.feed(b"\x1b") == []
    assert keys.flush() == ["escape"]
    assert keys.feed(b"q") == ["q"]


def test_unknown_sequence_is_swallowed_whole() -> None:
    assert Keys().feed(b"\x1b[1;5qq") == ["q"]
    assert Keys().feed(b"\x1b[<0;12;7Mj") == ["j"]
    assert Keys().feed(b"\x1bqj") == ["j"]  # Alt-q quits nothing


def test_unfinished_sequence_is_given_up_without_leaking_letters() -> None:
    keys = Keys()
    assert keys.feed(b"\x1b[") == []
    assert keys.flush() == []
    assert keys.feed(b"j") == ["j"]


def test_character_split_over_reads_is_one_key() -> None:
    keys = Keys()
    assert keys.feed("ö".encode()[:1]) == []
    assert keys.feed("ö".encode()[1:]) == ["ö"]


@given(st.lists(st.binary(max_size=60)))
def test_any_bytes_give_printable_keys_and_hold_little(pieces: list[bytes]) -> None:
    keys = Keys()
    for piece in pieces:
        assert all(key.isprintable() and key for key in keys.feed(piece))
    keys.feed(b"\x1b[" + b"1" * 1000)
    keys.flush()
    assert not keys.is_waiting
