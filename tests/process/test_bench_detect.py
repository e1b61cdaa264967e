"""`mesh bench detect` from outside: what it reports, and that nothing is left of it, whatever happens."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from mesh.bench import keeper
from mesh.bench.contestant import Traffic
from mesh.bench.namespaces import why_not
from mesh.bench.peer_nodes import PeerNodes
from mesh.bench.peers.harness import Harness
from mesh.bench.ports import free_ports
from mesh.bench.sightings import Sight
from mesh.fleet.clearing import marked_pids, wait_until

Start: TypeAlias = Callable[..., subprocess.Popen[bytes]]

TIMEOUT_S = 150.0
VARIABLE = "MESH_TEST_BENCH"
DETECT = ("bench", "detect", "--profile", "local")


class Stage:
    """An environment whose every process and every temporary file is found again."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.mark = f"{os.getpid()}-{home.name}"
        self.environment = {**os.environ, "TMPDIR": str(home), VARIABLE: self.mark}

    def assert_no_process(self) -> None:
        wait_until(
            lambda: marked_pids(self.mark, VARIABLE) == [] or None,
            10.0,
            lambda: AssertionError(f"still running: {marked_pids(self.mark, VARIABLE)}"),
        )

    def assert_clear(self) -> None:
        self.assert_no_process()
        assert list(self.home.iterdir()) == []


@pytest.fixture
def stage() -> Iterator[Stage]:
    with tempfile.TemporaryDirectory(prefix="mt-") as home:
        yield Stage(Path(home))


def finished(process: subprocess.Popen[bytes], timeout_s: float = TIMEOUT_S) -> str:
    out, errors = process.communicate(timeout=timeout_s)
    assert (process.returncode, errors) == (0, b""), out.decode() + errors.decode()
    print(out.decode())
    return out.decode()


def until_line(process: subprocess.Popen[bytes], moment: bytes) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if moment in line:
            return
    errors = process.stderr.read() if process.stderr else b""
    raise AssertionError(f"the output ended before {moment!r}: {errors.decode()}")


def test_four_nodes_two_rounds_of_kill_and_leave(
    start: Start, stage: Stage, tmp_path: Path
) -> None:
    data, figure = tmp_path / "detect.json", tmp_path / "detect.svg"
    words = ("--nodes", "4", "--rounds", "2", "--fault", "kill,leave", "--idle", "2")
    results = ("--json", str(data), "--svg", str(figure))
    text = finished(start(*DETECT, *words, *results, env=stage.environment))
    stage.assert_clear()
    assert "4 members see each other" in text
    assert "mesh: 6 reports" in text
    found: dict[str, Any] = json.loads(data.read_text())
    assert [one["fault"] for one in found["rounds"]] == ["kill", "kill", "leave", "leave"]
    for one in found["rounds"]:
        assert 0 < one["first_ms"] <= one["median_ms"] <= one["last_ms"] < 20_000
        assert (one["missing"], one["false_accusations"]) == ([], 0)
        assert len(one["survivors_ms"]) == 3
        assert one["returned"]["last_ms"] is not None
    assert found["idle"]["packets_s"] > 0
    assert found["idle"]["pss_mib"] > 1
    assert found["join"]["nodes"] == 4
    assert found["peers"] == {}
    assert ET.parse(figure).getroot().tag.endswith("svg")


def test_a_stop_a_burn_a_deaf_member_and_a_quick_restart(
    start: Start, stage: Stage, tmp_path: Path
) -> None:
    data = tmp_path / "detect.json"
    faults = ("--fault", "stop,deaf,burn,restart", "--at-once")
    lengths = ("--stop", "0.3", "--deaf", "4", "--burn", "2", "--seconds", "2")
    words = ("--nodes", "3", "--rounds", "1", *faults, *lengths, "--json", str(data))
    bench = start(*DETECT, *words, env=stage.environment)
    out, errors = bench.communicate(timeout=TIMEOUT_S)
    print(out.decode())
    assert errors == b""
    stage.assert_clear()
    rounds = json.loads(data.read_text())["rounds"]
    # Who hears nothing for twenty periods may well accuse another: the exit code has to say so.
    is_good = not any(one["false_accusations"] or one["missing"] for one in rounds)
    assert bench.returncode == (0 if is_good else 1)
    stop, deaf, burn, restart = rounds
    assert stop["victim_accusations"] == 0
    assert deaf["victim_accusations"] == 2, (
        "a member that hears nothing is held dead by both others"
    )
    assert deaf["whole_ms"] > 0
    assert burn["whole_ms"] is not None
    assert len(restart["survivors_ms"]) == 2


@pytest.mark.parametrize(
    ("number", "moment"),
    [
        (signal.SIGINT, b""),
        (signal.SIGINT, b"see each other"),
        (signal.SIGTERM, b"see each other"),
        (signal.SIGHUP, b"kill 1"),
    ],
)
def test_a_benchmark_that_is_stopped_leaves_nothing(
    start: Start, stage: Stage, number: signal.Signals, moment: bytes
) -> None:
    # After the start, a victim stands still for longer than the test lasts.
    words = ("--nodes", "3", "--rounds", "1", "--fault", "kill,stop", "--stop", "600")
    if moment == b"see each other":
        words = ("--nodes", "3", "--rounds", "1", "--fault", "stop", "--stop", "600")
    bench = start(*DETECT, *words, env=stage.environment)
    if moment:
        until_line(bench, moment)
    wait_until(
        lambda: (marked_count(stage) >= 4 and (not moment or has_stopped(stage))) or None,
        20.0,
        lambda: AssertionError("no member was started, or none stopped"),
    )
    bench.send_signal(number)
    assert bench.wait(30.0) == 128 + number
    assert bench.stderr is not None
    assert bench.stderr.read() == b""
    stage.assert_clear()


def marked_count(stage: Stage) -> int:
    return len(marked_pids(stage.mark, VARIABLE))


def has_stopped(stage: Stage) -> bool:
    """Say whether any process of the stage stands still."""
    for pid in marked_pids(stage.mark, VARIABLE):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            continue
        if stat.rpartition(")")[2].split()[0] == "T":
            return True
    return False


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv to tie processes")
def test_a_benchmark_that_is_killed_takes_its_processes_along(start: Start, stage: Stage) -> None:
    words = ("--nodes", "3", "--burn", "2", "--seconds", "600")
    bench = start(*DETECT, *words, env=stage.environment)
    until_line(bench, b"see each other")
    wait_until(
        lambda: marked_count(stage) == 9 or None,
        20.0,
        lambda: AssertionError(
            f"3 members, their guardians, 2 loops and the benchmark: {marked_count(stage)}"
        ),
    )
    bench.kill()
    bench.wait()
    stage.assert_no_process()


@pytest.fixture
def hosts() -> None:
    """Skip where members cannot have hosts of their own, and say why."""
    if reason := why_not():
        pytest.skip(reason)


def namespaces_of(bench: subprocess.Popen[bytes]) -> list[str]:
    return keeper.namespaces_of(f"{keeper.PREFIX}-{bench.pid}-*")


def assert_no_namespace(bench: subprocess.Popen[bytes]) -> None:
    wait_until(
        lambda: namespaces_of(bench) == [] or None,
        15.0,
        lambda: AssertionError(f"left behind: {namespaces_of(bench)}"),
    )


@pytest.mark.usefixtures("hosts")
def test_a_lost_host_is_noticed_after_the_tolerance_and_comes_back(
    start: Start, stage: Stage, tmp_path: Path
) -> None:
    data, figure = tmp_path / "detect.json", tmp_path / "detect.svg"
    words = ("--nodes", "3", "--rounds", "1", "--fault", "kill,host", "--tolerance", "2")
    results = ("--json", str(data), "--svg", str(figure))
    bench = start(*DETECT, *words, *results, env=stage.environment)
    text = finished(bench)
    stage.assert_clear()
    assert namespaces_of(bench) == []
    assert "all faults, medians in ms" in text
    found: dict[str, Any] = json.loads(data.read_text())
    assert found["settings"]["tolerance_s"] == 2.0
    kill, host = found["rounds"]
    assert kill["first_ms"] < 2000, "a crash is told by more than silence, at once"
    assert 2000 <= host["first_ms"] <= host["last_ms"] < 20_000, "of a lost host, silence is all"
    assert (host["missing"], host["false_accusations"], host["is_restarted"]) == ([], 0, False)
    assert len(host["survivors_ms"]) == 2
    assert host["returned"]["last_ms"] is not None
    assert len(ET.parse(figure).getroot().findall("{http://www.w3.org/2000/svg}svg")) == 2


@pytest.mark.usefixtures("hosts")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_namespaces_are_gone_when_a_benchmark_is_stopped_or_killed(
    start: Start, stage: Stage, number: signal.Signals
) -> None:
    words = ("--nodes", "3", "--rounds", "1000", "--fault", "host")
    bench = start(*DETECT, *words, env=stage.environment)
    until_line(bench, b"host 1")
    assert len(namespaces_of(bench)) == 4
    bench.send_signal(number)
    code = bench.wait(40.0)
    assert code == (-number if number == signal.SIGKILL else 128 + number)
    assert_no_namespace(bench)
    if number == signal.SIGKILL:
        stage.assert_no_process()
    else:
        stage.assert_clear()


@pytest.mark.usefixtures("hosts")
def test_a_curve_of_two_settings(start: Start, stage: Stage, tmp_path: Path) -> None:
    data, figure = tmp_path / "curve.json", tmp_path / "curve.svg"
    words = ("--nodes", "3", "--rounds", "1", "--curve", "--tolerance", "0.2,1")
    lengths = ("--seconds", "3", "--burn", "1")
    results = ("--json", str(data), "--svg", str(figure))
    finished(start(*DETECT, *words, *lengths, *results, env=stage.environment))
    stage.assert_clear()
    quick, patient = json.loads(data.read_text())["curve"]
    assert (quick["setting"], patient["setting"]) == ("0.2 s", "1 s")
    assert 200 <= quick["detection"]["last_ms"] < patient["detection"]["last_ms"]
    assert patient["detection"]["first_ms"] >= 1000
    assert quick["pauses"] == patient["pauses"] > 0
    assert quick["member_hours"] == pytest.approx(3 / 3600, rel=0.01)
    assert ET.parse(figure).getroot().tag.endswith("svg")


def test_a_missing_peer_is_wrong_usage_and_starts_nothing(start: Start, stage: Stage) -> None:
    words = ("--vs", "kinship", "--kinship", "/nowhere/python")
    bench = start(*DETECT, *words, env=stage.environment)
    out, errors = bench.communicate(timeout=30.0)
    assert (bench.returncode, out) == (2, b"")
    assert errors.count(b"\n") == 1
    assert b"pip install kinship" in errors
    stage.assert_clear()


def test_a_file_that_cannot_be_written_is_refused_before_anything_starts(
    start: Start, stage: Stage
) -> None:
    bench = start(*DETECT, "--json", "/nowhere/at/all.json", env=stage.environment)
    out, errors = bench.communicate(timeout=30.0)
    assert (bench.returncode, out) == (2, b"")
    assert b"/nowhere/at/all.json" in errors
    stage.assert_clear()


SCRIPTED = """
import sys, time
name = sys.argv[1]
print("see", time.time_ns(), "alive", name, flush=True)
print("see", time.time_ns(), "alive", "other", flush=True)
for line in sys.stdin:
    if line == "traffic\\n":
        print("traffic", round(time.time() * 100), "- - -", flush=True)
    elif line == "leave\\n":
        break
"""


class Scripted(Harness):
    """A peer that says what a script tells it to."""

    name = "scripted"
    about = "a script"

    def command(self, member: str, address: str, seed: str, profile: str) -> list[str]:
        return [sys.executable, "-c", SCRIPTED, member, address, seed, profile]


def test_the_processes_of_a_peer_are_read_asked_and_ended(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TMPDIR", VARIABLE):
        monkeypatch.setenv(name, stage.environment[name])
    monkeypatch.setattr(tempfile, "tempdir", None)
    names = ("a", "b", "c")
    peer = PeerNodes(Scripted(), dict(zip(names, free_ports(3), strict=True)), "local")
    try:
        began_ns = time.time_ns()
        for name in names:
            peer.spawn(name, None if name == "a" else "a")
        seen = peer.log.wait_seen([Sight.ALIVE], "other", names, began_ns, 20.0)
        assert seen.keys() == set(names)
        assert all(one.member == "other" for one in peer.log.since(0)), "oneself is not seen"
        peer.begin_traffic()
        time.sleep(1.0)
        traffic = peer.end_traffic()
        assert len(traffic) == 3
        for each in traffic:
            assert isinstance(each, Traffic)
            assert each.packets_s == pytest.approx(100.0, rel=0.2)
        assert peer.leave("b") >= began_ns
        assert peer.kill("c") >= began_ns
    finally:
        peer.close()
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert list(stage.home.iterdir()) == []


@pytest.mark.sweep
def test_thirty_two_nodes_on_a_lan(start: Start, stage: Stage, tmp_path: Path) -> None:
    data = tmp_path / "detect.json"
    words = ("--nodes", "32", "--rounds", "5", "--fault", "kill,stop,leave", "--json", str(data))
    finished(start("bench", "detect", *words, env=stage.environment), 900.0)
    stage.assert_clear()
    assert len(json.loads(data.read_text())["rounds"]) == 15


@pytest.mark.sweep
def test_whatever_peers_are_installed_play_the_same_rounds(
    start: Start, stage: Stage, tmp_path: Path
) -> None:
    peers = [
        name for name, program in (("serf", "serf"), ("memberlist", "go")) if shutil.which(program)
    ]
    if not peers:
        pytest.skip("needs serf, or Go with memberlist's package")
    data = tmp_path / "detect.json"
    words = ("--nodes", "4", "--rounds", "2", "--vs", ",".join(peers), "--json", str(data))
    finished(start("bench", "detect", *words, env=stage.environment), 600.0)
    stage.assert_clear()
    found = json.loads(data.read_text())
    assert list(found["peers"]) == peers
    assert all(len(peer["rounds"]) == 2 for peer in found["peers"].values())
