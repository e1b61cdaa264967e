"""DIR/members: written whole, read with distrust, and never a reason to stop."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
import trio

from mesh.core.address import Address
from mesh.core.effects import Remember
from mesh.core.ids import NO_MESH, MeshId, NodeId
from mesh.core.known import KnownMember
from mesh.core.limits import REMEMBERED_MAX
from mesh.runtime import snapshot as module
from mesh.runtime.snapshot import Snapshot

MESH = MeshId(0xABC)
ADA = KnownMember(NodeId(1), "ada", Address("10.0.0.1", 7946))
BOB = KnownMember(NodeId(2), "bób", Address("2001:db8::2", 7947))


class Stage:
    """A directory with a snapshot, and what was said about it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path / "members"
        self.said: list[str] = []
        self.snapshot = Snapshot(path, self.said.append)

    def write(self, *members: KnownMember) -> None:
        self.snapshot.write(Remember(MESH, members))

    def read(self, mesh_id: MeshId = MESH) -> tuple[KnownMember, ...]:
        return self.snapshot.read(mesh_id)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_members_come_back_as_they_were_written(stage: Stage) -> None:
    stage.write(ADA, BOB)
    assert stage.read() == (ADA, BOB)
    assert stage.said == []
    assert stage.file.stat().st_mode & 0o777 == 0o600
    assert sorted(entry.name for entry in stage.path.iterdir()) == ["members"]


def test_no_file_is_nobody_and_nothing_to_say(stage: Stage) -> None:
    assert stage.read() == ()
    assert stage.said == []


def test_the_longest_list_is_read_back(stage: Stage) -> None:
    name = "\U0001f40c" * 64
    at = Address("2001:db8:1111:2222:3333:4444:5555:6666", 65535)
    many = tuple(KnownMember(NodeId((1 << 64) - 1 - n), name, at) for n in range(REMEMBERED_MAX))
    stage.write(*many)
    assert stage.read() == many


def test_members_of_another_mesh_are_not_used(stage: Stage) -> None:
    stage.write(ADA)
    assert stage.read(MeshId(7)) == ()
    assert "another mesh" in stage.said[0]
    assert stage.read(NO_MESH) == ()
    assert len(stage.said) == 1


def body(**changed: object) -> bytes:
    whole = {"format": 1, "mesh_id": f"{MESH:016x}", "members": []}
    return json.dumps({**whole, **changed}).encode()


ENTRY = ["0000000000000001", "ada", "10.0.0.1", 7946]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 100,
        b"\xff\xfe",
        b"[]",
        b"{",
        b"[" * 100_000,
        b"9" * 10_000,
        b" " * (1 << 21),
        body(format=2),
        body(mesh_id="abc"),
        body(mesh_id=7),
        body(members={}),
        body(members=[ENTRY[:3]]),
        body(members=[["x", *ENTRY[1:]]]),
        body(members=[["0" * 16, *ENTRY[1:]]]),
        body(members=[[ENTRY[0], "", *ENTRY[2:]]]),
        body(members=[[ENTRY[0], "a\x1b[2J", *ENTRY[2:]]]),
        body(members=[[ENTRY[0], "a" * 65, *ENTRY[2:]]]),
        body(members=[[*ENTRY[:2], "example.org", 1]]),
        body(members=[[*ENTRY[:2], "fe80::1%a\x1b[2J", 1]]),
        body(members=[[*ENTRY[:3], 0]]),
        body(members=[[*ENTRY[:3], True]]),
        body(members=[[*ENTRY[:3], 65_536]]),
        body(members=[ENTRY] * (REMEMBERED_MAX + 1)),
    ],
)
def test_whatever_is_no_snapshot_is_said_and_nobody(stage: Stage, data: bytes) -> None:
    stage.file.write_bytes(data)
    assert stage.read() == ()
    assert len(stage.said) == 1
    assert "damaged" in stage.said[0]
    stage.write(ADA)
    assert stage.read() == (ADA,)


def test_what_is_no_file_is_said_and_waited_for_by_nobody(stage: Stage) -> None:
    os.mkfifo(stage.file)
    assert stage.read() == ()
    stage.file.unlink()
    stage.file.mkdir()
    assert stage.read() == ()
    assert len(stage.said) == 2


async def test_pipe_in_the_way_of_a_new_snapshot_holds_up_nobody(stage: Stage) -> None:
    os.mkfifo(stage.path / "members.new")
    with trio.fail_after(10):
        await trio.to_thread.run_sync(stage.write, ADA, abandon_on_cancel=True)
    assert "No such device" in stage.said[0]


def test_one_host_has_one_spelling_when_it_is_read(stage: Stage) -> None:
    stage.file.write_bytes(body(members=[[*ENTRY[:2], "::ffff:10.0.0.1", 7946]]))
    assert stage.read() == (ADA,)


def test_a_full_disk_is_said_once_and_again_when_it_is_over(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.write(ADA)

    def refuse(_path: Path, _data: bytes, *, is_durable: bool) -> None:
        assert not is_durable, "an idle disk is not worth whom a node knew"
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(module, "replace_file", refuse)
        stage.write(BOB)
        stage.write(BOB)
    assert len(stage.said) == 1
    assert "No space left" in stage.said[0]
    assert stage.read() == (ADA,)
    stage.write(BOB)
    assert "can be written again" in stage.said[1]
    assert stage.read() == (BOB,)
