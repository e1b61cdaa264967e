"""Bytes that turned on disk: at whatever place, no vote rests on them."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mesh.runtime.store.connection import DATABASE, LOG
from mesh.runtime.store.faults import StoreDamagedError
from mesh.runtime.store.tail import PAGE_BYTES
from tests.runtime.store.told import Shop, accept

_FRAME_BYTES = 24 + PAGE_BYTES


def flip(file: Path, place: int, count: int = 1) -> None:
    """Turn some bytes of a file."""
    with file.open("r+b") as opened:
        opened.seek(place)
        turned = bytes(byte ^ 0xFF for byte in opened.read(count))
        opened.seek(place)
        opened.write(turned)


def filled(shop: Shop, commits: int = 50) -> None:
    """Write some commits and close."""
    shop.open()
    for n in range(1, commits + 1):
        assert shop.write(*(accept(b"%d/%d" % (n, m), n, value=bytes(300)) for m in range(10))).error is None  # fmt: skip
    shop.close()


@pytest.mark.parametrize("page", range(2, 40, 6))
def test_a_page_that_is_gone_is_found_out(shop: Shop, page: int) -> None:
    filled(shop)
    flip(shop.path / DATABASE, (page - 1) * PAGE_BYTES, PAGE_BYTES)
    with pytest.raises(StoreDamagedError, match=r"is damaged: .*move the data directory away"):
        list(shop.open().read_all())


def test_a_file_that_is_no_database_is_found_out(shop: Shop) -> None:
    filled(shop)
    flip(shop.path / DATABASE, 0, 100)
    with pytest.raises(StoreDamagedError, match="is damaged"):
        shop.open()


def test_names_of_tables_that_are_no_text_are_found_out(shop: Shop) -> None:
    filled(shop, commits=1)
    name = (shop.path / DATABASE).read_bytes().index(b"TABLE registers (key BLOB")
    flip(shop.path / DATABASE, name + 1)
    with pytest.raises(StoreDamagedError, match="is damaged"):
        shop.open()


def test_a_file_that_was_cut_off_is_found_out(shop: Shop) -> None:
    filled(shop)
    data = (shop.path / DATABASE).read_bytes()
    (shop.path / DATABASE).write_bytes(data[: len(data) // 2])
    with pytest.raises(StoreDamagedError, match="is damaged"):
        shop.open()


def test_one_byte_that_turned_anywhere_in_a_record_is_found_out(shop: Shop) -> None:
    shop.open()
    key, value = b"the key of the record", b"its value, which is long enough"
    shop.write(accept(key, 0x7A7B7C, seq=0x6D6E, value=value))
    shop.close()
    whole = (shop.path / DATABASE).read_bytes()
    start = whole.index(value) - 8 - 8 - 2 - len(key)
    end = whole.index(value) + len(value) + 4
    columns = whole[start - 8 : end]
    assert b"\x7a\x7b\x7c" in columns
    assert b"\x6d\x6e" in columns
    for place in range(start, end):
        (shop.path / DATABASE).write_bytes(whole)
        flip(shop.path / DATABASE, place)
        with pytest.raises(StoreDamagedError):
            list(shop.open().read_all())
        shop.close()


def test_a_key_that_turned_in_the_index_alone_is_found_out(shop: Shop) -> None:
    filled(shop)
    whole = (shop.path / DATABASE).read_bytes()
    places = [found.start() for found in re.finditer(b"25/5", whole)]
    assert len(places) == 2  # its row and the index: by a wrong index a key would get a second row
    for place in places:
        (shop.path / DATABASE).write_bytes(whole)
        flip(shop.path / DATABASE, place + 3)
        with pytest.raises(StoreDamagedError, match="missing from index"):
            shop.open()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE registers SET promised = NULL WHERE key = x'31'",
        "UPDATE registers SET value = 'text' WHERE key = x'31'",
        "UPDATE registers SET seq = 2 WHERE key = x'31'",
        "UPDATE registers SET key = x'32' WHERE key = x'31'",
        "UPDATE numbers SET value = 1",
        "UPDATE numbers SET name = 'm'",
        "UPDATE store SET position = 5",
        "UPDATE store SET identity = zeroblob(16)",
        "UPDATE store SET ballot_bytes = 9",
        "DELETE FROM store",
    ],
)
def test_what_another_program_changed_is_found_out(shop: Shop, statement: str) -> None:
    shop.open()
    shop.write(accept(b"1", 5), numbers={"n": 2})
    shop.close()
    with closing(sqlite3.connect(shop.path / DATABASE, isolation_level=None)) as found:
        assert found.execute(statement).rowcount == 1
    with pytest.raises(StoreDamagedError):
        list(shop.open().read_all())


def crashed_copy(shop: Shop, tmp_path: Path, commits: int) -> Shop:
    """Return a copy of a store that is open, with its log, as a crash would leave it."""
    shop.open()
    for n in range(1, commits + 1):
        shop.write(accept(b"k%d" % n, n))
    other = Shop(tmp_path / "copy")
    other.path.mkdir()
    for name in (DATABASE, LOG):
        (other.path / name).write_bytes((shop.path / name).read_bytes())
    return other


@pytest.mark.parametrize(
    "place",
    [0, 17, 32 + 3 * _FRAME_BYTES + 9, 32 + 3 * _FRAME_BYTES + 20, 32 + 5 * _FRAME_BYTES + 3000],
    ids=["header", "round", "frame's round", "frame's checksum", "page"],
)
def test_a_log_that_rotted_in_the_middle_is_found_out(
    shop: Shop, tmp_path: Path, place: int
) -> None:
    with crashed_copy(shop, tmp_path, 12) as copy:
        flip(copy.path / LOG, place)
        with pytest.raises(StoreDamagedError, match=r"broken off before \d+ of its commits"):
            copy.open()


def test_a_commit_that_was_torn_by_the_crash_is_gone_and_nothing_else(
    shop: Shop, tmp_path: Path
) -> None:
    with crashed_copy(shop, tmp_path, 12) as copy:
        log = (copy.path / LOG).read_bytes()
        (copy.path / LOG).write_bytes(log[:-100])
        assert len(copy.kept()) == 11
        assert copy.open().position == 11


def test_a_whole_log_is_read_to_its_end(shop: Shop, tmp_path: Path) -> None:
    with crashed_copy(shop, tmp_path, 12) as copy:
        assert len(copy.kept()) == 12


def test_a_log_of_an_earlier_round_is_no_lost_commit(shop: Shop, tmp_path: Path) -> None:
    store = shop.open()
    for n in range(1, 41):
        shop.write(accept(b"k%d" % n, n))
    store._writer._log_pages = (
        1 << 40
    )  # the log is copied back after the next commit, and begun anew
    shop.write(accept(b"k", 1))
    shop.write(accept(b"k", 2))
    with Shop(tmp_path / "copy") as copy:
        copy.path.mkdir()
        for name in (DATABASE, LOG):
            (copy.path / name).write_bytes((shop.path / name).read_bytes())
        assert len((copy.path / LOG).read_bytes()) > 40 * _FRAME_BYTES
        assert len(copy.kept()) == 41
