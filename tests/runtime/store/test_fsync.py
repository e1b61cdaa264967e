"""An fsync happens when it was promised, before the answer, and otherwise not: as the kernel saw it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.runtime.store import scribes

_SYNC = re.compile(r"(?:fsync|fdatasync)\(\d+<[^>]*-wal>\) = 0")
_ACK = re.compile(r'write\(1<[^>]*>, "ack (\d+) (\d+)\\n"')


@dataclass
class Commit:
    """One commit: the fsyncs of the log since the last, and the tickets that were acknowledged after them."""

    syncs: int = 0
    tickets: list[int] = field(default_factory=list)


@pytest.fixture(autouse=True)
def strace() -> None:
    scribes.skip_unless("strace sees the system's calls", "strace", "-o", "/dev/null", "true")


def trace(path: Path, count: int, durability: str, *options: str) -> list[Commit]:
    """Run a scribe and return its commits in order, as the kernel saw them."""
    trace_file = path.with_name("trace")
    argv = ["strace", "-f", "-y", "-s", "100", "-e", "trace=fsync,fdatasync,write", *options]
    done = scribes.run(*argv, "-o", str(trace_file), *scribes.command_of(path, count, durability))
    assert not done.stderr, done.stderr
    commits: dict[str, Commit] = {}
    syncs = 0
    for line in trace_file.read_text().splitlines():
        if _SYNC.search(line):
            syncs += 1
        elif found := _ACK.search(line):
            commit = commits.setdefault(found[2], Commit(syncs))
            commit.tickets.append(int(found[1]))
            syncs = 0
    return list(commits.values())


def test_each_commit_is_fsynced_once_before_it_is_acknowledged(tmp_path: Path) -> None:
    commits = trace(tmp_path / "store", 40, "fsync")
    assert [ticket for commit in commits for ticket in commit.tickets] == list(range(1, 41))
    assert len(commits) >= 40 / 4  # so many are under way at once
    assert commits[0].syncs >= 1  # with those of the store that was made
    assert {commit.syncs for commit in commits[1:]} == {1}


def test_what_asks_for_no_fsync_gets_none(tmp_path: Path) -> None:
    commits = trace(tmp_path / "store", 40, "memory")
    assert sum(len(commit.tickets) for commit in commits) == 40
    assert {commit.syncs for commit in commits[1:]} == {0}


def test_one_that_asks_has_its_whole_group_fsynced(tmp_path: Path) -> None:
    commits = trace(tmp_path / "store", 60, "mixed")
    assert sum(len(commit.tickets) for commit in commits) == 60
    for commit in commits[1:]:
        assert commit.syncs == any(ticket % 3 == 0 for ticket in commit.tickets), commit
    assert {commit.syncs for commit in commits[1:]} >= {1}


@pytest.mark.parametrize("when", [9, 12])
def test_an_fsync_that_fails_is_never_reported_as_committed(tmp_path: Path, when: int) -> None:
    path = tmp_path / "store"
    scribes.write(path, 1)
    inject = f"inject=fdatasync:error=EIO:when={when}+"
    argv = ["strace", "-f", "-e", inject, "-o", str(tmp_path / "trace")]
    done = scribes.run(*argv, *scribes.command_of(path, 1000))
    said = scribes.read(done.stdout)
    trace_text = (tmp_path / "trace").read_text()
    fine = [
        line for line in trace_text.splitlines() if re.search(r"fdatasync(\(| resumed).*= 0", line)
    ]
    assert len(fine) == when - 1, "the fault comes once the scribe writes"
    assert said.failure == "StoreDiskError", done.stderr
    assert "a disk that works is expected" in said.reason
    assert "SQLITE_IOERR_FSYNC" in said.reason
    assert 0 < len(said.acknowledged) < 1000
    again = scribes.write(path, 1)  # what is there may be more than was said, and never less
    assert again.records >= 2 + len(said.acknowledged)
    assert len(again.acknowledged) == 1
