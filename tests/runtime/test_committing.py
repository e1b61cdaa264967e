"""A node's commits and its store: told in order when they are done, and the end of the node when they fail."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
import trio
import trio.testing

from mesh.core.ballot import BALLOT_BYTES
from mesh.core.effects import Commit, Stop
from mesh.core.stored import StoredRecord
from mesh.errors import LocalProtocolError
from mesh.runtime.committing import LOOK_S, ROOM_BYTES, ROOM_LOOK_S, Committing
from mesh.runtime.store import queue
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


class Disk:
    """What statvfs says, as the test wants it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.free_bytes = 2 * ROOM_BYTES
        monkeypatch.setattr(os, "statvfs", lambda _: self)

    @property
    def f_bavail(self) -> int:
        return self.free_bytes // 4096

    @property
    def f_frsize(self) -> int:
        return 4096


async def test_a_disk_that_fills_up_is_told_once_and_again_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, said, disk = Told(), list[str](), Disk(monkeypatch)

    async def commit(number: int) -> None:
        store.commit(Commit(number, (record(b"key %d" % number, number),)))
        while not told.commits or told.commits[-1] < number:
            await told.news.wait()

    with trio.fail_after(PATIENCE_S), Committing(tmp_path / "store", None) as store:
        store.begin(told.committed, told.halt, said.append)
        await commit(1)
        assert said == []
        disk.free_bytes = ROOM_BYTES - 4096
        for number in range(2, 6):  # what was taken on is stored all the same
            await commit(number)
        assert [text.partition(" has ")[2] for text in said] == [
            "24.0 MiB of free disk, 24 MiB are expected: free some room"
        ]
        assert store.facts()["lacks"] == said[0]
        disk.free_bytes = ROOM_BYTES
        await commit(6)
        assert said[1:] == [""]
        assert store.facts()["lacks"] == ""
    assert told.stops == []


async def test_a_disk_that_others_fill_is_noticed_without_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    told, said, disk = Told(), list[str](), Disk(monkeypatch)
    with Committing(tmp_path / "store", None) as store:
        store.begin(told.committed, told.halt, said.append)
        async with trio.open_nursery() as nursery:
            disk.free_bytes = 0
            nursery.start_soon(store.run)
            await trio.sleep(ROOM_LOOK_S / 2)
            assert len(said) == 1
            disk.free_bytes = ROOM_BYTES
            await trio.sleep(ROOM_LOOK_S)
            assert said[1:] == [""]
            nursery.cancel_scope.cancel()


async def test_a_disk_that_is_slower_than_what_is_asked_of_it_is_told_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, said = Told(), list[str]()
    Disk(monkeypatch)
    with trio.fail_after(PATIENCE_S), Committing(tmp_path / "store", None) as store:
        store.begin(told.committed, told.halt, said.append)
        monkeypatch.setattr(queue, "ROOM_SHARE", 0.0)
        store.commit(Commit(1, (record(b"key", 1),)))
        assert "slower than what is asked of it" in said[0]
        monkeypatch.undo()
        Disk(monkeypatch)
        while len(said) < 2:
            await told.news.wait()
        assert said[1:] == [""]


async def test_status_says_what_the_store_holds(tmp_path: Path) -> None:
    told = Told()
    with trio.fail_after(PATIENCE_S), Committing(tmp_path / "store", None) as store:
        store.begin(told.committed, told.halt)
        before = store.facts()
        assert (before["path"], before["last_commit_ms"]) == (str(tmp_path / "store"), None)
        store.commit(Commit(1, (record(b"key", 1),)))
        while not told.commits:
            await told.news.wait()
        facts = store.facts()
        assert facts["commits"] == before["commits"] + 1 == store.position
        assert facts["last_commit_ms"] > 0
        assert facts["size_bytes"] > before["size_bytes"] > 0
        assert set(facts) == {"path", "size_bytes", "commits", "last_commit_ms", "lacks"}


async def test_store_that_was_removed_is_not_back_when_another_is_made_at_its_place(
    tmp_path: Path,
) -> None:
    told, lacks = Told(), list[str]()
    path = tmp_path / "store"
    with Committing(path, None) as store:
        store.begin(told.committed, told.halt, lacks.append)
        shutil.rmtree(path)
        store.commit(Commit(1, (record(b"key", 1),)))
        assert store.facts()["lacks"], "what it commits is in no directory any more"
        with Committing(path, None) as another:
            assert another.identity != store.identity
            with suppress(StoreError):  # by now the writer may have found it, too
                store.commit(Commit(2, (record(b"key", 2),)))
            assert store.facts()["lacks"], f"told: {lacks}; what it commits is lost at its end"


@pytest.mark.parametrize("is_replaced", [False, True])
async def test_commit_to_a_store_that_was_removed_is_not_told_and_ends_the_node(
    tmp_path: Path, *, is_replaced: bool
) -> None:
    told, lacks, path = Told(), list[str](), tmp_path / "store"
    with trio.fail_after(PATIENCE_S), Committing(path, None) as store:
        store.begin(told.committed, told.halt, lacks.append)
        store.commit(Commit(1, (record(b"key", 1),)))
        while not told.commits:
            await told.news.wait()
        shutil.rmtree(path)
        if is_replaced:
            Committing(path, None).close()
        store.commit(Commit(2, (record(b"key", 2),)))
        while not told.stops:
            await told.news.wait()
        assert told.commits == [1]
        assert told.stops[0].exit_code == 1
        assert "look at who did so" in told.stops[0].reason
        assert ("another file" in told.stops[0].reason) == is_replaced
        assert "" not in lacks, "it never has room again"
        assert store.facts()["lacks"] == told.stops[0].reason


async def test_store_that_was_replaced_is_noticed_without_a_commit(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    told, path = Told(), tmp_path / "store"
    with Committing(path, None) as store:
        store.begin(told.committed, told.halt)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.run)
            await trio.sleep(1)
            path.rename(tmp_path / "away")
            Committing(path, None).close()
            assert told.stops == []
            await trio.sleep(2 * LOOK_S)
            assert [stop.exit_code for stop in told.stops] == [1], "said once"
            shutil.rmtree(path)
            (tmp_path / "away").rename(path)
            await trio.sleep(LOOK_S)
            assert store.facts()["lacks"] == told.stops[0].reason, (
                "for good, whatever is there later"
            )
            nursery.cancel_scope.cancel()
