"""Statistics, the JSON shape, the tables, the histogram and the figure."""

from __future__ import annotations

import json
import random
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import islice

import pytest

from mesh.bench import settings as settings_module
from mesh.bench.contestant import Traffic
from mesh.bench.faults import FAULTS, FaultSettings, blame_of, draw, judged
from mesh.bench.figure import figure, figures
from mesh.bench.idle import mean_of, memory_of
from mesh.bench.peers import search
from mesh.bench.peers.kinship import Kinship
from mesh.bench.peers.memberlist import Memberlist
from mesh.bench.peers.serf import Serf
from mesh.bench.records import Blame, Idle, Join, Record, Round, spread, to_json
from mesh.bench.report import (
    BAR_CELLS,
    bar_of,
    bin_counts,
    histogram,
    report_text,
    round_line,
    round_step,
)
from mesh.bench.settings import CAN_DEAFEN, DetectSettings
from mesh.bench.sightings import Sight, Sighting, SightingLog
from mesh.cli import bench
from mesh.cli.main import build_parser
from mesh.errors import ConfigError

KILLED = Round(
    fault="kill",
    victim="n2",
    noticed_ms={"n1": 4100.0, "n3": 4200.0, "n4": 4700.0},
    returned_ms={"n1": 10.0, "n3": 12.0, "n4": 20.0},
)
STOPPED = Round(fault="stop", victim="n1", whole_ms=8.0, blame=Blame(victim_suspicions=3))
IDLE = Idle(
    seconds=30.0,
    cpu_pct=0.2,
    rss_mib=30.0,
    pss_mib=20.0,
    packets_s=2.0,
    udp_bytes_s=80.0,
    tcp_frames_s=0.1,
    tcp_bytes_s=5.5,
)


def records() -> list[Record]:
    ours = Record(name="mesh", about="Mesh, lan", rounds=[KILLED, KILLED, STOPPED], idle=IDLE)
    ours.join = Join(nodes=4, converged_ms=30.0, took_ms=900.0)
    slow = Round(fault="kill", victim="n2", noticed_ms={"n1": 6000.0}, missing=("n3", "n4"))
    peer = Record(name="serf", about="serf, lan", rounds=[slow])
    peer.idle = Idle(seconds=30.0, cpu_pct=0.3, rss_mib=14.0, pss_mib=8.0)
    return [ours, peer]


def test_spread_is_first_median_and_last_in_any_order() -> None:
    found = spread([30.0, 10.0, 20.04])
    assert (found.first_ms, found.median_ms, found.last_ms) == (10.0, 20.0, 30.0)
    assert spread([1.0, 2.0]).median_ms == 1.5
    assert spread([]).last_ms is None


def test_a_round_with_missing_reports_or_false_accusations_is_not_good() -> None:
    assert KILLED.is_good
    assert STOPPED.is_good
    assert not Round(fault="kill", missing=("n1",)).is_good
    assert not Round(fault="burn", blame=Blame(false_accusations=1)).is_good


def test_a_restart_is_about_its_return() -> None:
    restart = Round(fault="restart", noticed_ms={"n1": 4000.0}, returned_ms={"n1": 12.0})
    assert restart.times_ms == [12.0]
    assert KILLED.times_ms == [4100.0, 4200.0, 4700.0]


def test_verdicts_on_others_and_on_the_victim_are_told_apart() -> None:
    seen = [
        Sighting(1, "n1", Sight.DEAD, "n3"),
        Sighting(2, "n1", Sight.SUSPECT, "n3"),
        Sighting(3, "n2", Sight.SUSPECT, "n3"),
        Sighting(4, "n1", Sight.DEAD, "n2"),
        Sighting(5, "n3", Sight.SUSPECT, "n2"),
        Sighting(6, "n3", Sight.ALIVE, "n2"),
    ]
    assert blame_of(seen, "n2") == Blame(
        false_accusations=1, suspicions=2, victim_accusations=1, victim_suspicions=1
    )


def test_verdicts_count_until_the_next_round_begins() -> None:
    log = SightingLog(tells_refutations=True)
    killed = replace(KILLED, began_ns=10, victim_from_ns=20)
    for at_ns, sight, member in (
        (9, Sight.DEAD, "n3"),
        (11, Sight.DEAD, "n2"),  # true: it is back at 20
        (21, Sight.SUSPECT, "n2"),
        (22, Sight.DEAD, "n3"),
        (31, Sight.DEAD, "n4"),
    ):
        log.add(Sighting(at_ns, "n1", sight, member))
    assert judged(killed, log, 30).blame == Blame(false_accusations=1, victim_suspicions=1)
    assert judged(killed, log).blame == Blame(false_accusations=2, victim_suspicions=1)


def test_the_json_keeps_its_promised_keys() -> None:
    found = json.loads(json.dumps(to_json(DetectSettings(nodes=4).to_json(), records())))
    assert {"settings", "rounds", "idle", "peers"} <= found.keys()
    assert found["settings"]["nodes"] == 4
    assert found["settings"]["faults"] == ["kill"]
    first = found["rounds"][0]
    promised = ("fault", "first_ms", "median_ms", "last_ms", "false_accusations")
    assert [first[key] for key in promised] == ["kill", 4100.0, 4200.0, 4700.0, 0]
    assert first["returned"] == {"first_ms": 10.0, "median_ms": 12.0, "last_ms": 20.0}
    idle = found["idle"]
    assert [idle[key] for key in ("packets_s", "bytes_s", "cpu_pct", "rss_mib", "pss_mib")] == [
        2.0,
        85.5,
        0.2,
        30.0,
        20.0,
    ]
    peer = found["peers"]["serf"]
    assert peer["rounds"][0]["missing"] == ["n3", "n4"]
    assert peer["idle"]["bytes_s"] is None
    assert peer["join"] is None


def test_a_round_that_was_never_noticed_has_null_times() -> None:
    found = Round(fault="kill", victim="n1", missing=("n2",)).to_json()
    assert (found["first_ms"], found["median_ms"], found["last_ms"]) == (None, None, None)


def test_a_round_is_one_line() -> None:
    line = round_line("mesh", 3, KILLED)
    assert (
        "kill 3  n2  noticed after 4100-4700 ms, median 4200  back after 10-20 ms, median 12"
        in line
    )
    stopped = round_line("mesh", 1, STOPPED)
    assert "all alive to all after 8 ms  suspicions of the victim 3" in stopped
    assert "MISSING 2" in round_line("serf", 1, records()[1].rounds[0])


def test_the_report_has_a_row_for_each_contestant_and_each_fault() -> None:
    text = report_text(records())
    for part in ("kill, ms", "stop, ms", "mesh: 6 reports", "serf: 1 report,", "met after, ms"):
        assert part in text
    (row,) = (line for line in text.splitlines() if line.startswith("serf") and " 6000 " in line)
    assert row.split()[:5] == ["serf", "1", "6000", "6000", "6000"]
    assert row.split()[-1] == "2", "the reports that never came"


def test_a_failed_contestant_says_why() -> None:
    failed = Record(name="serf", about="serf, lan", failure="serf: n1 ended by itself")
    assert "FAILED: serf: n1 ended by itself" in report_text([records()[0], failed])


def test_each_bin_takes_its_lower_edge() -> None:
    assert bin_counts([10.0, 14.9, 15.0, 29.9], 10.0, 5.0, 4) == [2, 1, 0, 1]


@pytest.mark.parametrize(
    ("span", "steps", "step"), [(0.0, 6, 1), (6.0, 6, 1), (6.1, 6, 2), (70, 6, 20), (7200, 6, 2000)]
)
def test_steps_are_round(span: float, steps: int, step: float) -> None:
    assert round_step(span, steps) == step


def test_a_bar_shows_anything_above_nothing() -> None:
    assert bar_of(0.0) == ""
    assert bar_of(1.0) == "█" * BAR_CELLS
    assert bar_of(0.0001) == "▏"
    assert bar_of(0.5) == "█" * (BAR_CELLS // 2)


def test_all_histograms_have_the_same_bins() -> None:
    text = histogram({"a": [100.0, 110.0], "b": [500.0], "c": []})
    edges = [line.split(" ms")[0].strip() for line in text.splitlines() if line.startswith(" ")]
    assert edges[: len(edges) // 2] == edges[len(edges) // 2 :]
    assert edges[0] == "100"
    assert "c:" not in text


def test_a_histogram_of_equal_times_is_one_bin() -> None:
    assert histogram({"a": [7.0, 7.0]}).splitlines() == [
        "a: 2 reports, in bars of 1 ms from the time beside them on",
        f"       7 ms  {'█' * 40} 2",
    ]


def test_histogram_and_table_round_alike() -> None:
    played = Round(fault="kill", victim="n2", noticed_ms={"n1": 1253.6, "n3": 1254.9, "n4": 1255.5})
    text = report_text([Record(name="mesh", about="Mesh, lan", rounds=[played])])
    (row,) = (line for line in text.splitlines() if line.startswith("mesh") and " 1255 " in line)
    assert row.split()[2:5] == ["1254", "1255", "1256"]
    bars = [line.split()[0] for line in text.splitlines() if "█" in line]
    assert bars == ["1254", "1255", "1256"]


def test_table_explains_its_columns_and_leaves_out_those_with_nothing_in_80_cells() -> None:
    text = report_text([replace(record, idle=None) for record in records()])
    kill, stop, cost = (block for block in text.split("\n\n") if ", ms" in block.splitlines()[0])
    assert "whole" not in kill
    assert "victim: " not in kill
    assert "back: until the last member saw the victim return" in kill.replace("\n", " ")
    assert "whole: until every member saw every other alive" in stop.replace("\n", " ")
    assert [line.split() for line in cost.splitlines()[1:]] == [["mesh", "30"], ["serf", "-"]]
    assert all(len(line) <= 80 for line in text.splitlines())


def test_the_figure_is_well_formed_and_has_a_line_for_each_round() -> None:
    root = ET.fromstring(figure(records(), "kill", 'kill: "8" & more'))
    space = "{http://www.w3.org/2000/svg}"
    groups = root.findall(f"{space}g")
    assert [group.get("class") for group in groups] == ["ours", "peer"]
    lines = [line for group in groups for line in group.findall(f"{space}line")]
    assert [line.get("class") for line in lines].count("round") == 3
    assert [line.get("class") for line in lines].count("last") == 2
    texts = [text.text for text in root.iter(f"{space}text")]
    assert {"mesh", "serf", "4.70 s", "6.00 s", 'kill: "8" & more'} <= set(texts)
    for line in lines:
        assert float(line.get("x1", 0)) <= float(line.get("x2", 0)) <= 670.0


def test_figures_of_several_faults_stand_one_below_the_other() -> None:
    left = replace(KILLED, fault="leave")
    ours = Record(name="mesh", about="Mesh, lan", rounds=[KILLED, STOPPED, left])
    root = ET.fromstring(figures([ours], ("kill", "stop", "leave"), "4 members"))
    panels = root.findall("{http://www.w3.org/2000/svg}svg")
    tops = [float(panel.get("y", -1)) for panel in panels]
    heights = [float(panel.get("height", 0)) for panel in panels]
    assert tops == [0.0, heights[0]]
    assert float(root.get("height", 0)) == sum(heights)
    assert root.get("aria-label") == "kill, leave: 4 members"
    assert "kill: 4 members" in figures([ours], ("kill",), "4 members")


def test_the_figure_tells_of_reports_that_never_came() -> None:
    blind = Record(name="blind", about="blind, lan", rounds=[Round(fault="kill", missing=("n1",))])
    root = ET.fromstring(figure([*records(), blind], "kill", "kill"))
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert [text for text in texts if text and "missing" in text] == ["2 missing", "1 missing"]
    assert "blind" in texts


def test_a_figure_of_nothing_is_still_one() -> None:
    assert ET.fromstring(figure(records(), "leave", "leave")).tag.endswith("svg")


def test_memory_is_read_in_mib() -> None:
    rollup = "55d0-7ffc ---p 00000000 00:00 0  [rollup]\nRss:  30720 kB\nPss:  20480 kB\n"
    assert memory_of(rollup) == {"Rss": 30.0, "Pss": 20.0}


def test_means_are_of_those_who_tell() -> None:
    traffic = [Traffic(packets_s=1.0), Traffic(packets_s=2.0), Traffic()]
    assert mean_of(traffic, lambda each: each.packets_s) == 1.5
    assert mean_of(traffic, lambda each: each.tcp_bytes_s) is None


def test_victim_and_seed_differ_and_are_drawn_by_the_seed_alone() -> None:
    names = [f"n{number}" for number in range(4)]
    drawn = list(islice(draw(names, random.Random(1)), 40))
    assert all(victim != seed for victim, seed in drawn)
    assert drawn == list(islice(draw(names, random.Random(1)), 40))
    assert drawn != list(islice(draw(names, random.Random(2)), 40))


def test_everybody_is_the_victim_once_before_anybody_is_again() -> None:
    names = [f"n{number}" for number in range(5)]
    drawn = [victim for victim, _ in islice(draw(names, random.Random(1)), 15)]
    for begin in (0, 5, 10):
        assert sorted(drawn[begin : begin + 5]) == names


def settings_of(*words: str) -> DetectSettings:
    return bench.settings_of(build_parser()[0].parse_args(["bench", "detect", *words]))


def test_an_option_of_a_fault_asks_for_it() -> None:
    assert settings_of().faults == ("kill",)
    assert settings_of("--stop", "2.5").faults == ("stop",)
    found = settings_of("--burn", "3", "--deaf", "4", "--seconds", "7")
    assert found.faults == ("deaf", "burn")
    assert found.details == FaultSettings(deaf_s=4.0, burners=3, burn_s=7.0)
    assert settings_of("--fault", "kill,stop", "--stop", "1").faults == ("kill", "stop")
    assert tuple(bench.FAULTS) == FAULTS
    assert settings_of("--vs", "serf,,memberlist,serf").vs == ("serf", "memberlist")
    assert settings_of("--tolerance", "0.4").tolerance_s == 0.4
    assert settings_of("--rounds", "0").rounds == 0


def test_all_is_every_fault_and_every_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings_module, "why_not", lambda: "")
    found = settings_of("--fault", "all", "--vs", "all", "--rounds", "2")
    assert found.faults == FAULTS
    assert found.vs == search.NAMES == bench.PEERS
    played_by_all, deaf = (len(FAULTS) - 1) * 4, 2
    assert found.total_rounds == 2 * (played_by_all + deaf)


def test_without_namespaces_a_lost_host_is_refused_with_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settings_module, "why_not", lambda: "not installed: ip (iproute2)")
    with pytest.raises(ConfigError, match=r"not installed: ip \(iproute2\); .* --fault kill,stop"):
        settings_of("--fault", "kill,stop,host")


def test_who_can_be_made_deaf_is_known_before_anybody_is_started() -> None:
    adapters = (Serf, Memberlist, Kinship)
    assert {one.name for one in adapters if one.can_deafen} | {"mesh"} == CAN_DEAFEN


def test_what_a_lost_host_says_of_others_is_no_accusation() -> None:
    log = SightingLog(tells_refutations=True)
    log.add(Sighting(11, "n2", Sight.DEAD, "n3"))
    log.add(Sighting(12, "n1", Sight.DEAD, "n2"))  # true: it is back at 20
    log.add(Sighting(21, "n1", Sight.DEAD, "n4"))
    log.add(Sighting(22, "n1", Sight.DEAD, "n2"))
    lost = Round(fault="host", victim="n2", began_ns=10, victim_from_ns=20)
    assert judged(lost, log).blame == Blame(false_accusations=1, victim_accusations=1)
    killed = replace(lost, fault="kill")
    assert judged(killed, log).blame == Blame(false_accusations=2, victim_accusations=1)


def test_a_victim_that_was_started_again_is_told_of() -> None:
    lost = Round(fault="host", victim="n2", noticed_ms={"n1": 9.0}, is_restarted=True)
    assert "not back by itself" in round_line("serf", 1, lost)
    text = report_text([Record(name="serf", about="serf, lan", rounds=[lost, lost])])
    head, row = (line.split() for line in text.split("\n\n")[1].splitlines()[:2])
    assert row[head.index("restarted") - 1] == "2"  # the head's first column has two words
    assert lost.to_json()["is_restarted"] is True


def test_all_faults_stand_in_one_table_at_the_end() -> None:
    table = report_text([replace(record, idle=None) for record in records()]).split("\n\n")[-1]
    lines = [line.rsplit(maxsplit=2) for line in table.splitlines()]
    assert lines[0][1:] == ["mesh", "serf"]
    assert lines[1][0].split() == ["kill:", "the", "last", "report", "4700", "6000"]
    assert table.splitlines()[1].endswith("6000 (2 missing)")
    assert lines[2:] == [
        ["stop: until all are whole again", "8", "-"],
        ["held dead without being so", "0", "0"],
    ]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--fault", "explode"), "--fault is one or more of kill"),
        (("--fault", "kill", "--stop", "2"), "--stop belongs to --fault stop"),
        (("--at-once",), "--at-once belongs to --fault restart"),
        (("--fault", "restart", "--at-once", "--vs", "serf"), "--at-once is for Mesh alone"),
        (("--seconds", "5"), "--seconds belongs to --fault burn, found kill"),
        (("--kinship", "python3"), "--kinship belongs to --vs kinship, found none"),
        (("--deaf", "3", "--vs", "serf,memberlist"), "which serf lack"),
        (("--tolerance", "0.4,1"), "--tolerance is one number without --curve, found 2"),
        (("--tolerance", "0"), "--tolerance expects a number from 0.1"),
        (("--nodes", "65"), "--nodes expects a whole number from 2 to 64"),
        (("--stop", "-1"), "--stop expects a number from 0.1"),
    ],
)
def test_what_cannot_be_played_is_refused(words: tuple[str, ...], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        settings_of(*words)
