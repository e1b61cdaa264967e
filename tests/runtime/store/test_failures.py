"""What ends a store while it runs: nothing that failed is reported, and nothing more is taken."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import TypeAlias

import pytest

from mesh.core.stored import StoredRecord
from mesh.errors import MeshError
from mesh.runtime.store.connection import DATABASE, LOG, reading
from mesh.runtime.store.faults import (
    StoreDamagedError,
    StoreDiskError,
    StoreError,
    StoreFailedError,
    StoreInUseError,
    StoreReplacedError,
)
from mesh.runtime.store.lock import LOCK
from mesh.runtime.store.queue import Write
from mesh.runtime.store.store import Store
from mesh.runtime.store.tail import PAGE_BYTES
from tests.runtime.store.told import WIDTH, Shop, Told, accept, promise

Spoil: TypeAlias = Callable[[sqlite3.Connection], object]


def write_until_it_fails(shop: Shop, spoil: Spoil) -> tuple[dict[bytes, StoredRecord], MeshError]:
    """Spoil the writer's connection after a few writes; return what was acknowledged, and the failure."""
    store = shop.open()
    acknowledged: dict[bytes, StoredRecord] = {}
    for n in range(1, 5000):
        if n == 100:
            store._writer._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            spoil(store._writer._connection)
        record = accept(b"%05d" % n, 1, value=bytes(1000))
        found = shop.write(record)
        if found.error is not None:
            assert n >= 100
            assert found.ticket == len(acknowledged)
            with pytest.raises(StoreFailedError, match=r"takes no writes: .*"):
                store.write([promise(b"late", 1)])
            return acknowledged, found.error
        acknowledged[record.key] = record
    pytest.fail("it never failed")


def test_a_full_disk_ends_it(shop: Shop) -> None:
    acknowledged, error = write_until_it_fails(
        shop, lambda connection: connection.execute("PRAGMA max_page_count = 60")
    )
    assert isinstance(error, StoreDiskError)
    assert error.code == "SQLITE_FULL"
    assert "a disk with room left is expected, found it full" in str(error)
    assert shop.kept() == acknowledged
    assert shop.write(promise(b"goes on", 1)).error is None


def test_a_disk_that_became_read_only_ends_it(shop: Shop) -> None:
    acknowledged, error = write_until_it_fails(
        shop, lambda connection: connection.execute("PRAGMA query_only = ON")
    )
    assert isinstance(error, StoreDiskError)
    assert error.code == "SQLITE_READONLY"
    assert "make it writable" in str(error)
    assert shop.kept() == acknowledged


def test_pages_that_rot_while_it_is_open_end_it(shop: Shop) -> None:
    def rot(connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA shrink_memory")  # the cached pages are whole
        with (shop.path / DATABASE).open("r+b") as file:
            file.seek(PAGE_BYTES)
            file.write(b"\xff" * 8 * PAGE_BYTES)

    _, error = write_until_it_fails(shop, rot)
    assert isinstance(error, StoreDamagedError)
    with pytest.raises(StoreError):
        list(shop.open().read_all())


def test_reading_pages_that_rot_says_so(shop: Shop) -> None:
    store = shop.open()
    shop.write(*(accept(b"%d" % n, 1, value=bytes(1000)) for n in range(50)))
    store._writer._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with (shop.path / DATABASE).open("r+b") as file:
        file.seek(5 * PAGE_BYTES)
        file.write(b"\xff" * 8 * PAGE_BYTES)
    with pytest.raises(StoreDamagedError):
        list(store.read_all())


def test_a_foreign_program_that_holds_the_database_ends_it_in_time(shop: Shop) -> None:
    with ExitStack() as stack:

        def hold(connection: sqlite3.Connection) -> None:
            connection.execute("PRAGMA busy_timeout = 10")
            foreign = sqlite3.connect(shop.path / DATABASE, isolation_level=None)
            stack.enter_context(closing(foreign))
            foreign.execute("BEGIN IMMEDIATE")

        acknowledged, error = write_until_it_fails(shop, hold)
    assert isinstance(error, StoreInUseError)
    assert "held by another program" in str(error)
    assert shop.kept() == acknowledged


def test_a_log_that_cannot_be_copied_back_ends_it_after_what_is_committed(shop: Shop) -> None:
    store = shop.open()

    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("planted")

    store._writer._checkpoint = fail  # type: ignore[method-assign]  # the disk fails just there
    store._writer._log_pages = 1 << 40
    assert shop.write(promise(b"a", 1)).ticket == 1
    assert isinstance(shop.told.wait_for_failure(), StoreError)
    assert shop.told.ticket == 1
    assert shop.kept() == {b"a": promise(b"a", 1)}


def test_a_bug_in_the_writer_ends_it(shop: Shop) -> None:
    store = shop.open()
    wrong = Write((StoredRecord(b"a", "no bytes", None, 0, None),), {}, (), is_synced=True)  # type: ignore[arg-type]  # planted
    store._queue.put(wrong)
    error = shop.told.wait_for_failure()
    assert isinstance(error, StoreError)
    assert "met a bug" in str(error)
    assert shop.kept() == {}


def test_the_log_is_copied_back_and_begun_anew(shop: Shop) -> None:
    store = shop.open()
    store._writer._log_pages = 1 << 40
    shop.write(promise(b"a", 1), durability="memory")
    assert store.position == 1
    shop.write(promise(b"a", 2), durability="memory")  # the copying is over
    assert (store.position, store.synced_position) == (2, 1)
    shop.write(promise(b"a", 3))
    assert store.synced_position == 3


@pytest.mark.parametrize("name", [DATABASE, LOG, LOCK])
@pytest.mark.parametrize("is_replaced", [False, True])
def test_file_that_was_removed_ends_it_before_a_commit_is_told(
    shop: Shop, name: str, *, is_replaced: bool
) -> None:
    store = shop.open()
    assert shop.write(promise(b"a", 1)).error is None
    (shop.path / name).unlink()
    if is_replaced:
        (shop.path / name).touch()
    found = shop.write(promise(b"b", 1))
    assert isinstance(found.error, StoreReplacedError)
    assert str(shop.path / name) in str(found.error)
    assert (found.ticket, store.position, store.synced_position) == (1, 1, 1)
    with pytest.raises(StoreReplacedError):
        store.check_place()
    with pytest.raises(StoreFailedError, match="removed or replaced"):
        store.write([promise(b"late", 1)])


def test_store_that_was_replaced_takes_nothing_from_the_other_when_it_is_closed(shop: Shop) -> None:
    shop.open()
    shop.write(promise(b"a", 1))
    shutil.rmtree(shop.path)
    told = Told()
    other = Store.open(shop.path, ballot_bytes=WIDTH, report=told)
    try:
        told.wait(other.write([promise(b"b", 2)]))
        shop.close()
        other.check_place()
        assert told.wait(other.write([promise(b"c", 3)])).error is None
        with reading(shop.path) as connection:
            keys = connection.execute("SELECT key FROM registers ORDER BY key").fetchall()
        assert keys == [(b"b",), (b"c",)]
    finally:
        other.close()
