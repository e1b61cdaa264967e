"""The doctor: what is wrong with a data directory is found, and nothing is changed."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mesh.runtime import doctor
from mesh.runtime.datadir import open_data_dir
from mesh.runtime.doctor import Finding, check_data_dir, check_store, lock_holder, worst
from mesh.runtime.store.connection import DATABASE
from tests.runtime.store import scribes
from tests.runtime.store.told import Shop, accept, promise


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Give the data directory of a node that ran and voted, and is gone."""
    path = tmp_path / "data"
    node = open_data_dir(path, 1_000)
    with Shop(path / "store") as shop:
        node.note_store(shop.open().identity, 0)
        node.close()
        shop.write(promise(b"a", 1), accept(b"b", 2), numbers={"n": 7})
    return path


@pytest.fixture
def scribe(data: Path) -> Iterator[subprocess.Popen[str]]:
    """Give a process that writes to the store, and has begun."""
    with scribes.at_work(data / "store") as (process, output):
        for _ in range(10):
            assert output.readline().startswith(("open", "ack"))
        yield process


def named(findings: list[Finding], name: str) -> Finding:
    (found,) = (finding for finding in findings if finding.name == name)
    return found


def contents(path: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_a_directory_that_is_well_is_found_well_and_left_alone(data: Path) -> None:
    before = contents(data)
    findings = check_data_dir(data)
    assert {finding.level for finding in findings if finding.name != "room"} == {"ok"}
    assert not any(finding.advice for finding in findings if finding.level == "ok")
    assert "session 1001" in named(findings, "identity").text
    assert "2 records" in named(findings, "store").text
    assert "at commit 1; n 7" in named(findings, "position").text
    assert "no node runs" in named(findings, "node").text
    assert contents(data) == before


def test_a_directory_that_is_not_there_is_a_warning(tmp_path: Path) -> None:
    (found,) = check_data_dir(tmp_path / "nowhere")
    assert (found.level, found.name) == ("warn", "directory")
    assert not (tmp_path / "nowhere").exists()


def test_a_directory_that_was_named_and_is_not_there_is_bad(tmp_path: Path) -> None:
    (finding,) = check_data_dir(tmp_path / "none", is_named=True)
    assert finding.level == "bad"
    assert "none: a directory that can be read is expected, found: nothing" in finding.text
    assert "--data" in finding.advice


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (found,) = check_data_dir(tmp_path / "file")
    assert found.level == "bad"


def test_an_empty_directory_is_a_start(tmp_path: Path) -> None:
    findings = check_data_dir(tmp_path)
    assert "draws an identity" in named(findings, "identity").text
    assert named(findings, "store").level == "ok"


@pytest.mark.parametrize(
    ("mode", "keys_mode", "level"),
    [(0o700, 0o644, "ok"), (0o755, 0o600, "warn"), (0o755, 0o644, "bad"), (0o770, 0o600, "bad")],
)
def test_others_must_not_write_and_not_read_keys(
    data: Path, mode: int, keys_mode: int, level: str
) -> None:
    (data / "keys").write_text("secret")
    (data / "keys").chmod(keys_mode)
    data.chmod(mode)
    found = named(check_data_dir(data), "modes")
    assert found.level == level
    assert ("chmod 700" in found.advice) == (level != "ok")


def test_a_directory_of_another_user_is_found_out(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uid = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    found = named(check_data_dir(data), "owner")
    assert (found.level, str(uid + 1) in found.text) == ("bad", True)


@pytest.mark.parametrize(("limit", "level"), [(0, "ok"), (1 << 62, "bad")])
def test_little_room_is_found_out(
    data: Path, monkeypatch: pytest.MonkeyPatch, limit: int, level: str
) -> None:
    monkeypatch.setattr(doctor, "FREE_BYTES_FEW", limit)
    monkeypatch.setattr(doctor, "FREE_BYTES_MIN", limit)
    assert named(check_data_dir(data), "room").level == level


def test_an_identity_that_is_damaged_is_found_out(data: Path) -> None:
    (data / "identity").write_text("{")
    found = named(check_data_dir(data), "identity")
    assert found.level == "bad"
    assert "move the directory away" in found.advice


def test_a_record_that_rotted_is_found_out(data: Path) -> None:
    with closing(sqlite3.connect(data / "store" / DATABASE, isolation_level=None)) as found:
        found.execute("UPDATE registers SET seq = 9 WHERE key = x'62'")
    bad = named(check_data_dir(data), "store")
    assert bad.level == "bad"
    assert "checksum at key 62" in bad.text
    assert "move the data directory away" in bad.advice


def test_a_store_without_its_database_is_found_out(data: Path) -> None:
    (data / "store" / DATABASE).unlink()
    assert named(check_data_dir(data), "store").level == "bad"


def test_it_works_beside_a_node_and_does_not_disturb_it(
    data: Path, scribe: subprocess.Popen[str]
) -> None:
    node = open_data_dir(data, 2_000)
    try:
        findings = check_data_dir(data)
    finally:
        node.close()
    assert {finding.level for finding in findings if finding.name != "room"} == {"ok"}
    assert f"process {os.getpid()}" in named(findings, "node").text
    assert lock_holder(data / "store" / "lock") == scribe.pid
    assert scribe.poll() is None
    assert scribe.stdout is not None
    assert scribe.stdout.readline().startswith("ack")


def test_what_a_crash_left_is_read_with_its_log_and_not_changed(
    data: Path, scribe: subprocess.Popen[str]
) -> None:
    scribe.kill()
    scribe.wait()
    before = contents(data)
    assert any(len(text) > 0 for name, text in before.items() if name.endswith("-wal"))
    (store, position) = check_store(data / "store")
    assert (store.level, position.level) == ("ok", "ok")
    assert int(position.text.split("at commit ")[1].split(";")[0]) > 1
    assert contents(data) == before
    assert lock_holder(data / "store" / "lock") is None


def test_a_log_without_its_index_is_left_to_a_node(
    data: Path, scribe: subprocess.Popen[str]
) -> None:
    scribe.kill()
    scribe.wait()
    (data / "store" / f"{DATABASE}-shm").unlink()
    before = contents(data)
    (found,) = check_store(data / "store")
    assert found.level == "warn"
    assert contents(data) == before


def test_a_store_that_is_gone_is_bad_and_one_that_never_was_is_not(data: Path) -> None:
    shutil.rmtree(data / "store")
    found = named(check_data_dir(data), "store")
    assert found.level == "bad"
    assert "the votes of this node are not here" in found.text
    assert "start as a new node" in found.advice
    (data / "identity").unlink()
    assert named(check_data_dir(data), "store").level == "ok"


def test_a_store_that_the_node_has_not_noted_is_bad(data: Path, tmp_path: Path) -> None:
    other = open_data_dir(tmp_path / "other", 1_000)
    shutil.copytree(data / "store", other.path / "store")
    assert "has noted none" in named(check_data_dir(other.path), "store").text
    other.note_store(b"x" * 16, 0)
    assert "these are not this node's votes" in named(check_data_dir(other.path), "store").text
    other.close()


def test_an_older_copy_of_the_store_is_bad(data: Path) -> None:
    node = open_data_dir(data, 1_000)
    assert node.identity.store is not None
    node.note_store(node.identity.store, 2)
    node.close()
    found = named(check_data_dir(data), "store")
    assert (found.level, found.text.rpartition(": ")[2]) == ("bad", "this is an older copy")


def test_a_store_whose_first_start_was_cut_short_says_so(data: Path) -> None:
    shutil.rmtree(data / "store")
    (data / "store").mkdir()
    (data / "store" / DATABASE).touch()
    (found,) = check_store(data / "store")
    assert (found.level, found.advice) == ("bad", "start the node again")


def test_the_worst_counts() -> None:
    findings = [Finding("a", "warn", ""), Finding("b", "bad", ""), Finding("c", "ok", "")]
    assert [worst(findings), worst(findings[:1]), worst([])] == ["bad", "warn", "ok"]
