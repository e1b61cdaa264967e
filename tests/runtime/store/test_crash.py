"""Crashes: every write that was acknowledged is there afterwards, and what is there is a prefix of what was written.

What is tested: the process is killed at any moment (what the kernel has is kept), and the log is cut off at any
byte (as a power cut may leave it, if nothing behind the cut was fsynced). What is not: a disk that acknowledges an
fsync and loses it, or that writes pages out of order. `test_fsync` shows that each fsync was asked for in time.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.core.stored import StoredRecord
from mesh.errors import LocalProtocolError
from mesh.runtime.store.connection import DATABASE, LOG
from mesh.runtime.store.faults import StoreError, StoreRolledBackError
from tests.runtime.store import scribes
from tests.runtime.store.told import Shop, ballot

KEYS = (b"a", b"b", b"c")

records = st.builds(
    lambda key, promised, accepted, seq, size: StoredRecord(
        key,
        None if promised is None else ballot(promised),
        None if accepted is None else ballot(accepted),
        0 if accepted is None else seq,
        None if accepted is None or size is None else b"%d %d" % (accepted, seq) + bytes(size),
    ),
    st.sampled_from(KEYS),
    st.none() | st.integers(0, 3),
    st.none() | st.integers(0, 3),
    st.integers(0, 2),
    st.sampled_from([None, 0, 100, 10_000]),
)
writes = st.tuples(
    st.lists(records, max_size=3),
    st.dictionaries(st.sampled_from(["n", "epoch"]), st.integers(0, 3), max_size=2),
    st.lists(st.sampled_from(KEYS), max_size=1),
    st.sampled_from(["fsync", "memory"]),
)
Kept: TypeAlias = dict[bytes, StoredRecord]
Planned: TypeAlias = tuple[list[StoredRecord], dict[str, int], list[bytes], str]


def order(record: StoredRecord) -> tuple[bytes, int]:
    return record.ballot or b"", record.seq


def goes_back(old: StoredRecord, new: StoredRecord) -> bool:
    """Say whether a key must not go from `old` to `new`: the rule, in other words than the store's."""
    if (new.promised or b"") < (old.promised or b"") or order(new) < order(old):
        return True
    return order(new) == order(old) and new.value != old.value


def after(
    kept: Kept,
    numbers: dict[str, int],
    write: tuple[list[StoredRecord], dict[str, int], list[bytes]],
) -> tuple[Kept, dict[str, int]] | None:
    """Return what is kept after a write; None: it breaks the rules."""
    puts, raised, forget = write
    kept = {key: record for key, record in kept.items() if key not in forget}
    for record in puts:
        old = kept.get(record.key)
        if old is not None and goes_back(old, record):
            return None
        kept[record.key] = record
    if any(value < numbers.get(name, 0) for name, value in raised.items()):
        return None
    return kept, {**numbers, **raised}


def copy_of(shop: Shop, place: Path) -> Shop:
    """Return a copy of an open store's files, as they are now."""
    place.mkdir()
    for name in (DATABASE, LOG):
        if not (shop.path / name).exists():
            continue  # it was closed
        (place / name).write_bytes((shop.path / name).read_bytes())
    return Shop(place)


def carry_out(shop: Shop, planned: list[Planned]) -> list[tuple[Kept, dict[str, int]]]:
    """Write what was planned, in sessions that end where the rules are broken; return what each commit left."""
    store = shop.open()
    history: list[tuple[Kept, dict[str, int]]] = [({}, {})]
    for puts, raised, forget, durability in planned:
        if not {record.key for record in puts}.isdisjoint(forget):
            continue
        expected = after(*history[-1], (puts, raised, forget))
        found = shop.write(*puts, numbers=raised, forget=forget, durability=durability)
        if expected is None:
            assert isinstance(found.error, LocalProtocolError)
            store = shop.open()
            continue
        assert found.error is None
        assert found.position == store.position == len(history)
        history.append(expected)
    return history


@settings(max_examples=30)
@given(st.lists(writes, min_size=1, max_size=12), st.data())
def test_a_crash_leaves_a_prefix_of_what_was_committed(
    planned: list[Planned], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as place, Shop(Path(place) / "store") as shop:
        history = carry_out(shop, planned)
        with copy_of(shop, Path(place) / "copy") as copy:
            log = (copy.path / LOG).read_bytes()
            cut = data.draw(st.integers(0, len(log)), label="bytes of the log that are left")
            (copy.path / LOG).write_bytes(log[:cut])
            kept = copy.kept()
            assert (kept, copy.store.numbers) == history[copy.store.position]
            if cut == len(log):
                assert copy.store.position == len(history) - 1
            if copy.store.position < len(history) - 1:
                with pytest.raises(StoreRolledBackError):
                    copy.store.check_position(len(history) - 1)


@settings(max_examples=30)
@given(st.lists(writes, min_size=1, max_size=12), st.booleans(), st.data())
def test_a_byte_that_turned_anywhere_gives_an_error_or_a_prefix_and_never_another_vote(
    planned: list[Planned], is_closed: bool, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as place, Shop(Path(place) / "store") as shop:
        history = carry_out(shop, planned)
        if is_closed:
            shop.close()
        with copy_of(shop, Path(place) / "copy") as copy:
            files = [file for file in sorted(copy.path.iterdir()) if file.stat().st_size]
            file = data.draw(st.sampled_from(files))
            content = bytearray(file.read_bytes())
            content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
            file.write_bytes(content)
            try:
                kept = copy.kept()
                numbers, position = copy.store.numbers, copy.store.position
            except StoreError:
                return
            assert (kept, numbers) == history[position]


@pytest.mark.parametrize("durability", ["fsync", "memory", "mixed"])
def test_a_killed_process_loses_nothing_that_it_acknowledged(
    tmp_path: Path, durability: str
) -> None:
    rng = random.Random(durability)
    acknowledged = records_before = 0
    for _ in range(4):
        with scribes.at_work(tmp_path / "store", durability) as (process, output):
            lines = [output.readline() for _ in range(rng.randint(5, 400))]
            process.kill()
            lines += output.readlines()
        said = scribes.read("".join(lines))
        assert not said.failure, said
        assert said.records >= max(records_before, acknowledged + 1 if acknowledged else 0)
        records_before = said.records
        acknowledged += len(said.acknowledged)
    with Shop(tmp_path / "store") as shop:
        kept = shop.kept()
        last = shop.store.numbers["last"]
        assert len(kept) == last + 1  # key 0, and one for each write: none is missing between
        assert last >= acknowledged
        assert kept[b"0"].ballot == ballot(last)
