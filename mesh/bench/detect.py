"""`mesh bench detect`: start every contestant, let it idle, play the rounds side by side, clear away.

    find peers -> start -> idle -> rounds (A B A B …) -> records

A contestant that fails is left out from there on, and its record says why; the others go on.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from mesh.bench.contestant import Contestant
from mesh.bench.faults import SHARED, FaultSettings, after_burn, burn, choose, judged, play
from mesh.bench.idle import measure_idle
from mesh.bench.joining import start_all
from mesh.bench.mesh_nodes import MeshNodes
from mesh.bench.peer_nodes import PeerNodes
from mesh.bench.peers.search import find_peers
from mesh.bench.ports import free_ports
from mesh.bench.progress import Progress
from mesh.bench.records import Record, Round
from mesh.bench.report import round_line
from mesh.errors import ConfigError, MeshError
from mesh.fleet.clearing import signals_as_exits, undisturbed

SETTLE_S: Final = {"local": 1.0, "lan": 3.0, "wan": 9.0}
"""The pause after a start and between rounds, so that the news of one is no part of the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectSettings:
    """What is to be measured."""

    nodes: int = 8
    rounds: int = 5
    faults: tuple[str, ...] = ("kill",)
    profile: str = "lan"
    evidence: str = "all"
    """What Mesh's members tell a crash by; peers know silence alone."""

    seed: int = 1
    """Draws victims and phases; the same for all contestants."""

    idle_s: float = 0.0
    """How long the idle members are measured first; 0: not at all."""

    vs: tuple[str, ...] = ()
    kinship_python: str | None = None
    details: FaultSettings = field(default_factory=FaultSettings)

    def check(self) -> None:
        """Raise ConfigError if what is asked for cannot be played."""
        if self.details.is_at_once and self.vs:
            raise ConfigError(
                "--at-once is for Mesh alone, since peers tell nothing of a member that is back before its "
                f"death was noticed; found --vs {','.join(self.vs)} beside it"
            )
        if "deaf" in self.faults and (deaf := [name for name in self.vs if name != "memberlist"]):
            raise ConfigError(
                f"deaf needs a hook inside the members, which {' and '.join(deaf)} lack; "
                "leave them out of --vs"
            )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON shape."""
        parts = asdict(self)
        parts.pop("kinship_python")  # a path of this host, and no part of what was measured
        details = parts.pop("details")
        return {**parts, "faults": list(self.faults), "vs": list(self.vs), **details}


def detect(settings: DetectSettings, progress: Progress) -> list[Record]:
    """Measure everything and return the records, Mesh's own first. Nothing is left running.

    Raises:
        ConfigError: a peer that was asked for is missing.
        BenchError: a harness could not be built.
    """
    settings.check()
    with signals_as_exits(), _cleared_away() as stack:
        contestants = _contestants(settings, stack)
        records = {one.name: Record(name=one.name, about=one.about) for one in contestants}
        run = _Run(settings, progress, contestants, records)
        run.start()
        run.idle()
        run.rounds()
        return list(records.values())


@contextmanager
def _cleared_away() -> Iterator[ExitStack]:
    stack = ExitStack()
    try:
        yield stack
    finally:
        with undisturbed():
            stack.close()


def _contestants(settings: DetectSettings, stack: ExitStack) -> list[Contestant]:
    workshop = Path(tempfile.mkdtemp(prefix="mesh-bench-"))
    stack.callback(shutil.rmtree, workshop, ignore_errors=True)
    adapters = find_peers(settings.vs, workshop, settings.kinship_python)
    count = settings.nodes
    ports = free_ports(count * (1 + len(adapters)))
    names = [f"n{number:02d}" for number in range(1, count + 1)]
    seats = [
        dict(zip(names, ports[start : start + count], strict=True))
        for start in range(0, len(ports), count)
    ]
    has_hook = "deaf" in settings.faults
    ours = MeshNodes(seats[0], settings.profile, fault_hook=has_hook, evidence=settings.evidence)
    stack.callback(ours.close)
    contestants: list[Contestant] = [ours]
    for adapter, seat in zip(adapters, seats[1:], strict=True):
        peer = PeerNodes(adapter, seat, settings.profile)
        stack.callback(peer.close)
        contestants.append(peer)
    return contestants


class _Run:
    """The steps over one set of contestants."""

    def __init__(
        self,
        settings: DetectSettings,
        progress: Progress,
        contestants: Sequence[Contestant],
        records: dict[str, Record],
    ) -> None:
        self._settings = settings
        self._progress = progress
        self._standing = list(contestants)
        self._members = contestants[0].members
        self._records = records
        self._rng = random.Random(settings.seed)

    def start(self) -> None:
        """Start all contestants, one after the other."""
        for one in list(self._standing):
            self._progress.task(f"{one.name}: starting {self._settings.nodes} members")
            with self._excluding(one):
                join = self._records[one.name].join = start_all(one)
                self._progress.say(
                    f"{one.name:<10}  {join.nodes} members see each other "
                    f"{join.converged_ms:.0f} ms after the last socket was bound"
                )
        self._settle()

    def idle(self) -> None:
        """Measure the idle members, all contestants at once."""
        seconds = self._settings.idle_s
        if not seconds:
            return
        self._progress.task("idle")

        def tick(passed_s: float) -> None:
            self._progress.task(f"idle: {passed_s:.0f} of {seconds:g} s")

        for name, idle in measure_idle(self._standing, seconds, tick).items():
            self._records[name].idle = idle

    def rounds(self) -> None:
        """Play every fault's rounds, by turns at each contestant, while any is left."""
        settings = self._settings
        for fault in settings.faults:
            for number in range(1, settings.rounds + 1):
                if not self._standing:
                    return
                if fault in SHARED:
                    self._shared_round(number)
                    continue
                victim, seed = choose(self._members, self._rng)
                phase_s = self._rng.random()
                for one in list(self._standing):
                    self._progress.task(f"{fault} {number} of {settings.rounds}: {one.name}")
                    time.sleep(phase_s)
                    with self._excluding(one):
                        played = play(fault, one, victim, seed, settings.details)
                        self._record(one, number, played)
                    self._progress.advance()
                self._settle()
        for one in self._standing:
            self._judge_last(one)

    def _shared_round(self, number: int) -> None:
        details = self._settings.details
        self._progress.task(f"{details.burners} busy loops for {details.burn_s:g} s")
        span_ns = burn(details)
        for one in list(self._standing):
            with self._excluding(one, span_ns[0]):
                self._record(one, number, after_burn(one, span_ns, details))
            self._progress.advance()
        self._settle()

    def _record(self, contestant: Contestant, number: int, played: Round) -> None:
        self._judge_last(contestant, played.began_ns)
        self._records[contestant.name].rounds.append(played)
        self._progress.say(round_line(contestant.name, number, played))

    def _judge_last(self, contestant: Contestant, end_ns: int | None = None) -> None:
        """Count the verdicts of the last round once more, with those that fell in the pause after it."""
        rounds = self._records[contestant.name].rounds
        if not rounds:
            return
        before, rounds[-1] = rounds[-1], judged(rounds[-1], contestant.log, end_ns)
        if rounds[-1].blame != before.blame:
            late = round_line(contestant.name, len(rounds), rounds[-1])
            self._progress.say(f"{late}  (with verdicts that came after the round)")

    def _settle(self) -> None:
        time.sleep(SETTLE_S[self._settings.profile])

    @contextmanager
    def _excluding(self, contestant: Contestant, began_ns: int = 0) -> Iterator[None]:
        """Leave out a contestant that fails, in what began just now or at a Unix time in ns.

        Its members are ended: they would take processor time from the others.
        """
        began_ns = began_ns or time.time_ns()
        try:
            yield
        except MeshError as error:
            self._judge_last(contestant, began_ns)
            contestant.close()
            self._records[contestant.name].failure = str(error)
            self._progress.say(f"{contestant.name:<10}  left out from here on: {error}")
            self._standing.remove(contestant)
