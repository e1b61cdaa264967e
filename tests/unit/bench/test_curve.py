"""The curve: pauses, points, the table, the JSON shape, the figure, and what a curve is asked."""

from __future__ import annotations

import argparse
import itertools
import json
import random
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from mesh.bench.curve import MULTIPLIERS, TOLERANCES_S, CurveSettings
from mesh.bench.curve_figure import HEIGHT, WIDTH, X_TITLE, Y_TITLE, curve_figure
from mesh.bench.pauses import LENGTH_S, Pause, accused_pauses, plan_pauses
from mesh.bench.points import Point, curve_json, curve_text
from mesh.bench.records import Round
from mesh.bench.sightings import Sight, Sighting
from mesh.cli.bench_curve import curve_settings_of
from mesh.cli.main import build_parser
from mesh.errors import ConfigError

LOST = Round(fault="host", victim="n1", noticed_ms={"n2": 1000.0, "n3": 1400.0})
SLOWER = Round(fault="host", victim="n2", noticed_ms={"n1": 2000.0, "n3": 2600.0})
POINT = Point(
    name="mesh",
    setting="0.4 s",
    member_hours=0.05,
    pauses=40,
    accused=3,
    verdicts=9,
    rounds=(LOST, SLOWER),
)
PEER = Point(name="serf", setting="", member_hours=0.05, pauses=40, rounds=(LOST,))
FAILED = Point(name="memberlist", setting="x1", failure="n1 ended by itself")


@pytest.mark.parametrize("profile", ["local", "lan", "wan"])
def test_pauses_of_one_member_are_apart_within_bounds_and_end_in_time(profile: str) -> None:
    shortest_s, longest_s = LENGTH_S[profile]
    seconds = 20 * longest_s
    plan = plan_pauses(("a", "b"), seconds, LENGTH_S[profile], random.Random(1))
    assert plan == plan_pauses(("a", "b"), seconds, LENGTH_S[profile], random.Random(1))
    assert [pause.start for pause in plan] == sorted(pause.start for pause in plan)
    for member in ("a", "b"):
        own = [pause for pause in plan if pause.member == member]
        assert len(own) > 10
        assert all(shortest_s - 1e-9 <= one.end - one.start <= longest_s + 1e-9 for one in own)
        assert all(before.end < after.start for before, after in itertools.pairwise(own))
        assert own[-1].end <= seconds


def test_short_time_has_no_pause() -> None:
    assert plan_pauses(("a",), 0.0, (1.0, 2.0), random.Random(1)) == []


def test_verdicts_belong_to_the_latest_pause_before_them_and_count_once() -> None:
    pauses = [Pause(100, 200, "a"), Pause(300, 400, "a"), Pause(150, 160, "b")]
    seen = [
        Sighting(190, "c", Sight.DEAD, "a"),
        Sighting(195, "d", Sight.DEAD, "a"),  # the same pause, seen by another
        Sighting(299, "c", Sight.DEAD, "a"),  # after it, and still of it
        Sighting(310, "c", Sight.SUSPECT, "a"),
        Sighting(155, "c", Sight.ALIVE, "b"),
        Sighting(50, "a", Sight.DEAD, "b"),  # before anything was done to it
        Sighting(60, "a", Sight.DEAD, "c"),
    ]
    assert accused_pauses(seen, pauses) == {("a", 100), ("b", 0.0), ("c", 0.0)}


def test_a_point_counts_the_slow_and_the_healthy_apart() -> None:
    seen = [Sighting(1, "c", Sight.DEAD, "a"), Sighting(1, "c", Sight.SUSPECT, "a")]
    found = Point(name="mesh", setting="1 s").slowed(
        slow=("a", "b"),
        seconds=90.0,
        pauses=[Pause(1, 2, "a"), Pause(3, 4, "b")],
        accused={("a", 1), ("a", 3), ("b", 0.0), ("c", 0.0)},
        seen=seen,
    )
    assert (found.accused, found.healthy_accused, found.verdicts, found.pauses) == (2, 2, 1, 2)
    assert found.member_hours == pytest.approx(0.05)
    assert found.accused_per_hour == pytest.approx(40.0)
    assert "held dead for 2 of 2 pauses  HEALTHY MEMBERS HELD DEAD 2" in found.slow_line


def test_detection_is_the_median_over_rounds() -> None:
    assert POINT.noticed.first_ms == 1500.0
    assert POINT.noticed.last_ms == 2000.0
    assert FAILED.noticed.last_ms is None
    assert FAILED.accused_per_hour is None


def test_the_table_has_a_row_for_each_setting_and_tells_who_failed() -> None:
    text = curve_text([POINT, PEER, FAILED])
    rows = [line.split() for line in text.splitlines()]
    assert rows[1] == ["mesh", "0.4", "s", "1.50", "2.00", "40", "3", "60", "9", "0", "0"]
    assert rows[2] == ["serf", "its", "own", "1.00", "1.40", "40", "0", "0", "0", "0", "0"]
    assert text.endswith("memberlist x1  FAILED: n1 ended by itself")
    assert all(len(line) <= 88 for line in text.splitlines())


def test_the_json_of_a_curve_keeps_its_keys() -> None:
    found = json.loads(json.dumps(curve_json({"nodes": 4}, [POINT, FAILED])))
    first, failed = found["curve"]
    assert found["settings"] == {"nodes": 4}
    assert first["detection"] == {"first_ms": 1500.0, "median_ms": 1750.0, "last_ms": 2000.0}
    assert (first["accused"], first["accused_per_member_hour"]) == (3, 60.0)
    assert failed["accused_per_member_hour"] is None
    assert failed["failure"] == "n1 ended by itself"


def test_the_figure_names_both_axes_with_units_and_places_every_point_inside() -> None:
    root = ET.fromstring(
        curve_figure([POINT, replace(POINT, setting="2 s"), PEER, FAILED], "a & b")
    )
    space = "{http://www.w3.org/2000/svg}"
    texts = [text.text for text in root.iter(f"{space}text")]
    assert {"a & b", X_TITLE, Y_TITLE, "0.4 s", "2 s", "mesh", "serf"} <= set(texts)
    assert "seconds" in X_TITLE
    assert "per member-hour" in Y_TITLE
    groups = root.findall(f"{space}g")
    assert [group.get("id") for group in groups] == ["mesh", "serf"]
    assert [len(group.findall(f"{space}circle")) for group in groups] == [2 + 1, 1 + 1]
    for circle in root.iter(f"{space}circle"):
        assert 0 <= float(circle.get("cx", -1)) <= WIDTH
        assert 0 <= float(circle.get("cy", -1)) <= HEIGHT
    heights = [float(group.findall(f"{space}circle")[0].get("cy", 0)) for group in groups]
    assert heights[0] < heights[1], "more accusations stand higher"


def test_a_figure_of_no_point_is_still_one() -> None:
    assert ET.fromstring(curve_figure([FAILED], "none")).tag.endswith("svg")


def asked(*words: str) -> argparse.Namespace:
    return build_parser()[0].parse_args(["bench", "detect", "--curve", *words])


def test_a_curve_has_defaults_of_its_own() -> None:
    found = curve_settings_of(asked("--vs", "all"), is_apart=True)
    assert (found.plan.rounds, found.plan.details.burners, found.silence) == (2, 4, "host")
    assert found.swept_s == TOLERANCES_S["lan"]
    settings = len(TOLERANCES_S["lan"]) + len(MULTIPLIERS) + 2
    assert found.total_steps == settings * 3


def test_a_curve_takes_tolerances_in_any_order() -> None:
    found = curve_settings_of(asked("--tolerance", "3,0.5,3"), is_apart=False)
    assert (found.swept_s, found.silence) == ((0.5, 3.0), "standstill")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--fault", "kill"), "found --fault"),
        (("--stop", "2", "--idle", "3"), "found --stop and --idle"),
        (("--nodes", "2"), "needs 3 members, found --nodes 2"),
        (("--kinship", "python3"), "--kinship belongs to --vs kinship"),
        (("--tolerance", "x"), "--tolerance expects a number"),
    ],
)
def test_what_has_no_part_in_a_curve_is_refused(words: tuple[str, ...], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        curve_settings_of(asked(*words), is_apart=True)


def test_a_curve_with_settings_of_its_own_is_frozen() -> None:
    plan = curve_settings_of(asked(), is_apart=True).plan
    assert CurveSettings(plan=plan, is_apart=False).silence == "standstill"
