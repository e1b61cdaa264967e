"""Versions of the store: each step is done whole or not at all, and what is not ours is left alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mesh.runtime.store.faults import StoreMismatchError
from mesh.runtime.store.schema import APPLICATION_ID, MIGRATIONS, migrate, version_of
from tests.runtime.store.told import Shop, promise


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "planted.db"


@pytest.fixture
def connection(file: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(file, isolation_level=None)) as found:
        yield found


def _add_a_column(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE registers ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'")


def _fail_half_way(connection: sqlite3.Connection) -> None:
    connection.execute("DROP TABLE numbers")
    connection.execute("DROP TABLE nowhere")


def test_an_empty_file_becomes_the_latest_version(
    connection: sqlite3.Connection, file: Path
) -> None:
    assert version_of(connection, file) == 0
    assert migrate(connection, file) == 0
    assert version_of(connection, file) == len(MIGRATIONS) == 1
    assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    assert migrate(connection, file) == 1  # nothing is left to do


def test_an_older_version_is_brought_up_to_date_with_what_it_holds(
    connection: sqlite3.Connection, file: Path
) -> None:
    migrate(connection, file)
    connection.execute("INSERT INTO registers VALUES (x'aa', NULL, NULL, 0, NULL, 1)")
    assert migrate(connection, file, (*MIGRATIONS, _add_a_column)) == 1
    assert version_of(connection, file, 2) == 2
    assert connection.execute("SELECT key, colour FROM registers").fetchall() == [(b"\xaa", "red")]


def test_a_step_that_fails_leaves_the_version_before_it(
    connection: sqlite3.Connection, file: Path
) -> None:
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, file, (*MIGRATIONS, _add_a_column, _fail_half_way))
    assert version_of(connection, file, 3) == 2
    assert connection.execute("SELECT count(*) FROM numbers").fetchone() == (0,)
    assert not connection.in_transaction


def test_a_newer_version_is_refused_and_left_as_it_was(
    connection: sqlite3.Connection, file: Path
) -> None:
    migrate(connection, file, (*MIGRATIONS, _add_a_column))
    before = file.read_bytes()
    with pytest.raises(StoreMismatchError, match="has version 2, written by a newer Mesh"):
        migrate(connection, file)
    assert file.read_bytes() == before


def test_a_database_of_something_else_is_refused_and_left_as_it_was(
    connection: sqlite3.Connection, file: Path
) -> None:
    connection.execute("CREATE TABLE recipes (name)")
    before = file.read_bytes()
    with pytest.raises(StoreMismatchError, match="is no store of Mesh"):
        migrate(connection, file)
    assert file.read_bytes() == before


def test_a_store_refuses_a_newer_one(shop: Shop) -> None:
    shop.open()
    shop.write(promise(b"a", 1))
    shop.close()
    with closing(sqlite3.connect(shop.path / "registers.db")) as found:
        found.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreMismatchError, match="has version 99"):
        shop.open()


def test_a_start_that_died_before_the_store_had_an_identity_is_made_good(shop: Shop) -> None:
    shop.path.mkdir()
    with closing(sqlite3.connect(shop.path / "registers.db", isolation_level=None)) as found:
        migrate(found, shop.path)
    assert shop.open().position == 0
    assert shop.write(promise(b"a", 1)).error is None
