"""A client and a node that takes in others first."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.testing

from mesh.client import Client
from mesh.errors import MeshUnreachable


async def test_a_client_that_finds_the_queue_full_waits_until_there_is_room(tmp_path: Path) -> None:
    path = str(tmp_path / "control.sock")
    with ExitStack() as stack:
        slow = stack.enter_context(socket.socket(socket.AF_UNIX))
        slow.bind(path)
        slow.listen(0)
        while True:  # as many as the system lets wait
            early = stack.enter_context(socket.socket(socket.AF_UNIX))
            early.setblocking(False)
            try:
                early.connect(path)
            except BlockingIOError:
                break
        client = stack.enter_context(Client(tmp_path, timeout_s=0.1))
        with pytest.raises(MeshUnreachable, match="too many others ask it at once"):
            await trio.to_thread.run_sync(client.call, "echo")
        patient = stack.enter_context(Client(tmp_path, timeout_s=10.0))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(trio.to_thread.run_sync, partial(patient.stream, "echo")))
            await trio.testing.wait_all_tasks_blocked(0.05)
            while patient.fileno() == -1:
                stack.enter_context(slow.accept()[0])
                await trio.sleep(0.02)
