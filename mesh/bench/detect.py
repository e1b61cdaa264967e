"""`mesh bench detect`: start every contestant, let it idle, play the rounds side by side, clear away.

    find peers -> start -> idle -> rounds (A B A B …) -> records
                    `-- once on loopback, and once more, each member on a host of its own, for `host`

A contestant that fails is left out from there on, and its record says why; the others go on.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

from mesh.bench.contestant import Contestant
from mesh.bench.faults import APART, SHARED, after_burn, burn, draw, judged, play
from mesh.bench.idle import measure_idle
from mesh.bench.joining import start_all
from mesh.bench.lineup import Lineup
from mesh.bench.progress import Progress
from mesh.bench.records import Record, Round
from mesh.bench.report import round_line
from mesh.bench.settings import DetectSettings
from mesh.errors import MeshError
from mesh.fleet.clearing import signals_as_exits, undisturbed

SETTLE_S: Final = {"local": 1.0, "lan": 3.0, "wan": 9.0}
"""The pause after a start and between rounds, so that the news of one is no part of the next."""


def detect(settings: DetectSettings, progress: Progress) -> list[Record]:
    """Measure everything and return the records, Mesh's own first. Nothing is left running.

    Raises:
        ConfigError: a peer that was asked for is missing.
        BenchError: a harness could not be built.
    """
    settings.check()
    records: dict[str, Record] = {}
    with signals_as_exits(), cleared_away() as stack:
        lineup = Lineup(settings, stack)
        for is_apart, faults in stages(settings.faults):
            with cleared_away() as ground:
                contestants = lineup.all(ground, is_apart=is_apart)
                for one in contestants:
                    records.setdefault(one.name, Record(name=one.name, about=one.about))
                run = _Run(settings, progress, contestants, records)
                run.start()
                run.idle()
                run.rounds(faults)
        return list(records.values())


def stages(faults: Sequence[str]) -> list[tuple[bool, list[str]]]:
    """Return whether members stand apart, and what is played then: loopback's faults first."""
    parts = [
        (is_apart, [fault for fault in faults if (fault in APART) is is_apart])
        for is_apart in (False, True)
    ]
    return [part for part in parts if part[1]]


@contextmanager
def cleared_away() -> Iterator[ExitStack]:
    """Return a stack that is emptied undisturbed, whatever happens."""
    stack = ExitStack()
    try:
        yield stack
    finally:
        with undisturbed():
            stack.close()


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
        self._standing = [one for one in contestants if not records[one.name].failure]
        self._members = contestants[0].members
        self._records = records
        # Rounds on another ground have been judged by the log that was kept there.
        self._judged = {name: len(record.rounds) for name, record in records.items()}
        self._rng = random.Random(settings.seed)

    def start(self) -> None:
        """Start all contestants, one after the other."""
        for one in list(self._standing):
            self._progress.task(f"{one.name}: starting {self._settings.nodes} members")
            with self._excluding(one):
                join = start_all(one)
                record = self._records[one.name]
                record.join = record.join or join
                self._progress.say(
                    f"{one.name:<10}  {join.nodes} members see each other "
                    f"{join.converged_ms:.0f} ms after the last socket was bound"
                )
        self._settle()

    def idle(self) -> None:
        """Measure the idle members, all contestants at once."""
        seconds = self._settings.idle_s
        if not seconds or any(record.idle for record in self._records.values()):
            return
        self._progress.task("idle")

        def tick(passed_s: float) -> None:
            self._progress.task(f"idle: {passed_s:.0f} of {seconds:g} s")

        for name, idle in measure_idle(self._standing, seconds, tick).items():
            self._records[name].idle = idle

    def rounds(self, faults: Sequence[str]) -> None:
        """Play these faults' rounds, by turns at each contestant, while any is left."""
        settings = self._settings
        for fault in faults:
            self._say_who_cannot(fault)
            victims = draw(self._members, self._rng)
            for number in range(1, settings.rounds + 1):
                if not self._standing:
                    return
                if fault in SHARED:
                    self._shared_round(number)
                    continue
                victim, seed = next(victims)
                phase_s = self._rng.random()
                for one in self._players(fault):
                    self._progress.task(f"{fault} {number} of {settings.rounds}: {one.name}")
                    time.sleep(phase_s)
                    with self._excluding(one):
                        played = play(fault, one, victim, seed, settings.details)
                        self._record(one, number, played)
                    self._progress.advance()
                self._settle()
        for one in self._standing:
            self._judge_last(one)

    def _players(self, fault: str) -> list[Contestant]:
        return [one for one in self._standing if fault != "deaf" or one.can_deafen]

    def _say_who_cannot(self, fault: str) -> None:
        players = self._players(fault)
        if unable := [one.name for one in self._standing if one not in players]:
            self._progress.say(f"{', '.join(unable)}: no hook for {fault}, not played")

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
        if len(rounds) <= self._judged[contestant.name]:
            return
        before, rounds[-1] = rounds[-1], judged(rounds[-1], contestant.log, end_ns)
        if rounds[-1].blame != before.blame:
            number = sum(one.fault == before.fault for one in rounds)
            late = round_line(contestant.name, number, rounds[-1])
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
