"""`mesh sim`: its options, its tables and JSON, its sweeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from mesh.cli import main as program
from mesh.cli import sim
from mesh.sim import scenario

RUN = ("sim", "--nodes", "4", "--profile", "local", "--seed", "7")


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    assert program.main([*RUN, *arguments]) == 0
    found = capsys.readouterr()
    return found.out, found.err


def test_help_lists_the_faults_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert sim.FAULTS == scenario.FAULTS
    assert program.main(["sim", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert ", ".join(sim.FAULTS) in shown


@pytest.mark.parametrize("form", [(), ("--json",), ("--verbose",)])
def test_one_seed_gives_the_same_bytes_and_how_long_it_took_goes_to_stderr(
    capsys: pytest.CaptureFixture[str], form: tuple[str, ...]
) -> None:
    first, took = said(capsys, *form)
    again, _ = said(capsys, *form)
    assert first == again
    assert ("steps a second" in took) == (form != ("--json",))


def test_verbose_tells_when_each_survivor_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    quiet, _ = said(capsys)
    verbose, _ = said(capsys, "--verbose")
    assert verbose.startswith(quiet.rstrip("\n"))
    assert verbose.count(" noticed after ") == 3


def test_trace_is_written_line_by_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    said(capsys, "--trace", str(tmp_path / "one"))
    said(capsys, "--trace", str(tmp_path / "two"))
    one, two = ((tmp_path / name).read_bytes() for name in ("one", "two"))
    assert one == two
    assert one.count(b"\n") > 100


def test_mixed_run_takes_nodes_and_profile_and_draws_the_rest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = ["sim", "--scenario", "mixed", "--seed", "4", "--nodes", "6", "--profile", "local"]
    assert program.main(line) == 0
    assert "nodes 6, profile local" in capsys.readouterr().out
    assert program.main([*line, "--loss", "0.1"]) == 2
    assert "--loss is drawn by the seed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--fault", "crsh"], "found 'crsh'; did you mean crash?"),
        (["--seeds", "1..2", "--trace", "t"], "--trace is for one run"),
    ],
)
def test_wrong_run_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert program.main(["sim", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_scale_prints_a_line_for_each_size_and_writes_the_figure(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    line = ["sim", "--scale", "12,10", "--svg", str(tmp_path / "scale.svg")]
    assert program.main(line) == 0
    rows = capsys.readouterr().out.splitlines()
    assert [row.split(" | ")[0] for row in rows] == ["| members", "| ---", "| 10", "| 12"]
    assert (tmp_path / "scale.svg").read_text(encoding="utf-8").startswith("<svg")


@pytest.mark.parametrize("sizes", ["", "9", "100,", "100,20000", "many"])
def test_scale_refuses_what_is_no_list_of_sizes(
    capsys: pytest.CaptureFixture[str], sizes: str
) -> None:
    assert program.main(["sim", "--scale", sizes]) == 2
    assert "--scale expects sizes from 10 to 10000" in capsys.readouterr().err
