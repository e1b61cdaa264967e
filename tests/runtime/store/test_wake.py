"""A commit is told to trio: in its thread, in order."""

from __future__ import annotations

import threading
from pathlib import Path

import trio

from mesh.runtime.store.store import Store
from mesh.runtime.store.wake import report_to_trio
from mesh.runtime.store.writer import Progress
from tests.runtime.store.told import WIDTH, promise


async def test_commits_are_told_in_the_thread_of_the_run_and_in_order(tmp_path: Path) -> None:
    send, receive = trio.open_memory_channel[tuple[int, Progress]](1000)

    def handle(progress: Progress) -> None:
        send.send_nowait((threading.get_ident(), progress))

    store = Store.open(tmp_path / "store", ballot_bytes=WIDTH, report=report_to_trio(handle))
    told: list[Progress] = []
    try:
        for n in range(1, 101):
            assert store.write([promise(b"k", n)]) == n
        with trio.fail_after(20):
            while not told or told[-1].ticket < 100:
                thread, progress = await receive.receive()
                assert thread == threading.get_ident()
                told.append(progress)
    finally:
        store.close()
    tickets = [progress.ticket for progress in told]
    assert tickets == sorted(set(tickets))
    assert [progress.position for progress in told] == list(range(1, len(told) + 1))


def test_a_run_that_is_over_is_told_nothing(tmp_path: Path) -> None:
    async def report() -> Store:
        return Store.open(
            tmp_path / "store", ballot_bytes=WIDTH, report=report_to_trio(lambda _: None)
        )

    store = trio.run(report)
    store.write([promise(b"k", 1)])
    store.close()
    assert store.position == 1
