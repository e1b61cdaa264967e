"""Which store is a node's own: made at its first start, noted with its identity, and no other taken for it."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from mesh.core.ballot import BALLOT_BYTES
from mesh.core.effects import Commit
from mesh.core.stored import StoredRecord
from mesh.errors import MeshError
from mesh.runtime.agent import run_agent
from mesh.runtime.committing import Committing, open_store
from mesh.runtime.datadir import STORE_NAME, DataDir, open_data_dir
from mesh.runtime.settings import AgentSettings
from mesh.runtime.store.connection import DATABASE
from mesh.runtime.store.faults import StoreError, StoreMismatchError, StoreRolledBackError
from mesh.runtime.store.record import to_row

PATIENCE_S = 30.0

KILLED = """
import os, signal, sys, time
from pathlib import Path
from mesh.runtime.committing import open_store
from mesh.runtime.datadir import DataDir, open_data_dir

path, when = sys.argv[1:]
note = DataDir.note_store

def die(data, *what):
    if when == "noted":
        note(data, *what)
    os.kill(os.getpid(), signal.SIGKILL)

DataDir.note_store = die
open_store(open_data_dir(Path(path), time.time()))
"""


@pytest.fixture
def data(tmp_path: Path) -> Iterator[DataDir]:
    found = open_data_dir(tmp_path / "node", 1)
    yield found
    found.close()


def reopened(data: DataDir) -> DataDir:
    data.close()
    return open_data_dir(data.path, 1)


def commit(store: Committing, *numbers: int) -> None:
    """Commit these, one after the other."""

    async def run() -> None:
        done = trio.Event()

        def heed(number: int) -> None:
            if number == numbers[-1]:
                done.set()

        store.begin(heed, lambda stop: pytest.fail(stop.reason))
        with trio.fail_after(PATIENCE_S):
            for number in numbers:
                store.commit(Commit(number, (record(number),)))
            await done.wait()

    trio.run(run)


def record(n: int) -> StoredRecord:
    ballot = n.to_bytes(BALLOT_BYTES, "big")
    return StoredRecord(b"key %d" % n, ballot, ballot, 0, b"value")


def test_first_start_makes_the_store_and_notes_which_it_is(data: DataDir) -> None:
    assert data.identity.position == 0
    with open_store(data) as store:
        assert data.identity.store == store.identity
        commit(store, 1, 2, 3)
    again = reopened(data)
    with open_store(again) as store:
        assert store.identity == data.identity.store
        assert len(list(store)) == 3
        assert again.identity.position == store.position > 0
    again.close()


@pytest.mark.parametrize("when", ["made", "noted"])
def test_node_that_was_killed_while_it_made_its_store_starts_again(
    tmp_path: Path, when: str
) -> None:
    path = tmp_path / "node"
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(path), when],
        cwd=Path(__file__).parents[2],
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert (path / STORE_NAME / DATABASE).exists()
    data = open_data_dir(path, 1)
    assert (data.identity.store is not None) == (when == "noted")
    with open_store(data) as store:
        assert data.identity.store == store.identity
        assert list(store) == []
    data.close()


def test_node_that_was_killed_before_its_store_was_whole_starts_again(data: DataDir) -> None:
    (data.path / STORE_NAME).mkdir()
    (data.path / STORE_NAME / DATABASE).touch(mode=0o600)
    with open_store(data) as store:
        assert data.identity.store == store.identity


def test_store_that_is_gone_is_said_and_none_is_made_in_its_place(data: DataDir) -> None:
    with open_store(data) as store:
        noted = store.identity
    shutil.rmtree(data.path / STORE_NAME)
    for _ in range(2):
        with pytest.raises(StoreMismatchError, match=r"found none.*start as a new node"):
            open_store(data)
        assert not (data.path / STORE_NAME / DATABASE).exists()
    assert data.identity.store == noted


def test_store_of_another_node_is_refused(data: DataDir, tmp_path: Path) -> None:
    with open_store(data) as store:
        commit(store, 1)
    other = open_data_dir(tmp_path / "other", 1)
    with open_store(other) as store:
        commit(store, 1)
    other.close()
    shutil.rmtree(data.path / STORE_NAME)
    shutil.copytree(other.path / STORE_NAME, data.path / STORE_NAME)
    with pytest.raises(StoreMismatchError, match="the votes of this node are not here"):
        open_store(data)


def test_votes_that_the_node_has_not_noted_are_refused(data: DataDir, tmp_path: Path) -> None:
    other = open_data_dir(tmp_path / "other", 1)
    with open_store(other) as store:
        commit(store, 1)
    other.close()
    shutil.copytree(other.path / STORE_NAME, data.path / STORE_NAME)
    with pytest.raises(StoreMismatchError, match=r"whose votes these are is not known.*move"):
        open_store(data)
    assert data.identity.store is None
    with Committing(data.path / STORE_NAME, other.identity.store) as store:  # it was left as it was
        assert len(list(store)) == 1


def test_older_copy_of_the_store_is_refused(data: DataDir, tmp_path: Path) -> None:
    with open_store(data) as store:
        commit(store, 1)
    shutil.copytree(data.path / STORE_NAME, tmp_path / "copy")
    with open_store(data) as store:
        commit(store, 2)
    with open_store(data):  # notes how far it has come
        pass
    shutil.rmtree(data.path / STORE_NAME)
    shutil.copytree(tmp_path / "copy", data.path / STORE_NAME)
    with pytest.raises(StoreRolledBackError, match=r"this data directory has seen.*new node"):
        open_store(data)


def test_identity_that_cannot_be_noted_lets_nobody_vote(
    data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise MeshError("the disk is full")

    monkeypatch.setattr(DataDir, "note_store", refuse)
    with pytest.raises(MeshError, match="the disk is full"):
        open_store(data)
    monkeypatch.undo()
    with open_store(data):  # nobody holds it
        pass


@pytest.mark.parametrize("is_gone", [True, False])
def test_node_without_its_own_store_does_not_start(tmp_path: Path, *, is_gone: bool) -> None:
    for name in ("a", "b"):
        data = open_data_dir(tmp_path / name, 1)
        with open_store(data) as store:
            commit(store, 1)
        data.close()
    shutil.rmtree(tmp_path / "a" / STORE_NAME)
    if not is_gone:
        shutil.copytree(tmp_path / "b" / STORE_NAME, tmp_path / "a" / STORE_NAME)
    settings = AgentSettings(data_dir=tmp_path / "a", bind=("127.0.0.1", 0), profile="local")
    with pytest.raises(StoreError, match=r"is expected, found .*start as a new node"):
        run_agent(settings)


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        (
            StoredRecord(b"k", b"\1" * BALLOT_BYTES, b"\1" * (BALLOT_BYTES - 4), 0, b"v"),
            f"a ballot of {BALLOT_BYTES} bytes is expected, found {BALLOT_BYTES - 4} at key 6b",
        ),
        (record(1), "a record of a register is expected at key"),
    ],
    ids=["width of a ballot", "value"],
)
def test_node_whose_store_holds_another_thing_than_records_does_not_start_and_says_so(
    tmp_path: Path, stored: StoredRecord, words: str
) -> None:
    data = open_data_dir(tmp_path / "a", 1)
    with open_store(data) as store:
        commit(store, 1)
    data.close()
    with sqlite3.connect(data.path / STORE_NAME / DATABASE) as database:
        row = to_row(stored)
        database.execute("DELETE FROM registers")
        database.execute("INSERT INTO registers VALUES (?, ?, ?, ?, ?, ?)", row)
    database.close()
    settings = AgentSettings(data_dir=data.path, bind=("127.0.0.1", 0), profile="local")
    with pytest.raises(StoreError, match=words):
        run_agent(settings)
