"""The driver of the rounds: what it does when a contestant fails."""

from __future__ import annotations

import itertools
import re
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from mesh.bench import detect as driver
from mesh.bench.contestant import BenchError, Contestant, Traffic
from mesh.bench.detect import detect
from mesh.bench.faults import FaultSettings, play
from mesh.bench.joining import await_whole
from mesh.bench.lineup import Lineup
from mesh.bench.mesh_nodes import MeshNodes
from mesh.bench.namespaces import Namespaces
from mesh.bench.records import Blame, Record, Round
from mesh.bench.settings import DetectSettings
from mesh.bench.sightings import Sight, Sighting
from mesh.cli.bench import settings_of
from mesh.cli.main import build_parser
from mesh.fleet.fleet import Fleet, NodeProcess


class Told:
    """Remembers what a benchmark told."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.tasks: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)

    def task(self, text: str) -> None:
        self.tasks.append(text)

    def advance(self) -> None:
        self.tasks.append("advanced")


class Puppets(Contestant):
    """Members that are no processes: what they see is what a test says."""

    def __init__(self) -> None:
        ports = {"n01": 1, "n02": 2, "n03": 3}
        super().__init__("puppets", "puppets", ports, tells_refutations=True)
        self.closed = 0
        self.ended: dict[str, str] = {}
        self.is_broken = False

    def say(self, observer: str, sight: Sight, member: str) -> None:
        self.log.add(Sighting(time.time_ns(), observer, sight, member))

    def spawn(self, member: str, seed: str | None) -> None:
        raise AssertionError("nobody is started here")

    def pid(self, member: str) -> int:
        raise AssertionError("nobody has a process here")

    kill = leave = pid

    def last_words(self, member: str) -> str | None:
        return self.ended.get(member)

    def toggle_deafness(self, member: str) -> int:
        if self.is_broken:
            raise BenchError("puppets: no hook")
        return time.time_ns()

    def begin_traffic(self) -> None: ...

    def end_traffic(self) -> list[Traffic]:
        return []

    def close(self) -> None:
        self.closed += 1


def puppet_show(puppets: Puppets, on_pause: Callable[[int], None]) -> tuple[Record, Told]:
    """Play two rounds of deafness; `on_pause` is called with the number of each pause after one."""
    details = FaultSettings(deaf_s=0.001, watch_s=0.0)
    settings = DetectSettings(nodes=3, rounds=2, faults=("deaf",), profile="local", details=details)
    record, told, pauses = Record(name="puppets", about="puppets"), Told(), itertools.count(1)

    class Show(driver._Run):
        def _settle(self) -> None:
            on_pause(next(pauses))

    for one, other in itertools.permutations(puppets.members, 2):
        puppets.say(one, Sight.ALIVE, other)
    Show(settings, told, [puppets], {"puppets": record}).rounds(["deaf"])
    return record, told


def test_false_accusation_in_the_pause_after_a_round_is_counted() -> None:
    puppets = Puppets()

    def accuse(_pause: int) -> None:
        puppets.say("n01", Sight.DEAD, "n02")
        puppets.say("n01", Sight.ALIVE, "n02")

    record, told = puppet_show(puppets, accuse)
    total = [one.blame.false_accusations + one.blame.victim_accusations for one in record.rounds]
    assert total == [1, 1], told.lines


def test_rounds_of_an_earlier_ground_are_not_judged_by_a_later_one() -> None:
    before = Round(fault="burn", blame=Blame(false_accusations=2))
    record = Record(name="puppets", about="puppets", rounds=[before])
    puppets = Puppets()
    for one, other in itertools.permutations(puppets.members, 2):
        puppets.say(one, Sight.ALIVE, other)
    details = FaultSettings(deaf_s=0.001, watch_s=0.0)
    settings = DetectSettings(nodes=3, rounds=1, faults=("deaf",), profile="local", details=details)
    driver._Run(settings, Told(), [puppets], {"puppets": record}).rounds(["deaf"])
    assert [one.blame.false_accusations for one in record.rounds] == [2, 0]


def test_nobody_waits_for_a_member_that_has_ended() -> None:
    puppets = Puppets()
    puppets.ended["n02"] = "no space left on device"
    with pytest.raises(BenchError, match="n02 ended by itself; it said: no space left on device"):
        await_whole(puppets)


def test_contestant_that_is_left_out_is_ended_at_once() -> None:
    puppets = Puppets()

    def break_down(_pause: int) -> None:
        puppets.is_broken = True

    record, _ = puppet_show(puppets, break_down)
    assert record.failure == "puppets: no hook"
    assert len(record.rounds) == 1
    assert puppets.closed == 1


def test_no_round_is_played_when_nobody_is_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(self: MeshNodes, member: str, seed: str | None) -> None:
        raise BenchError(f"{member} does not start")

    monkeypatch.setattr(MeshNodes, "spawn", refuse)
    monkeypatch.setattr(driver, "SETTLE_S", {"local": 0.0})
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    told = Told()
    settings = DetectSettings(
        nodes=2,
        rounds=3,
        faults=("kill", "burn"),
        profile="local",
        details=FaultSettings(burners=1, burn_s=0.1),
    )
    (record,) = detect(settings, told)
    assert record.failure == "n01 does not start"
    assert record.rounds == []
    assert told.tasks == ["mesh: starting 2 members"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "about", "options"),
    [
        ((), "Mesh [^ ]*, lan", ("--evidence", "all")),
        (("--evidence", "none"), "Mesh [^ ]*, lan, evidence none", ("--evidence", "none")),
        (
            ("--tolerance", "0.4"),
            "Mesh [^ ]*, lan, pause tolerance 0.4 s",
            ("--evidence", "all", "--pause-tolerance", "0.4"),
        ),
    ],
)
def test_evidence_and_tolerance_are_passed_on_to_every_node(
    words: tuple[str, ...],
    about: str,
    options: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parser, _ = build_parser()
    settings = settings_of(parser.parse_args(["bench", "detect", "--nodes", "2", *words]))
    assert settings.to_json()["evidence"] == options[1]
    started: list[tuple[str, ...]] = []

    def launch(_fleet: Fleet, _name: str, *arguments: str, bind: str) -> NodeProcess:
        started.append(arguments)
        raise BenchError(f"not at {bind}")

    monkeypatch.setattr(Fleet, "launch", launch)
    with ExitStack() as stack:
        (nodes,) = Lineup(settings, stack).all(stack, is_apart=False)
        assert re.fullmatch(about, nodes.about)
        for seed, seeds in ((None, ()), ("n01", (nodes.address("n01"),))):
            with pytest.raises(BenchError):
                nodes.spawn("n02", seed)
            assert started.pop() == (*options, *seeds)


def test_a_contestant_without_a_hook_is_left_out_of_deafness_alone() -> None:
    puppets = Puppets()
    puppets.can_deafen = False
    record, told = puppet_show(puppets, lambda _pause: None)
    assert record.rounds == []
    assert told.lines == ["puppets: no hook for deaf, not played"]


def test_loopback_comes_before_hosts_of_their_own() -> None:
    assert driver.stages(["host", "kill", "stop"]) == [(False, ["kill", "stop"]), (True, ["host"])]
    assert driver.stages(["host"]) == [(True, ["host"])]


class Switchboard(Namespaces):
    """Cables without hosts: who sees what when one is cut or mended is what a test says."""

    def __init__(self, puppets: Puppets) -> None:
        self._puppets = puppets

    def cut(self, member: str) -> int:
        at_ns = time.time_ns()
        for other in {"n01", "n02", "n03"} - {member}:
            self._puppets.say(other, Sight.DEAD, member)
            self._puppets.say(member, Sight.DEAD, other)
        return at_ns

    def mend(self, member: str) -> int:
        at_ns = time.time_ns()
        for other in {"n01", "n02", "n03"} - {member}:
            self._puppets.say(other, Sight.ALIVE, member)
        return at_ns


class Forgiving(Puppets):
    """A victim that all hold alive again, holds them dead until it is started again."""

    def kill(self, member: str) -> int:
        self.log.forget(member)
        return time.time_ns()

    def spawn(self, member: str, seed: str | None) -> None:
        for other in {"n01", "n02", "n03"} - {member}:
            self.say(member, Sight.ALIVE, other)


def test_victim_that_others_hold_alive_already_misses_no_report_when_it_is_started_again() -> None:
    puppets = Forgiving()
    puppets.ground = Switchboard(puppets)
    for one, other in itertools.permutations(puppets.members, 2):
        puppets.say(one, Sight.ALIVE, other)
    played = play("host", puppets, "n01", "n02", FaultSettings(reunion_s=0.05))
    assert played.is_restarted
    assert played.missing == ()
    assert played.noticed_ms.keys() == {"n02", "n03"}
    assert played.returned_ms == {}
    assert played.blame == Blame()


def test_a_host_is_lost_only_where_members_have_hosts() -> None:
    puppets = Puppets()
    for one, other in itertools.permutations(puppets.members, 2):
        puppets.say(one, Sight.ALIVE, other)
    with pytest.raises(BenchError, match="hosts of their own"):
        play("host", puppets, "n01", "n02", FaultSettings())
