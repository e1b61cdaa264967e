"""The data directory: identity, boot numbers, the lock, and every way it can be unusable."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from mesh.core.limits import BOOT_MAX
from mesh.errors import DataDirectoryError, LocalProtocolError
from mesh.runtime.datadir import FORMAT, STORE_NAME, open_data_dir


def identity_of(path: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((path / "identity").read_text())
    return found


def test_a_new_directory_is_private_and_holds_a_fresh_identity(tmp_path: Path) -> None:
    data = open_data_dir(tmp_path / "a" / "b", 1_000.7)
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    assert data.node_id != 0
    assert data.boot == 1_001
    assert data.mesh_id == 0
    assert identity_of(data.path) == {
        "format": FORMAT,
        "node_id": f"{data.node_id:016x}",
        "boot": 1_001,
        "mesh_id": "",
        "founder": False,
        "store": "",
        "position": 0,
        "name": "",
    }
    data.close()


def test_each_start_takes_a_greater_boot_and_keeps_the_id(tmp_path: Path) -> None:
    first = open_data_dir(tmp_path, 1_000)
    first.close()
    second = open_data_dir(tmp_path, 5)  # the clock went back
    second.close()
    third = open_data_dir(tmp_path, 9_000)
    third.close()
    assert first.node_id == second.node_id == third.node_id
    assert (first.boot, second.boot, third.boot) == (1_001, 1_002, 9_001)


def test_the_name_that_was_given_is_kept_until_another_one_is(tmp_path: Path) -> None:
    names = []
    for given in (None, "n1", None, "n2", None):
        data = open_data_dir(tmp_path, 1_000, given)
        data.persist({"mesh_id": 0xABC})
        data.close()
        names.append(data.identity.name)
    assert names == ["", "n1", "n1", "n2", "n2"]
    assert identity_of(tmp_path)["name"] == "n2"


def test_a_directory_that_keeps_no_name_yet_is_opened_as_before(tmp_path: Path) -> None:
    open_data_dir(tmp_path, 1_000).close()
    body = identity_of(tmp_path) | {"format": 2}
    del body["name"]
    (tmp_path / "identity").write_text(json.dumps(body))
    data = open_data_dir(tmp_path, 1_000)
    data.close()
    assert (data.identity.name, identity_of(tmp_path)["format"]) == ("", FORMAT)


@pytest.mark.parametrize("name", [5, None, "two\nlines", "x" * 65])
def test_a_name_that_no_member_may_have_is_damage(tmp_path: Path, name: object) -> None:
    open_data_dir(tmp_path, 1_000).close()
    (tmp_path / "identity").write_text(json.dumps(identity_of(tmp_path) | {"name": name}))
    with pytest.raises(DataDirectoryError, match="is damaged"):
        open_data_dir(tmp_path, 1_000)


@pytest.mark.parametrize("unix_time", [-2e9, -1.0, 0.0, 4.3e9, 2.5e11])
def test_a_wall_clock_that_is_far_off_gives_a_greater_boot_all_the_same(
    tmp_path: Path, unix_time: float
) -> None:
    boots = []
    for shown in (unix_time, 1.7e9, unix_time, unix_time - 60.0, 1.7e9):
        data = open_data_dir(tmp_path, shown)
        data.close()
        boots.append(data.boot)
    assert boots == sorted(set(boots))
    assert boots[0] > 0


def test_what_is_persisted_is_there_after_a_restart(tmp_path: Path) -> None:
    data = open_data_dir(tmp_path, 1)
    data.persist({"mesh_id": 0xABC})
    data.persist({"boot": 77})
    data.close()
    again = open_data_dir(tmp_path, 1)
    again.close()
    assert (again.mesh_id, again.boot) == (0xABC, 78)


def test_who_founded_its_mesh_is_its_founder_until_it_belongs_to_another(tmp_path: Path) -> None:
    data = open_data_dir(tmp_path, 1)
    data.persist({"mesh_id": 0xABC, "founder": 1})
    data.persist({"boot": 77})
    data.close()
    again = open_data_dir(tmp_path, 1)
    was_founder = again.identity.is_founder
    again.persist({"mesh_id": 0xDEF})
    again.close()
    assert (was_founder, again.identity.is_founder) == (True, False)


def test_which_store_holds_the_votes_is_noted_beside_who_the_node_is(tmp_path: Path) -> None:
    data = open_data_dir(tmp_path, 1)
    assert (data.identity.store, data.identity.position) == (None, 0)
    data.note_store(b"s" * 16, 12)
    data.persist({"mesh_id": 5})
    data.close()
    again = open_data_dir(tmp_path, 1)
    again.close()
    assert (again.mesh_id, again.identity.store, again.identity.position) == (5, b"s" * 16, 12)


def test_identity_of_the_first_format_is_read_and_has_no_store(tmp_path: Path) -> None:
    first = {"format": 1, "node_id": "00000000000000ab", "boot": 7, "mesh_id": "00000000000000cd"}
    (tmp_path / "identity").write_text(json.dumps(first))
    data = open_data_dir(tmp_path, 1)
    data.close()
    assert (data.node_id, data.boot, data.mesh_id) == (0xAB, 8, 0xCD)
    assert (data.identity.store, data.identity.is_founder) == (None, False)
    assert identity_of(tmp_path)["format"] == FORMAT


@pytest.mark.parametrize(
    "wrong",
    [
        {"store": None},
        {"store": "ab"},
        {"store": "G" * 32},
        {"store": 7},
        {"position": -1},
        {"position": "3"},
        {"position": True},
        {"founder": 1},
    ],
)
def test_what_is_said_of_the_store_is_whole_or_nothing_is_believed(
    tmp_path: Path, wrong: dict[str, object]
) -> None:
    open_data_dir(tmp_path, 1).close()
    (tmp_path / "identity").write_text(json.dumps(identity_of(tmp_path) | wrong))
    with pytest.raises(DataDirectoryError, match=f"damaged.*{next(iter(wrong))}"):
        open_data_dir(tmp_path, 1)


def test_only_known_values_are_persisted(tmp_path: Path) -> None:
    data = open_data_dir(tmp_path, 1)
    with pytest.raises(LocalProtocolError):
        data.persist({"colour": 3})
    data.close()


def test_a_directory_in_use_names_the_process_that_holds_it(tmp_path: Path) -> None:
    data = open_data_dir(tmp_path, 1)
    before = identity_of(tmp_path)
    with pytest.raises(DataDirectoryError, match=f"in use by process {os.getpid()}"):
        open_data_dir(tmp_path, 1)
    assert identity_of(tmp_path) == before
    data.close()
    open_data_dir(tmp_path, 1).close()


def test_a_foreign_directory_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(DataDirectoryError, match=r"no data directory of Mesh.*thesis\.tex"):
        open_data_dir(tmp_path, 1)
    assert os.listdir(tmp_path) == ["thesis.tex"]  # noqa: PTH208 - names are wanted


def test_votes_without_the_identity_that_gave_them_are_refused(tmp_path: Path) -> None:
    (tmp_path / STORE_NAME).mkdir()
    with pytest.raises(DataDirectoryError, match="found store"):
        open_data_dir(tmp_path, 1)


def test_a_start_that_died_between_lock_and_identity_is_no_foreign_directory(
    tmp_path: Path,
) -> None:
    (tmp_path / "lock").write_text("1")
    (tmp_path / "identity.new").write_text("{")
    open_data_dir(tmp_path, 1).close()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\x00\xff",
        b"[]",
        b"[" * 3_000,
        b'{"format": "1"}',
        b'{"format": 1}',
        b'{"format": 1, "node_id": "xyz", "boot": 1, "mesh_id": ""}',
        b'{"format": 1, "node_id": "0000000000000000", "boot": 1, "mesh_id": ""}',
        b'{"format": 1, "node_id": "00000000000000ab", "boot": -1, "mesh_id": ""}',
        b'{"format": 1, "node_id": "00000000000000ab", "boot": 1, "mesh_id": 5}',
        b'{"format": 1, "node_id": "00000000000000ab", "boot": 281474976710656, "mesh_id": ""}',
    ],
)
def test_a_damaged_identity_is_refused_and_kept(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "identity").write_bytes(text)
    with pytest.raises(DataDirectoryError, match=r"damaged.*expected.*found"):
        open_data_dir(tmp_path, 1)
    assert (tmp_path / "identity").read_bytes() == text


def test_a_newer_format_says_to_upgrade(tmp_path: Path) -> None:
    (tmp_path / "identity").write_text(json.dumps({"format": FORMAT + 1}))
    with pytest.raises(DataDirectoryError, match=r"newer Mesh.*upgrade"):
        open_data_dir(tmp_path, 1)


def test_an_identity_that_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "identity").mkdir()
    with pytest.raises(DataDirectoryError, match="damaged"):
        open_data_dir(tmp_path, 1)


def test_a_path_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataDirectoryError, match="Not a directory"):
        open_data_dir(tmp_path / "file" / "data", 1)


def test_an_unreadable_identity_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_data_dir(tmp_path, 1).close()
    real_open = os.open

    def refuse(path: str | Path, flags: int, mode: int = 0o777) -> int:
        if str(path).endswith("identity"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real_open(path, flags, mode)  # a stand-in

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(DataDirectoryError, match=r"can be read.*Permission denied"):
        open_data_dir(tmp_path, 1)


def test_a_full_disk_is_said_and_the_old_identity_survives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = open_data_dir(tmp_path, 1)
    before = identity_of(tmp_path)

    def full(_fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataDirectoryError, match="No space left on device"):
        data.persist({"mesh_id": 5})
    assert data.mesh_id == 0
    assert identity_of(tmp_path) == before
    with pytest.raises(DataDirectoryError):
        open_data_dir(tmp_path / "new", 1)
    data.close()


@pytest.mark.parametrize("left", [0, 1, 1_000])
def test_a_directory_whose_session_numbers_are_used_up_says_so(tmp_path: Path, left: int) -> None:
    open_data_dir(tmp_path, 1).close()
    found = identity_of(tmp_path) | {"boot": BOOT_MAX - left}
    (tmp_path / "identity").write_text(json.dumps(found))
    with pytest.raises(DataDirectoryError, match="each start takes a greater one"):
        open_data_dir(tmp_path, 1)


@pytest.mark.parametrize(
    "text",
    [
        "0x12345678901234",
        "1234_5678_9012_34",
        " 123456789012345",
        "-123456789012345",
        "ABCDEF0123456789",
        "\u0661" * 16,
    ],
)
@pytest.mark.parametrize("field", ["node_id", "mesh_id"])
def test_an_id_is_sixteen_lower_case_digits_and_nothing_else(
    tmp_path: Path, field: str, text: str
) -> None:
    open_data_dir(tmp_path, 1).close()
    (tmp_path / "identity").write_text(json.dumps(identity_of(tmp_path) | {field: text}))
    with pytest.raises(DataDirectoryError, match="damaged"):
        open_data_dir(tmp_path, 1)


def test_what_is_on_disk_already_is_not_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = open_data_dir(tmp_path, 1)
    data.persist({"mesh_id": 5})

    def fail(_fd: int) -> None:
        raise AssertionError("the disk was asked")

    monkeypatch.setattr(os, "fsync", fail)
    data.persist({"mesh_id": 5})
    data.persist({"boot": data.boot})
    data.close()


async def test_pipe_in_the_way_of_a_new_identity_holds_up_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "identity.new")
    with trio.fail_after(10), pytest.raises(DataDirectoryError, match="No such device"):
        await trio.to_thread.run_sync(open_data_dir, tmp_path, 1_000.0, abandon_on_cancel=True)


def test_node_whose_directory_was_removed_writes_nothing_over_who_another_is_there(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a"
    first = open_data_dir(path, 1)
    shutil.rmtree(path)
    second = open_data_dir(path, 1)
    with suppress(DataDirectoryError):
        first.note_store(b"s" * 16, 7)
    found = identity_of(path)
    first.close()
    second.close()
    assert (found["node_id"], found["store"]) == (f"{second.node_id:016x}", "")


@pytest.mark.parametrize("is_replaced", [False, True])
def test_node_whose_directory_was_removed_says_so_and_writes_nothing(
    tmp_path: Path, *, is_replaced: bool
) -> None:
    path = tmp_path / "a"
    first = open_data_dir(path, 1)
    path.rename(tmp_path / "away")
    path.mkdir()
    if is_replaced:
        open_data_dir(path, 1).close()
    before = sorted(entry.name for entry in path.iterdir())
    found = "another file" if is_replaced else "No such file"
    with pytest.raises(DataDirectoryError, match=f"expected, found: {found}.*look at who did"):
        first.note_store(b"s" * 16, 7)
    with pytest.raises(DataDirectoryError, match=f"expected, found: {found}.*look at who did"):
        first.persist({"mesh_id": 5})
    assert sorted(entry.name for entry in path.iterdir()) == before
    assert (first.mesh_id, first.identity.store) == (0, None)
    if not is_replaced:
        path.rmdir()
        (tmp_path / "away").rename(path)  # it was moved away, and is back
        first.persist({"mesh_id": 5})
        assert first.mesh_id == 5
    first.close()


def test_directory_that_is_closed_is_written_no_more(tmp_path: Path) -> None:
    data = open_data_dir(tmp_path, 1)
    data.close()
    with pytest.raises(LocalProtocolError, match="while its lock is held"):
        data.persist({"mesh_id": 5})
