"""The store as whoever uses it sees it: what was reported is there, and what breaks the rules never is."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from mesh.core.stored import StoredRecord
from mesh.errors import LocalProtocolError
from mesh.runtime.store.faults import (
    StoreFailedError,
    StoreInUseError,
    StoreMismatchError,
    StoreRolledBackError,
)
from mesh.runtime.store.record import (
    KEY_BYTES_MAX,
    NUMBER_MAX,
    VALUE_BYTES_MAX,
)
from mesh.runtime.store.store import Store
from tests.runtime.store.told import WIDTH, Shop, Told, accept, ballot, promise


def test_what_was_reported_is_there_after_reopening(shop: Shop) -> None:
    shop.open()
    records = [promise(b"a", 3), accept(b"b", 4, seq=7, value=b""), accept(b"c", 5)]
    assert shop.write(*records, numbers={"n": 12, "epoch": 0}).error is None
    assert shop.kept() == {record.key: record for record in records}
    assert shop.open().numbers == {"n": 12, "epoch": 0}


def test_a_new_store_is_for_its_owner_alone(shop: Shop) -> None:
    shop.open()
    shop.write(promise(b"a", 1))
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in shop.path.iterdir()}
    assert set(modes) == {"lock", "registers.db", "registers.db-wal", "registers.db-shm"}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(shop.path.stat().st_mode) == 0o700


def test_tickets_and_positions_rise_by_one(shop: Shop) -> None:
    store = shop.open()
    for n in range(1, 6):
        found = shop.write(accept(b"k", n))
        assert (found.ticket, found.position, store.position, store.synced_position) == (n,) * 4
    assert [progress.ticket for progress in shop.told.heard] == [1, 2, 3, 4, 5]
    assert shop.open().position == 5
    assert shop.write(accept(b"k", 6)).position == 6


def test_what_waits_while_a_commit_runs_goes_into_one(shop: Shop) -> None:
    store = shop.open()
    shop.told.gate.clear()
    store.write([promise(b"a", 1)])
    shop.told.wait(1)  # the writer stands in the report
    for n in range(2, 50):
        store.write([promise(b"a", n)])
    shop.told.gate.set()
    assert shop.told.wait(49).position == 2
    assert [progress.ticket for progress in shop.told.heard] == [1, 49]
    assert shop.kept()[b"a"] == promise(b"a", 49)


def test_closing_commits_what_waits(shop: Shop) -> None:
    store = shop.open()
    for n in range(1, 200):
        store.write([promise(b"%d" % n, n)])
    store.close()
    assert shop.told.ticket == 199
    with pytest.raises(StoreFailedError, match="closed"):
        store.write([promise(b"late", 1)])
    assert len(shop.kept()) == 199


BREACHES = {
    "promised goes down": StoredRecord(b"k", ballot(8), ballot(7), 6, b"w"),
    "promised goes away": StoredRecord(b"k", None, ballot(7), 6, b"w"),
    "the ballot goes down": StoredRecord(b"k", ballot(9), ballot(6), 9, b"w"),
    "the ballot goes away": StoredRecord(b"k", ballot(9), None, 0, None),
    "seq goes down": StoredRecord(b"k", ballot(9), ballot(7), 4, b"v"),
    "one (ballot, seq), two values": StoredRecord(b"k", ballot(9), ballot(7), 5, b"w"),
    "one (ballot, seq), a value and none": StoredRecord(b"k", ballot(9), ballot(7), 5, None),
}
KEPT = StoredRecord(b"k", ballot(9), ballot(7), 5, b"v")


@pytest.mark.parametrize("breach", BREACHES.values(), ids=BREACHES)
def test_a_key_never_goes_back(shop: Shop, breach: StoredRecord) -> None:
    store = shop.open()
    shop.write(KEPT)
    found = shop.write(promise(b"other", 1), breach)
    assert isinstance(found.error, LocalProtocolError)
    assert "nothing was written" in str(found.error)
    assert found.ticket == 1
    with pytest.raises(StoreFailedError):
        store.write([promise(b"k", 10)])
    assert shop.kept() == {b"k": KEPT}


@pytest.mark.parametrize(
    "step",
    [
        KEPT,
        StoredRecord(b"k", ballot(10), ballot(7), 5, b"v"),
        StoredRecord(b"k", ballot(9), ballot(7), 6, None),
        StoredRecord(b"k", ballot(9), ballot(8), 0, b"w"),
        StoredRecord(b"k", ballot(256), ballot(256), 0, b"w"),
    ],
)
def test_a_key_goes_forward_or_stays(shop: Shop, step: StoredRecord) -> None:
    shop.open()
    shop.write(KEPT)
    assert shop.write(step).error is None
    assert shop.kept() == {b"k": step}


def test_what_came_before_a_breach_is_committed_and_nothing_after_it(shop: Shop) -> None:
    store = shop.open()
    shop.told.gate.clear()
    store.write([KEPT])
    shop.told.wait(1)
    store.write([promise(b"before", 1)])
    store.write([promise(b"half", 1), promise(b"k", 1)])
    store.write([promise(b"after", 1)])
    shop.told.gate.set()
    found = shop.told.wait(4)
    assert isinstance(found.error, LocalProtocolError)
    assert (found.ticket, found.position) == (2, 2)
    assert shop.kept().keys() == {b"k", b"before"}


def test_a_number_never_goes_down(shop: Shop) -> None:
    shop.open()
    shop.write(numbers={"n": 5, "boot": 5})
    shop.write(numbers={"n": 5, "boot": 6})
    found = shop.write(promise(b"a", 1), numbers={"n": 4, "boot": 7})
    assert isinstance(found.error, LocalProtocolError)
    assert "n: 4 after 5" in str(found.error)
    assert shop.kept() == {}
    assert shop.open().numbers == {"n": 5, "boot": 6}


@pytest.mark.parametrize(
    "record",
    [
        StoredRecord(b"", None, None, 0, None),
        StoredRecord(b"k" * (KEY_BYTES_MAX + 1), None, None, 0, None),
        StoredRecord(b"k", b"narrow", None, 0, None),
        StoredRecord(b"k", ballot(1), b"too wide a ballot", 0, None),
        StoredRecord(b"k", ballot(1), ballot(1), -1, None),
        StoredRecord(b"k", ballot(1), ballot(1), NUMBER_MAX + 1, None),
        StoredRecord(b"k", ballot(1), None, 1, None),
        StoredRecord(b"k", ballot(1), None, 0, b"v"),
        StoredRecord(b"k", ballot(1), ballot(1), 0, bytes(VALUE_BYTES_MAX + 1)),
    ],
)
def test_a_record_that_cannot_be_is_refused_at_once(shop: Shop, record: StoredRecord) -> None:
    store = shop.open()
    with pytest.raises(LocalProtocolError):
        store.write([promise(b"a", 1), record])
    with pytest.raises(LocalProtocolError):
        store.write(numbers={"n": -1})
    with pytest.raises(LocalProtocolError):
        store.write(forget=[b""])
    with pytest.raises(LocalProtocolError):
        store.write([promise(b"a", 1)], forget=[b"a"])
    assert shop.write(promise(b"b", 1)).ticket == 1
    assert shop.kept().keys() == {b"b"}


def test_a_forgotten_key_leaves_nothing(shop: Shop) -> None:
    shop.open()
    key, value = b"forget-me-wholly", b"a secret result, long enough to be found"
    shop.write(accept(key, 9, seq=4, value=value * 200), accept(b"stays", 1))
    shop.write(forget=[key, b"never was"])
    shop.close()
    everything = b"".join(file.read_bytes() for file in shop.path.iterdir())
    assert key not in everything
    assert value not in everything
    assert shop.kept().keys() == {b"stays"}
    assert shop.write(promise(key, 1)).error is None  # as if it had never been


def test_a_key_is_forgotten_and_written_in_the_order_of_the_writes(shop: Shop) -> None:
    store = shop.open()
    shop.told.gate.clear()
    store.write([accept(b"a", 9), accept(b"b", 9)])
    shop.told.wait(1)
    store.write([accept(b"a", 10)])
    store.write(forget=[b"a", b"b"])
    store.write([accept(b"a", 1)])
    shop.told.gate.set()
    shop.told.wait(4)
    assert shop.told.error is None
    assert shop.kept() == {b"a": accept(b"a", 1)}


def test_a_store_in_use_names_the_process_and_goes_on(shop: Shop) -> None:
    shop.open()
    with pytest.raises(StoreInUseError, match=f"in use by process {os.getpid()}"):
        Store.open(shop.path, ballot_bytes=WIDTH, report=Told())
    assert shop.write(promise(b"a", 1)).error is None


def test_the_identity_is_written_once(shop: Shop, tmp_path: Path) -> None:
    first = shop.open().identity
    assert len(first) == 16
    assert shop.open(identity=first).identity == first
    with Shop(tmp_path / "second") as other:
        assert other.open().identity != first


def test_another_store_than_the_one_this_node_had_is_refused(shop: Shop) -> None:
    shop.open()
    shop.write(promise(b"a", 1))
    with pytest.raises(StoreMismatchError, match=f"{'00' * 16} is expected"):
        shop.open(identity=bytes(16))
    assert shop.kept().keys() == {b"a"}


def test_a_lost_store_is_not_made_anew(shop: Shop) -> None:
    with pytest.raises(StoreMismatchError, match="found none"):
        shop.open(identity=bytes(16))
    assert not (shop.path / "registers.db").exists()


def test_a_store_with_other_ballots_is_refused(shop: Shop) -> None:
    shop.open()
    shop.close()
    with pytest.raises(StoreMismatchError, match="8 bytes, 9 are expected"):
        Store.open(shop.path, ballot_bytes=9, report=Told())


def test_a_position_lower_than_a_peer_has_seen_is_found_out(shop: Shop) -> None:
    store = shop.open()
    shop.write(promise(b"a", 1))
    store.check_position(1)
    with pytest.raises(StoreRolledBackError, match="holds 1 commits") as found:
        store.check_position(2)
    assert (found.value.position, found.value.seen) == (1, 2)


def test_an_older_copy_that_was_put_back_is_found_out(shop: Shop) -> None:
    shop.open()
    shop.write(promise(b"a", 1))
    shop.close()
    copy = (shop.path / "registers.db").read_bytes()
    identity = shop.open().identity
    seen = shop.write(promise(b"a", 2)).position
    shop.close()
    (shop.path / "registers.db").write_bytes(copy)
    store = shop.open(identity)  # by itself it is as good as any
    with pytest.raises(StoreRolledBackError, match="start it as a new node"):
        store.check_position(seen)


def test_readers_see_one_commit_while_others_follow(shop: Shop) -> None:
    store = shop.open()
    shop.write(*(promise(b"%d" % n, 1) for n in range(100)))
    reading = store.read_all()
    next(reading)
    shop.write(*(promise(b"%d" % n, 2) for n in range(200)))
    assert {record.promised for record in reading} == {ballot(1)}
    assert len(list(store.read_all())) == 200
