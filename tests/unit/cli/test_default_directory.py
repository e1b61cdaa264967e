"""Where a command looks for its node when nobody says."""

from __future__ import annotations

from pathlib import Path

import pytest

from mesh.client import default_data_dir, default_data_dirs


def test_the_default_directory_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MESH_DATA", "/a")
    monkeypatch.setenv("XDG_DATA_HOME", "/b")
    monkeypatch.setenv("HOME", "/c")
    assert default_data_dir() == Path("/a")
    monkeypatch.setenv("MESH_DATA", "/a:/z")
    assert default_data_dirs() == (Path("/a"), Path("/z"))
    monkeypatch.delenv("MESH_DATA")
    assert default_data_dir() == Path("/b/mesh")
    monkeypatch.delenv("XDG_DATA_HOME")
    assert default_data_dir() == Path("/c/.local/share/mesh")
