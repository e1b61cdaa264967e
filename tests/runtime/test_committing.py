"""A node's commits and its store: told in order when they are done, and the end of the node when they fail."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio

from mesh.core.ballot import BALLOT_BYTES
from mesh.core.effects import Commit, Stop
from mesh.core.stored import StoredRecord
from mesh.errors import LocalProtocolError
from mesh.runtime.committing import Committing
from mesh.runtime.store.faults import StoreError

PATIENCE_S = 30.0


def record(key: bytes, n: int) -> StoredRecord:
    ballot = n.to_bytes(BALLOT_BYTES, "big")
    return StoredRecord(key, ballot, ballot, 0, b"value %d" % n)


class Told:
    def __init__(self) -> None:
        self.commits: list[int] = []
        self.stops: list[Stop] = []
        self.news = trio.Event()

    def committed(self, number: int) -> None:
        self.commits.append(number)
        self._wake()

    def halt(self, stop: Stop) -> None:
        self.stops.append(stop)
        self._wake()

    def _wake(self) -> None:
        self.news.set()
        self.news = trio.Event()


async def test_commits_are_told_in_order_and_are_there_for_the_next_session(tmp_path: Path) -> None:
    told = Told()
    with trio.fail_after(PATIENCE_S), Committing(tmp_path / "store", None) as store:
        store.begin(told.committed, told.halt)
        for number in range(5, 25):
            store.commit(Commit(number, (record(b"key %d" % number, number),), {"n": number}))
        while not told.commits or told.commits[-1] < 24:
            await told.news.wait()
        assert told.commits == sorted(set(told.commits))
        identity = store.identity
    with Committing(tmp_path / "store", identity) as store:
        assert {found.key: found for found in store} == {
            b"key %d" % n: record(b"key %d" % n, n) for n in range(5, 25)
        }
        assert store.numbers == {"n": 24}
    assert told.stops == []


async def test_a_store_that_fails_ends_the_node_and_takes_nothing_more(tmp_path: Path) -> None:
    told = Told()
    with trio.fail_after(PATIENCE_S), Committing(tmp_path / "store", None) as store:
        store.begin(told.committed, told.halt)
        store.commit(Commit(1, (record(b"key", 9),)))
        while not told.commits:
            await told.news.wait()
        store.commit(Commit(2, (record(b"key", 8),)))  # goes down: the store's own rule ends it
        while not told.stops:
            await told.news.wait()
        assert told.commits == [1]
        assert told.stops[0].exit_code == 1
        assert "never go down" in told.stops[0].reason
        with pytest.raises(StoreError):
            store.commit(Commit(3))


def test_nothing_is_committed_before_anybody_hears_of_it(tmp_path: Path) -> None:
    with (
        Committing(tmp_path / "store", None) as store,
        pytest.raises(LocalProtocolError, match="begin"),
    ):
        store.commit(Commit(1))


def test_another_store_than_the_nodes_own_is_refused(tmp_path: Path) -> None:
    with Committing(tmp_path / "store", None):
        pass
    with pytest.raises(StoreError):
        Committing(tmp_path / "store", os.urandom(16))
