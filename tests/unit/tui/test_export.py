"""The picture of the screen."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from mesh.tui.export import export_svg, main
from tests.unit.tui.boards import board_of, member_json, small_board


def test_picture_holds_the_screen_and_fetches_nothing(tmp_path: Path) -> None:
    path = tmp_path / "screen.svg"
    export_svg(small_board(), 100, 30, path, zone=UTC)
    svg = path.read_text(encoding="utf-8")
    space = "{http://www.w3.org/XML/1998/namespace}space"
    assert ET.fromstring(svg).get(space) == "preserve"
    assert "members" in svg
    assert "suspects" in svg
    assert "@font-face" not in svg
    assert "https://" not in svg.replace("https://www.textualize.io", "")


def test_picture_is_the_same_every_time(tmp_path: Path) -> None:
    paths = [tmp_path / "one.svg", tmp_path / "two.svg"]
    for path in paths:
        export_svg(small_board(), 100, 30, path, zone=UTC)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_markup_in_a_name_stays_text(tmp_path: Path) -> None:
    path = tmp_path / "screen.svg"
    export_svg(board_of([member_json(2, name="<script>[red]")]), 100, 30, path, zone=UTC)
    svg = path.read_text(encoding="utf-8")
    assert "<script>" not in svg
    assert "&lt;script&gt;[red]" in svg


def test_export_without_a_node_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["--data", str(tmp_path), "--out", str(tmp_path / "a.svg")])
    assert code == 3
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "a running node is expected" in error


@pytest.mark.parametrize("size", ["100", "x", "10x10", "100x9999", "ax30"])
def test_wrong_size_is_refused(size: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as refusal:
        main(["--data", str(tmp_path), "--out", str(tmp_path / "a.svg"), "--size", size])
    assert refusal.value.code == 2
