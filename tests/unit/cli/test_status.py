"""`mesh status` prints what the node says of itself, whichever release started it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from mesh.cli import watch

STATUS: dict[str, Any] = {
    "counters": {"dropped_garbage": 2, "dropped_own": 0},
    "name": "n1",
    "phase": "member",
    "address": "127.0.0.1:7946",
    "node_id": "00000000000000a1",
    "boot": 3,
    "mesh_id": "00000000000000ff",
    "profile": "lan",
    "registers": {"epoch": 1, "voters": ["n1"], "voters_away": [], "votes": True},
    "used": 0,
    "slots": 2,
    "pid": 71,
    "uptime_s": 5.0,
    "data": "/var/lib/n1",
    "sent": {"datagrams": 1, "datagram_bytes": 9, "frames": 0, "frame_bytes": 0},
    "received": {"datagrams": 1, "datagram_bytes": 9, "frames": 0, "frame_bytes": 0},
    "version": "0.1",
}


class Answers:
    """What a node would answer."""

    def __init__(self, status: dict[str, Any]) -> None:
        self._status = status

    def call(self, _name: str) -> dict[str, Any]:
        return self._status


@pytest.mark.parametrize(
    ("command", "said"),
    [({}, "-"), ({"command": ""}, "-"), ({"command": "mesh join"}, "mesh join")],
)
def test_a_node_that_tells_no_line_it_was_started_with_is_shown_all_the_same(
    command: dict[str, str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    @contextmanager
    def local_node(_options: object) -> Iterator[Answers]:
        yield Answers(STATUS | command)

    monkeypatch.setattr(watch, "local_node", local_node)
    assert watch.show_status(argparse.Namespace(json=False)) == 0
    lines = capsys.readouterr().out.splitlines()
    (started_by,) = [line.removeprefix("started by") for line in lines if "started by" in line]
    assert started_by.strip() == said
