"""Key files: what is read, what is refused and in which words, and what a full or closed disk does."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from mesh.core.ids import NO_MESH, MeshId
from mesh.errors import ConfigError, DataDirectoryError
from mesh.runtime.keystore import FILE_BYTES_MAX, KEYS_NAME, open_keys, read_key_file
from mesh.runtime.replacing import replace_file
from mesh.seal.key import Key
from mesh.seal.ring import KeyRing, ring_of

KEY, OTHER = Key(b"k" * 32), Key(b"o" * 32)
AS_ROOT = os.geteuid() == 0


def key_file(directory: Path, key: Key = KEY, mode: int = 0o600) -> Path:
    path = directory / "mesh.key"
    path.write_text(key.to_text() + "\n")
    path.chmod(mode)
    return path


def data_dir(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    made.mkdir(exist_ok=True)
    return made


def rotated() -> KeyRing:
    """KEY was replaced by OTHER and removed."""
    ring = ring_of([KEY])
    ring.add(OTHER)
    ring.use(OTHER.key_id)
    ring.remove(KEY.key_id)
    return ring


def test_key_file_is_read_and_kept_in_the_data_directory(tmp_path: Path) -> None:
    data = data_dir(tmp_path)
    found = open_keys(data, key_file(tmp_path))
    assert found is not None
    assert list(found.ring) == [KEY]
    kept = data / KEYS_NAME
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    again = open_keys(data, None)
    assert again is not None
    assert again.ring.digest == found.ring.digest
    assert sorted(entry.name for entry in data.iterdir()) == [KEYS_NAME]


def test_without_a_key_there_is_no_ring_and_no_file(tmp_path: Path) -> None:
    assert open_keys(data_dir(tmp_path), None) is None
    assert list(data_dir(tmp_path).iterdir()) == []


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o602, 0o660, 0o777])
def test_key_file_that_others_may_read_or_write_is_refused(tmp_path: Path, mode: int) -> None:
    path = key_file(tmp_path, mode=mode)
    with pytest.raises(ConfigError, match=rf"open to others \(mode {mode:04o}.*chmod 600"):
        read_key_file(path)


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_key_file_of_its_owner_alone_is_read(tmp_path: Path, mode: int) -> None:
    assert list(read_key_file(key_file(tmp_path, mode=mode))) == [KEY]


@pytest.mark.skipif(not AS_ROOT, reason="only root may give a file away")
def test_key_file_of_another_user_is_refused(tmp_path: Path) -> None:
    path = key_file(tmp_path)
    os.chown(path, 12345, 12345)
    with pytest.raises(ConfigError, match=r"owner 12345.* this user as owner"):
        read_key_file(path)


def test_symbolic_link_is_followed_and_the_file_behind_it_judged(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(key_file(tmp_path))
    assert list(read_key_file(link)) == [KEY]
    (tmp_path / "mesh.key").chmod(0o644)
    with pytest.raises(ConfigError, match="open to others"):
        read_key_file(link)


def _missing(path: Path) -> None:
    assert not path.exists()


def _fifo(path: Path) -> None:
    os.mkfifo(path, 0o600)


def _write(data: bytes) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.write_bytes(data)
        path.chmod(0o600)

    return make


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_missing, "No such file.*mesh keygen"),
        (lambda path: path.mkdir(0o700), "no regular file|Is a directory"),
        (_fifo, "no regular file"),
        (_write(b""), "at least one key"),
        (_write(b"# only words\n"), "at least one key"),
        (_write(b"\0\xff" * 40), "text is expected, found bytes"),
        (_write(b"no key\n"), "line 1 of the key file"),
        (_write(KEY.to_text().encode()[:-3] + b"\n"), "line 1 of the key file"),
        (_write(b"#" * (FILE_BYTES_MAX + 1)), "at most 65536 bytes"),
        (lambda path: path.symlink_to(path), "Too many levels|symbolic"),
    ],
    ids=[
        "missing",
        "directory",
        "fifo",
        "empty",
        "comment",
        "binary",
        "words",
        "cut",
        "huge",
        "loop",
    ],
)
def test_what_is_no_key_file_is_refused_in_plain_words(
    tmp_path: Path, make: Callable[[Path], None], words: str
) -> None:
    path = tmp_path / "mesh.key"
    make(path)
    with pytest.raises(ConfigError, match=words) as caught:
        read_key_file(path)
    assert str(path) in str(caught.value)
    assert KEY.to_text()[:20] not in str(caught.value)


def test_last_years_file_does_not_bring_back_a_removed_key(tmp_path: Path) -> None:
    data, old = data_dir(tmp_path), key_file(tmp_path)
    first = open_keys(data, old)
    assert first is not None
    assert first.merge(rotated()) == ""
    again = open_keys(data, old)
    assert again is not None
    assert list(again.ring) == [OTHER]


def test_file_that_gives_up_all_keys_of_the_directory_does_not_leave_the_node_without_any(
    tmp_path: Path,
) -> None:
    data = data_dir(tmp_path)
    replace_file(data / KEYS_NAME, rotated().to_text().encode())
    other = ring_of([KEY, OTHER])
    for _ in range(2):  # stamps above those of the directory
        other.use(OTHER.key_id)
        other.use(KEY.key_id)
    other.remove(OTHER.key_id)
    file = tmp_path / "mesh.key"
    replace_file(file, other.to_text().replace("key 0", "key 1").encode())
    found = open_keys(data, file)
    assert found is not None
    assert list(found.ring) == [OTHER]


def test_key_file_that_the_directory_never_knew_replaces_its_ring_and_counts_nowhere(
    tmp_path: Path,
) -> None:
    data = data_dir(tmp_path)
    first = open_keys(data, key_file(tmp_path))
    assert first is not None
    assert first.bind(MeshId(7)) == ""
    found = open_keys(data, key_file(tmp_path, OTHER))
    assert found is not None
    assert list(found.ring) == [OTHER]
    assert found.mesh_id == NO_MESH


def test_mesh_in_which_a_ring_counts_is_kept_with_it_and_no_key_of_another_host(
    tmp_path: Path,
) -> None:
    data, file = data_dir(tmp_path), key_file(tmp_path)
    first = open_keys(data, file)
    assert first is not None
    assert first.mesh_id == NO_MESH
    first.bind(MeshId(7))
    for again in (open_keys(data, None), open_keys(data, file)):
        assert again is not None
        assert again.mesh_id == MeshId(7)
    other = tmp_path / "other"
    other.mkdir()
    guest = open_keys(other, data / KEYS_NAME)  # any member's file is a key file for the next host
    assert guest is not None
    assert (list(guest.ring), guest.mesh_id) == ([KEY], NO_MESH)


def test_directory_without_its_ring_knows_the_new_key_file_alone(tmp_path: Path) -> None:
    data = data_dir(tmp_path)
    open_keys(data, key_file(tmp_path))
    (data / KEYS_NAME).unlink()
    found = open_keys(data, key_file(tmp_path, OTHER))
    assert found is not None
    assert list(found.ring) == [OTHER]


def _open_to_others(path: Path) -> None:
    _write(KEY.to_text().encode())(path)
    path.chmod(0o644)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_write(b"\0\1\2"), "expected"),
        (_write(b""), "at least one key"),
        (_open_to_others, "open to others"),
        (lambda path: path.mkdir(0o700), "no regular file|Is a directory"),
    ],
    ids=["damaged", "empty", "open to others", "directory"],
)
def test_damaged_ring_of_the_data_directory_is_told_and_not_replaced(
    tmp_path: Path, make: Callable[[Path], None], words: str
) -> None:
    data = data_dir(tmp_path)
    make(data / KEYS_NAME)
    before = (data / KEYS_NAME).stat()
    with pytest.raises(DataDirectoryError, match=f"the keys of this data directory: .*({words})"):
        open_keys(data, key_file(tmp_path))
    assert (data / KEYS_NAME).stat().st_mtime_ns == before.st_mtime_ns


def _full(_fd: int, _data: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_node_does_not_start_with_a_key_that_it_cannot_keep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, path = data_dir(tmp_path), key_file(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("mesh.runtime.keystore.os.write", _full)
        with pytest.raises(DataDirectoryError, match="No space left on device"):
            open_keys(data, path)
    assert not (data / KEYS_NAME).exists()


def test_full_disk_keeps_the_old_ring_whole_and_says_that_a_restart_forgets_the_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = data_dir(tmp_path)
    store = open_keys(data, key_file(tmp_path))
    assert store is not None
    with monkeypatch.context() as patch:
        patch.setattr("mesh.runtime.keystore.os.write", _full)
        problem = store.merge(rotated())
    assert "keys cannot be written (No space left on device): a restart forgets" in problem
    assert list(store.ring) == [OTHER]  # in memory it counts
    again = open_keys(data, None)
    assert again is not None
    assert list(again.ring) == [KEY]
    assert again.merge(store.ring) == ""  # and the next write heals it
    last = open_keys(data, None)
    assert last is not None
    assert list(last.ring) == [OTHER]


@pytest.mark.skipif(AS_ROOT, reason="root writes anywhere")
def test_read_only_directory_is_told(tmp_path: Path) -> None:
    data = data_dir(tmp_path)
    data.chmod(0o500)
    with pytest.raises(DataDirectoryError, match="Permission denied"):
        open_keys(data, key_file(tmp_path))


def test_writing_follows_no_link_and_leaves_a_file_for_its_owner_alone(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("kept")
    (tmp_path / "keys.new").symlink_to(precious)
    with pytest.raises(OSError, match=r"symbolic|loop|Too many"):
        replace_file(tmp_path / "keys", b"secret")
    assert precious.read_text() == "kept"
    (tmp_path / "keys.new").unlink()
    (tmp_path / "keys.new").write_text("left by a crash")
    (tmp_path / "keys.new").chmod(0o666)
    replace_file(tmp_path / "keys", b"secret")
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o600
    assert (tmp_path / "keys").read_bytes() == b"secret"
