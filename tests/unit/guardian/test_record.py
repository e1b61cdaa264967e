"""A record says what was running, of this run of the host only, whatever its end looks like."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from mesh.guardian.process import carries
from mesh.guardian.record import Leftovers, Record, host_boot_id, load, parse


def test_what_has_ended_is_struck_out() -> None:
    found = parse("host h\nmark 1.2\nrun 10 100\nrun 11 101\nend 10 100\n", "h")
    assert list(found.leaders) == [(11, 101)]
    assert list(found.marks) == ["1.2"]


def test_under_another_run_of_the_host_nothing_is_left() -> None:
    found = parse("host h\nmark 1.2\nrun 10 100\n", "g")
    assert not found.leaders
    assert not found.marks


@pytest.mark.parametrize(
    "line", ["", "run", "run 1", "run -1 2", "run 1 2 3", "ru", "mark", "mark "]
)
def test_a_line_that_was_torn_is_overlooked(line: str) -> None:
    found = parse(f"host h\nrun 10 100\n{line}", "h")
    assert list(found.leaders) == [(10, 100)]
    assert not found.marks


def test_a_file_of_garbage_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "record"
    path.write_bytes(bytes(range(256)) * 50)
    assert not load(str(path)).leaders


def test_no_file_says_nothing(tmp_path: Path) -> None:
    assert not load(str(tmp_path / "record")).leaders


def test_a_record_is_written_only_once_it_has_begun(tmp_path: Path) -> None:
    path = tmp_path / "record"
    record = Record(str(path), "1.2")
    record.add((10, 100))
    assert not path.exists()
    record.begin(Leftovers())
    record.add((11, 101))
    record.drop((10, 100))
    found = load(str(path))
    assert list(found.leaders) == [(11, 101)]
    assert list(found.marks) == ["1.2"]


def test_what_could_not_be_cleared_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "record"
    record = Record(str(path), "3.4")
    record.begin(parse("host h\nmark 1.2\nrun 10 100\n", "h"))
    found = load(str(path))
    assert list(found.leaders) == [(10, 100)]
    assert set(found.marks) == {"1.2", "3.4"}


def test_a_record_does_not_grow_without_end(tmp_path: Path) -> None:
    path = tmp_path / "record"
    record = Record(str(path), "1.2")
    record.begin(Leftovers())
    record.add((1, 1))
    for pid in range(10, 5000):
        record.add((pid, 100))
        record.drop((pid, 100))
    assert path.stat().st_size < 30_000
    assert list(load(str(path)).leaders) == [(1, 1)]
    assert path.read_text().startswith(f"host {host_boot_id()}\n")
    assert [entry.name for entry in tmp_path.iterdir()] == ["record"]


def test_a_record_whose_beginning_failed_is_begun_with_the_next_run(tmp_path: Path) -> None:
    path = tmp_path / "later" / "record"
    record = Record(str(path), "1.2")
    record.repair()  # nothing has begun: nothing is written
    with pytest.raises(FileNotFoundError):
        record.begin(Leftovers())
    with pytest.raises(FileNotFoundError):
        record.add((10, 100))
    path.parent.mkdir()
    record.add((11, 101))
    assert list(load(str(path)).leaders) == [(10, 100), (11, 101)]
    assert list(load(str(path)).marks) == ["1.2"]


def test_a_line_that_was_written_in_half_does_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "record"
    record = Record(str(path), "1.2")
    record.begin(Leftovers())
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, text: write(fd, text[:5]))
        record.add((10, 100))
    record.add((11, 101))
    assert list(load(str(path)).leaders) == [(10, 100), (11, 101)]


@pytest.mark.parametrize("before_bytes", [0, 65_500, 65_520, 65_536, 131_060, 900_000])
def test_a_mark_is_found_wherever_it_stands(before_bytes: int) -> None:
    """An environment is read in pieces, and a mark may lie across two of them."""
    one = 100_000
    sizes = [min(one, before_bytes - at) for at in range(0, before_bytes, one)]
    env = {f"A{number}": "a" * size for number, size in enumerate(sizes)}
    with subprocess.Popen(
        ["/bin/cat"],
        env={**env, "MARK": "1.2"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"x")
        assert process.stdout.read(1) == b"x"  # it runs, and has its environment
        assert carries(process.pid, (b"MARK=0", b"MARK=1.2"))
        assert not carries(process.pid, (b"MARK=1.", b"ARK=1.2", b"MARK=1.23"))
        process.kill()
