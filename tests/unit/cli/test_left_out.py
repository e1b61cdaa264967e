"""Options that the last start of a node had and this one has not are named."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from mesh.cli.hints import left_out
from mesh.cli.join import _say_what_is_left_out
from mesh.client import START_NAME, last_start


@pytest.mark.parametrize(
    ("last", "given", "missing"),
    [
        ("", "join", ""),
        ("mesh join --label gpu=yes host1", "join host1", "--label"),
        ("mesh join --label a=1 --label b=2 --slots=4", "join --slots 4 --pool x", "--label"),
        ("cd /srv && mesh join --slots 4 --health-check …  # …: see '/x y'", "join --slots=2", "--health-check"),
        ("mesh join --name n1 --key k --data d --found --expect 3 --headless", "join", ""),
        ("mesh join --label 'it''s", "join", ""),
    ],
)  # fmt: skip
def test_what_is_not_kept_and_not_said_again_is_named(last: str, given: str, missing: str) -> None:
    assert left_out(last, given.split()) == missing


def test_it_is_one_line_with_the_whole_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = {"command": "mesh join --label gpu=yes", "directory": ""}
    (tmp_path / START_NAME).write_text(json.dumps(kept))
    options = argparse.Namespace(given=["join"])
    _say_what_is_left_out(options, last_start(tmp_path))
    said = capsys.readouterr().err
    assert said == (
        "mesh: this start is without --label, which the last one of this node had: mesh join --label gpu=yes\n"
    )
    _say_what_is_left_out(
        argparse.Namespace(given=["join", "--label", "a=b"]), last_start(tmp_path)
    )
    assert not capsys.readouterr().err
