"""The queue before the disk: in order, bounded, and an error in place of a pause."""

from __future__ import annotations

from pathlib import Path

import pytest

from mesh.runtime.store.faults import StoreBusyError, StoreFailedError
from mesh.runtime.store.queue import Queue, Write
from tests.runtime.store.told import accept


def write_of(size: int = 1) -> Write:
    return Write((accept(b"k", 1, value=bytes(size)),), {}, (), is_synced=True)


def test_it_gives_out_what_waits_in_order() -> None:
    queue = Queue(Path("store"))
    writes = [write_of(size) for size in range(5)]
    assert [queue.put(write) for write in writes] == [1, 2, 3, 4, 5]
    assert queue.take() == writes
    assert queue.put(write_of()) == 6


def test_it_has_room_up_to_half_and_takes_as_much_again() -> None:
    queue = Queue(Path("store"), writes_max=10)
    for n in range(10):
        assert queue.has_room == (n < 5)
        queue.put(write_of())
    with pytest.raises(StoreBusyError, match="at most 10 writes"):
        queue.put(write_of())


def test_bytes_are_counted_too() -> None:
    queue = Queue(Path("store"), bytes_max=10_000)
    queue.put(write_of(6_000))
    assert not queue.has_room
    with pytest.raises(StoreBusyError, match="10000 bytes"):
        queue.put(write_of(6_000))
    assert queue.put(write_of(1_000)) == 2  # nothing was queued, no ticket was spent


def test_room_comes_back_with_the_commit_and_not_before() -> None:
    queue = Queue(Path("store"), writes_max=2)
    queue.put(write_of())
    queue.put(write_of())
    group = queue.take()
    with pytest.raises(StoreBusyError):
        queue.put(write_of())
    queue.release(group)
    assert queue.has_room
    assert queue.put(write_of()) == 3


def test_after_its_end_it_gives_out_what_waited_and_takes_nothing() -> None:
    queue = Queue(Path("store"))
    queue.put(write_of())
    queue.end("the disk is full")
    queue.end("it is closed")
    with pytest.raises(StoreFailedError, match="the disk is full"):
        queue.put(write_of())
    assert len(queue.take()) == 1
    assert queue.take() == []


def test_after_a_failure_what_waited_is_dropped() -> None:
    queue = Queue(Path("store"))
    queue.put(write_of())
    queue.end("the disk is full", drop=True)
    assert queue.take() == []
