"""`mesh keygen FILE` where the file cannot be made or filled: plain words, and nothing left in the way."""

from __future__ import annotations

import argparse
import errno
import os
from pathlib import Path
from typing import Self

import pytest

from mesh.cli.key import run_keygen
from mesh.errors import ConfigError, MeshError


def test_place_where_no_file_can_be_made_is_told_in_plain_words(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "mesh.key"
    with pytest.raises(ConfigError, match=r"a place for a new file is expected.*No such file"):
        run_keygen(argparse.Namespace(file=str(path)))


def test_full_disk_leaves_no_empty_file_that_refuses_the_next_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mesh.key"
    options = argparse.Namespace(file=str(path))

    class Full:
        def __init__(self, fd: int, *_: object, **__: object) -> None:
            self._fd = fd

        def __enter__(self) -> Self:
            return self

        def write(self, _text: str) -> None:
            """Take it: a file says when it is closed that the disk is full."""

        def __exit__(self, *_: object) -> None:
            os.close(self._fd)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("mesh.cli.key.os.fdopen", Full)
        with pytest.raises(MeshError, match=r"No space left.*was removed: make room"):
            run_keygen(options)
    assert not path.exists()
    assert run_keygen(options) == 0
    assert path.read_text().endswith("=\n")
