"""`mesh bench detect --curve`: how soon silence is noticed, against how often the slow are held dead.

Every detector by timeouts buys the one with the other. So each setting is measured for both, beside busy
loops that never end:

    start -> half of the members stand still now and then (who is held dead for it?)
          -> a host is lost, some rounds (how long until all others hold it dead?) -> clear away

Mesh is measured with several pause tolerances, memberlist with several multipliers of its suspicion, any
other peer as it comes. The pauses and the victims are the same for all.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from mesh.bench.contestant import Contestant
from mesh.bench.detect import SETTLE_S, cleared_away
from mesh.bench.faults import busy_loops, draw, play
from mesh.bench.joining import await_whole, start_all
from mesh.bench.lineup import Lineup
from mesh.bench.pauses import LENGTH_S, accused_pauses, plan_pauses, play_pauses
from mesh.bench.points import Point
from mesh.bench.progress import Progress
from mesh.bench.report import round_line
from mesh.bench.settings import DetectSettings
from mesh.errors import ConfigError, MeshError
from mesh.fleet.clearing import signals_as_exits

TOLERANCES_S: Final = {
    "local": (0.2, 0.4, 0.7, 1.0, 2.0, 4.0),
    "lan": (0.2, 0.5, 1.0, 2.0, 3.0, 4.0),
    "wan": (2.0, 5.0, 10.0, 20.0),
}
MULTIPLIERS: Final = (1, 2, 4, 8)
"""memberlist's suspicion multipliers; as it comes it has 3 (local), 4 (lan) or 6 (wan)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveSettings:
    """What is to be swept. The details of `plan` say how many loops burn, and how long members are slow."""

    plan: DetectSettings
    tolerances_s: tuple[float, ...] = ()
    """Mesh's settings; none: the profile's of TOLERANCES_S."""

    is_apart: bool
    """Each member on a host of its own, and a host is lost; else a process is stopped for good."""

    def check(self) -> None:
        """Raise ConfigError if what is asked for cannot be swept."""
        if self.plan.nodes < 3:
            raise ConfigError(f"--curve needs 3 members, found --nodes {self.plan.nodes}")

    @property
    def silence(self) -> str:
        """The fault that is silence here."""
        return "host" if self.is_apart else "standstill"

    @property
    def swept_s(self) -> tuple[float, ...]:
        """Mesh's pause tolerances."""
        return tuple(sorted(self.tolerances_s or TOLERANCES_S[self.plan.profile]))

    @property
    def total_steps(self) -> int:
        """How many steps the progress has: one for the slow, one for each round of silence."""
        peers = sum(len(MULTIPLIERS) if name == "memberlist" else 1 for name in self.plan.vs)
        return (len(self.swept_s) + peers) * (1 + self.plan.rounds)


@dataclass(frozen=True, slots=True)
class _Variant:
    """A contestant with one setting, not yet put up."""

    name: str
    setting: str
    put_up: Callable[[ExitStack], Contestant]


def sweep(settings: CurveSettings, progress: Progress) -> list[Point]:
    """Measure every setting, one after the other; a setting that fails has a point that says why.

    Raises:
        ConfigError: a peer that was asked for is missing.
        BenchError: a harness could not be built.
    """
    settings.check()
    with signals_as_exits(), cleared_away() as stack:
        lineup = Lineup(settings.plan, stack)
        return [
            _Measurement(settings, progress, variant).point()
            for variant in _variants(settings, lineup)
        ]


def _variants(settings: CurveSettings, lineup: Lineup) -> list[_Variant]:
    is_apart, profile = settings.is_apart, settings.plan.profile
    found = [
        _Variant(
            "mesh",
            f"{tolerance_s:g} s",
            partial(lineup.ours, tolerance_s=tolerance_s, is_apart=is_apart),
        )
        for tolerance_s in settings.swept_s
    ]
    for adapter in lineup.adapters:
        settings_of_peer = {"": profile}
        if adapter.name == "memberlist":
            settings_of_peer = {f"x{number}": f"{profile}:{number}" for number in MULTIPLIERS}
        found += [
            _Variant(
                adapter.name,
                name,
                partial(lineup.peer, adapter=adapter, profile=words, is_apart=is_apart),
            )
            for name, words in settings_of_peer.items()
        ]
    return found


@dataclass(slots=True)
class _Measurement:
    """The steps over one setting."""

    settings: CurveSettings
    progress: Progress
    variant: _Variant
    _found: Point = field(init=False)

    def point(self) -> Point:
        """Measure it; nothing of it is left running."""
        variant = self.variant
        self._found = Point(name=variant.name, setting=variant.setting)
        title = f"{variant.name} {variant.setting}".strip()
        try:
            with cleared_away() as stack:
                self.progress.task(f"{title}: starting {self.settings.plan.nodes} members")
                on = variant.put_up(stack)
                self._found = replace(self._found, about=on.about)
                start_all(on)
                with busy_loops(self.settings.plan.details.burners):
                    self._slow(on, title)
                    self._silence(on, title)
        except MeshError as error:
            self._found = replace(self._found, failure=str(error))
            self.progress.say(f"{title}: left out: {error}")
        return self._found

    def _slow(self, on: Contestant, title: str) -> None:
        plan = self.settings.plan
        details = plan.details
        rng = random.Random(f"{plan.seed} pauses")
        slow = sorted(rng.sample(on.members, len(on.members) // 2))
        pauses = plan_pauses(slow, details.burn_s, LENGTH_S[plan.profile], rng)
        time.sleep(SETTLE_S[plan.profile])
        began_ns = time.time_ns()

        def tick(passed_s: float) -> None:
            text = f"{title}: {len(slow)} slow members, {passed_s:.0f} of {details.burn_s:g} s"
            self.progress.task(text)

        played = play_pauses(on, pauses, details.burn_s, tick)
        time.sleep(details.watch_s)
        await_whole(on)
        seen = on.log.since(began_ns)
        accused = accused_pauses(seen, played)
        self._found = self._found.slowed(
            slow=slow, seconds=details.burn_s, pauses=played, accused=accused, seen=seen
        )
        self.progress.say(f"{title:<16}  {self._found.slow_line}")
        self.progress.advance()

    def _silence(self, on: Contestant, title: str) -> None:
        plan = self.settings.plan
        rng = random.Random(f"{plan.seed} victims")
        victims = draw(on.members, rng)
        for number in range(1, plan.rounds + 1):
            victim, seed = next(victims)
            phase_s = rng.random()
            self.progress.task(f"{title}: silence {number} of {plan.rounds}")
            time.sleep(SETTLE_S[plan.profile] + phase_s)
            played = play(self.settings.silence, on, victim, seed, plan.details)
            self._found = replace(self._found, rounds=(*self._found.rounds, played))
            self.progress.say(round_line(f"{title:<16}", number, played))
            self.progress.advance()
