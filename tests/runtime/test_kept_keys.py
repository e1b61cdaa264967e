"""DIR/keys where the disk is not what it should be: gone, full for a while, or with something else in the way."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
import trio

from mesh.errors import ConfigError, DataDirectoryError
from mesh.runtime.keystore import KEYS_NAME, KeyStore, open_keys, read_key_file
from mesh.runtime.replacing import replace_file
from mesh.runtime.settings import AgentSettings
from mesh.seal.key import Key
from mesh.seal.ring import KEYS_MAX, KeyRing, ring_of

KEY, OTHER = Key(b"k" * 32), Key(b"o" * 32)


def _full(_fd: int, _data: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _both() -> KeyRing:
    ring = ring_of([KEY])
    ring.add(OTHER)
    return ring


def _kept(directory: Path) -> list[Key]:
    found = open_keys(directory, None)
    assert found is not None
    return list(found.ring)


@pytest.mark.parametrize("target", ["/nowhere/keys", KEYS_NAME], ids=["nowhere", "itself"])
def test_link_to_a_ring_that_is_not_there_does_not_make_a_node_without_a_key(
    tmp_path: Path, target: str
) -> None:
    kept = tmp_path / KEYS_NAME
    kept.symlink_to(target)
    with pytest.raises(DataDirectoryError, match="the keys of this data directory") as caught:
        open_keys(tmp_path, None)
    assert "keygen" not in str(caught.value)  # a new key would open nothing of this mesh
    assert kept.is_symlink()
    assert not AgentSettings(data_dir=tmp_path).reach().is_loopback_only


def test_ring_that_a_full_disk_refused_is_written_once_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = KeyStore(tmp_path / KEYS_NAME, ring_of([KEY]))
    assert keys.save() == ""
    with monkeypatch.context() as patch:
        patch.setattr("mesh.runtime.keystore.os.write", _full)
        assert "a restart forgets the change; once it can, `mesh key list`" in keys.merge(_both())
        assert "No space left" in keys.save_again()
    assert _kept(tmp_path) == [KEY]
    assert keys.merge(_both()) == ""  # nothing new, but it is not kept yet
    assert set(_kept(tmp_path)) == {KEY, OTHER}


def test_what_is_kept_is_not_written_again(tmp_path: Path) -> None:
    keys = KeyStore(tmp_path / KEYS_NAME, ring_of([KEY]))
    assert keys.merge(_both()) == ""
    before = (tmp_path / KEYS_NAME).stat().st_ino
    assert (keys.merge(_both()), keys.save_again()) == ("", "")
    assert (tmp_path / KEYS_NAME).stat().st_ino == before


async def test_pipe_in_the_way_of_a_new_ring_holds_up_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / f"{KEYS_NAME}.new")
    write = trio.to_thread.run_sync
    with trio.fail_after(10), pytest.raises(OSError, match="No such device"):
        await write(replace_file, tmp_path / KEYS_NAME, b"secret", abandon_on_cancel=True)


def test_key_file_that_cannot_be_read_to_its_end_is_told_in_plain_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mesh.key"
    replace_file(path, KEY.to_text().encode())

    def broken(_fd: int, *_: object, **__: object) -> object:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("mesh.runtime.keystore.os.fdopen", broken)
    with pytest.raises(ConfigError, match=rf"can be read is expected at {path}: Input/output"):
        read_key_file(path)


def test_key_files_do_not_bring_more_keys_than_may_be_held(tmp_path: Path) -> None:
    file, data = tmp_path / "mesh.key", tmp_path / "data"
    data.mkdir()
    many = [Key(bytes([i]) * 32) for i in range(KEYS_MAX + 1)]
    replace_file(file, "\n".join(key.to_text() for key in many).encode())
    with pytest.raises(ConfigError, match=f"at most {KEYS_MAX} keys .* found {KEYS_MAX + 1}"):
        open_keys(data, file)
    assert list(data.iterdir()) == []


@pytest.mark.parametrize("key", [KEY, Key(b"\xab\xff\xff\xfa" * 8), Key(bytes(range(220, 252)))])
def test_key_in_place_of_the_name_of_its_file_is_not_repeated(key: Key) -> None:
    with pytest.raises(ConfigError, match="found a key: write it to a file") as caught:
        read_key_file(Path(key.to_text()))
    assert key.to_text()[:10] not in str(caught.value)
