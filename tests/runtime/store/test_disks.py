"""A disk that is full, and one that is read-only: each a real file system of the test's own."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.runtime.store import scribes


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    found = tmp_path / "disk"
    found.mkdir()
    scribes.skip_unless(
        "a mount of the test's own", "unshare", "-m", "mount", "-t", "tmpfs", "none", str(found)
    )
    return found


def on_disk(disk: Path, size: str, *steps: str) -> list[scribes.Said]:
    """Run steps in a shell that alone sees a small disk; return what each scribe among them said."""
    mount = f"mount -t tmpfs -o size={size} none {shlex.quote(str(disk))}"
    script = "; ".join([mount, *steps])
    done = scribes.run("unshare", "-m", "sh", "-c", script)
    assert not done.stderr, done.stderr
    return [scribes.read(part) for part in done.stdout.split("over\n")[:-1]]


def scribe(disk: Path, count: int) -> str:
    return f"{shlex.join(scribes.command_of(disk / 'store', count))}; echo over"


def test_a_full_disk_costs_no_write_that_was_acknowledged(disk: Path) -> None:
    spare = shlex.quote(str(disk / "spare"))
    full, again = on_disk(
        disk, "3m", f"head -c 1m /dev/zero >{spare}", scribe(disk, 20_000), f"rm {spare}", scribe(disk, 3)
    )  # fmt: skip
    assert full.failure == "StoreDiskError"
    assert "a disk with room left is expected, found it full; free some room" in full.reason
    assert full.acknowledged == list(range(1, len(full.acknowledged) + 1))
    assert len(full.acknowledged) > 100
    assert again.records >= 1 + len(full.acknowledged)
    assert again.acknowledged == [1, 2, 3]


def test_a_disk_that_was_full_before_it_began_makes_no_store(disk: Path) -> None:
    rest = f"head -c 1m /dev/zero >{shlex.quote(str(disk / 'spare'))} 2>/dev/null"
    (full,) = on_disk(disk, "64k", rest, scribe(disk, 1))
    assert full.failure == "StoreDiskError"
    assert not full.acknowledged


def test_a_read_only_disk_is_refused_at_once(disk: Path) -> None:
    remount = f"mount -o remount,ro {shlex.quote(str(disk))}"
    written, refused = on_disk(disk, "3m", scribe(disk, 5), remount, scribe(disk, 5))
    assert len(written.acknowledged) == 5
    assert refused.failure == "StoreDiskError"
    assert "Read-only file system" in refused.reason
    assert not refused.acknowledged
