"""The results of `mesh bench contest`: who was the fittest, the JSON, the table, the figure, and what is asked for."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from mesh.bench import contest as driver
from mesh.bench.contest import ContestSettings, measure
from mesh.bench.contest_figure import contest_figure
from mesh.bench.contest_results import (
    Result,
    contest_json,
    contest_text,
    is_fittest,
    mesh_result,
    plain_result,
)
from mesh.bench.contest_world import NETWORKS, Contested, Setting, Timeline
from mesh.bench.plain_contest import Outcome
from mesh.bench.progress import Lines
from mesh.cli import bench_contest
from mesh.cli.main import EXIT_FAILED, EXIT_USAGE, main

SETTING = Setting(4, "lan", 0.01)
SCORES = (0.9, 0.95, 0.5, None)
KEYS = {
    "scheme",
    "nodes",
    "network",
    "loss",
    "bids",
    "fittest",
    "grant_ms",
    "two_owners",
}


def contested(winner: int | None, bids: int = 1, grant_s: float | None = 0.006) -> Contested:
    return Contested(
        task_id="t",
        caller=0,
        called=(0, 2),
        scores=SCORES,
        bids=bids,
        rounds=1,
        is_first_window=True,
        winner=winner,
        grant_s=None if winner is None else grant_s,
        late=0,
        story={},
    )


CONTESTS = [contested(0), contested(2, bids=3), contested(None), contested(0, bids=0)]
OUTCOMES = [
    Outcome(owners=(1,), answers=3, grant_s=0.11),
    Outcome(owners=(2, 1), answers=3, grant_s=0.11),
    Outcome(owners=(), answers=0, grant_s=None),
    Outcome(owners=(1,), answers=2, grant_s=0.12),
]
MESH = mesh_result(SETTING, CONTESTS, [0.01, 0.02], 0)
PLAIN = plain_result(SETTING, CONTESTS, OUTCOMES)


def test_the_fittest_is_in_the_highest_bucket_of_all_or_of_some() -> None:
    assert is_fittest(SCORES, 0), "0.9 and 0.95 are of one bucket"
    assert is_fittest(SCORES, 1)
    assert not is_fittest(SCORES, 2)
    assert is_fittest(SCORES, 2, among=(2, 3))
    assert not is_fittest(SCORES, 3), "it could not take anything"
    assert not is_fittest(SCORES, None)


def test_the_oracle_knows_the_vitals_of_each_moment_however_late_a_call_was() -> None:
    timeline = Timeline()
    for at_s, vitals in (
        (1.0, [(2, 10, 0), (1, 50, 0)]),
        (2.0, [(1, 10, 0), (1, 50, 0)]),
        (9.0, [(2, 10, 0), (1, 60, 0)]),
    ):
        timeline.note(at_s, vitals)
    assert timeline.at(0.5) == timeline.at(1.0) == timeline.at(1.9) == [(2, 10, 0), (1, 50, 0)]
    assert timeline.at(2.0) == timeline.at(8.9) == [(1, 10, 0), (1, 50, 0)]
    assert timeline.at(99.0) == [(2, 10, 0), (1, 60, 0)]


def test_results_count_what_was_granted() -> None:
    assert (MESH.contests, MESH.granted, MESH.two_owners) == (4, 3, 0)
    assert MESH.bids == pytest.approx((1 + 3 + 1) / 3), "whoever won has bid, heard or not"
    assert MESH.fittest == pytest.approx(2 / 3)
    assert MESH.grant_ms == pytest.approx(6)
    assert MESH.start_ms == pytest.approx(15)
    assert (PLAIN.contests, PLAIN.granted, PLAIN.two_owners) == (4, 3, 1)
    assert PLAIN.bids == pytest.approx(2)
    assert PLAIN.fittest == pytest.approx(2 / 3)


def test_json_has_the_keys_that_programs_rely_on() -> None:
    settings = ContestSettings(nodes=(4,), networks=("lan",), losses_pct=(1.0,))
    found = json.loads(json.dumps(contest_json(settings.to_json(), [MESH, PLAIN])))
    assert found["settings"]["nodes"] == [4]
    assert [one["scheme"] for one in found["results"]] == ["mesh", "plain"]
    for one in found["results"]:
        assert one.keys() >= KEYS
        assert (one["nodes"], one["network"], one["loss"]) == (4, "lan", 0.01)


def test_what_was_never_reached_is_null_and_a_dash() -> None:
    empty = mesh_result(SETTING, [], [], 0)
    assert empty.to_json()["grant_ms"] is None
    row = contest_text([empty]).splitlines()[-1]
    assert row.startswith("| mesh | 4 | lan | 1 % | 0 | - | - |")


def test_the_figure_draws_each_scheme_on_each_network() -> None:
    others = [
        mesh_result(Setting(nodes, network, 0.05), CONTESTS, [], 0)
        for nodes in (4, 40)
        for network in NETWORKS
    ]
    image = ET.fromstring(contest_figure([MESH, PLAIN, *others], "a <title> & more"))
    text = "".join(image.itertext())
    assert "a <title> & more" in text
    for part in ("lan: bids in a contest", "wan: two owners, %", "plain, 1 % lost"):
        assert part in text
    dots = image.iter("{http://www.w3.org/2000/svg}circle")
    places = [(float(dot.attrib["cx"]), float(dot.attrib["cy"])) for dot in dots]
    assert len(places) == 4 * 6
    width, height = float(image.attrib["width"]), float(image.attrib["height"])
    assert all(0 < x < width and 0 < y < height for x, y in places)


def test_all_meshes_are_measured_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int, Setting]] = []

    def measure_one(seed: int, contests: int, setting: Setting) -> tuple[Result, Result]:
        asked.append((seed, contests, setting))
        return MESH, PLAIN

    monkeypatch.setattr(driver, "measure_one", measure_one)
    settings = ContestSettings(nodes=(5, 7), networks=("wan",), losses_pct=(0, 5), contests=9)
    assert measure(settings, Lines()) == [MESH, PLAIN] * 4
    assert asked == [(1, 9, Setting(n, "wan", loss)) for n in (5, 7) for loss in (0, 0.05)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--nodes", "2"], "--nodes expects a whole number from 3"),
        (["--nodes", "5,,7"], "--nodes expects one value or more, apart by commas"),
        (["--network", "moon"], "--network is one or more of lan, wan, found 'moon'"),
        (["--loss", "-1"], "--loss"),
        (["--loss", "50"], "--loss expects a number from 0 to 20"),
        (["--contests", "0"], "--contests expects a whole number from 1"),
        (["--json", "/nowhere/at/all"], "a file that can be written is expected"),
    ],
)
def test_wrong_input_is_refused_before_anything_is_measured(
    words: list[str],
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(driver, "measure", None)
    assert main(["bench", "contest", *words]) == EXIT_USAGE
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(("two_owners", "exit_code"), [(0, 0), (1, EXIT_FAILED)])
def test_the_exit_code_says_whether_a_task_ever_had_two_owners(
    two_owners: int,
    exit_code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = [mesh_result(SETTING, CONTESTS, [], two_owners), PLAIN]
    asked: list[ContestSettings] = []

    def measured(settings: ContestSettings, _progress: object) -> list[Result]:
        asked.append(settings)
        return found

    monkeypatch.setattr(driver, "measure", measured)
    words = ["--nodes", "5,5,9", "--network", "lan", "--loss", "0,1.5", "--seed", "7"]
    files = ["--json", str(tmp_path / "j"), "--svg", str(tmp_path / "s")]
    assert main(["bench", "contest", *words, *files]) == exit_code
    assert asked == [
        ContestSettings(nodes=(5, 9), networks=("lan",), losses_pct=(0.0, 1.5), seed=7)
    ]
    assert len(json.loads((tmp_path / "j").read_text())["results"]) == 2
    ET.fromstring((tmp_path / "s").read_text())
    assert contest_text(found) in capsys.readouterr().out


def test_the_command_knows_the_networks_that_can_be_measured() -> None:
    assert tuple(NETWORKS) == bench_contest.NETWORKS
    assert bench_contest.NODES_MIN == driver.NODES_MIN
