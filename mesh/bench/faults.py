"""The faults, one row each: what is done to the victim, and what is read from all others' events.

kill      SIGKILL; noticed when a survivor reports the victim dead. It is started again afterwards.
restart   the same, but the times that count are those of its return, from its socket's binding.
leave     the victim is told to leave; noticed when a survivor reports it gone.
stop      SIGSTOP, and SIGCONT some seconds later: was anybody accused?
deaf      whatever reaches the victim is dropped for some seconds while its timers run.
host      the victim's host is lost: its link is cut, nobody answers, nothing is refused. Each member stands
          in a network namespace of its own. The link comes up again when all others have noticed.
burn      busy loops beside all members for some seconds, at all contestants at once.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from mesh.bench.contestant import BenchError, Contestant, tether
from mesh.bench.joining import await_whole, bring_back
from mesh.bench.namespaces import Namespaces
from mesh.bench.records import Blame, Round
from mesh.bench.sightings import Sight, Sighting, SightingLog

FAULTS: Final = ("kill", "stop", "leave", "restart", "burn", "deaf", "host")
APART: Final = frozenset({"host"})
"""Played with each member on a host of its own."""

SHARED: Final = frozenset({"burn"})
"""Played at all contestants at once, since nobody on the host escapes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultSettings:
    """How long, and how much."""

    stop_s: float = 2.5
    """How long a stopped victim stands still."""

    deaf_s: float = 10.0
    burners: int = 8
    burn_s: float = 60.0
    is_at_once: bool = False
    """Restart a killed victim without waiting until all others have noticed its death."""

    watch_s: float = 5.0
    """How long verdicts are waited for after a stop, deafness or a burn has ended."""

    notice_timeout_s: float = 60.0
    """Whoever has not reported by then is missing."""

    reunion_s: float = 20.0
    """How long a victim whose host is back may take to be back by itself; then it is started again."""


def play(
    fault: str, contestant: Contestant, victim: str, seed: str, settings: FaultSettings
) -> Round:
    """Play one fault to its end: all members hold each other alive before and after.

    `seed` is the member at which a victim that was ended comes back.

    Raises:
        BenchError: the contestant did not become whole in time.
    """
    await_whole(contestant)
    return _PLAYS[fault](fault, contestant, victim, seed, settings)


def _kill(fault: str, on: Contestant, victim: str, seed: str, settings: FaultSettings) -> Round:
    fault_ns = on.kill(victim)
    if fault == "restart" and settings.is_at_once:
        return _back(Round(fault=fault, victim=victim), on, seed, fault_ns)
    return _back(_noticed(fault, on, victim, fault_ns, settings), on, seed, fault_ns)


def _leave(fault: str, on: Contestant, victim: str, seed: str, settings: FaultSettings) -> Round:
    fault_ns = on.leave(victim)
    return _back(_noticed(fault, on, victim, fault_ns, settings), on, seed, fault_ns)


def _noticed(
    fault: str, on: Contestant, victim: str, fault_ns: int, settings: FaultSettings
) -> Round:
    """Wait until all survivors have reported the victim gone."""
    survivors = [name for name in on.members if name != victim]
    # Some peers tell no leave from a death.
    sights = [Sight.DEAD, Sight.LEFT] if fault == "leave" else [Sight.DEAD]
    seen_ns = on.log.wait_seen(sights, victim, survivors, fault_ns, settings.notice_timeout_s)
    return Round(
        fault=fault,
        victim=victim,
        noticed_ms={name: round((at_ns - fault_ns) / 1e6, 1) for name, at_ns in seen_ns.items()},
        missing=tuple(name for name in survivors if name not in seen_ns),
    )


def _back(noticed: Round, on: Contestant, seed: str, fault_ns: int) -> Round:
    """Bring the victim back and complete its round."""
    victim = noticed.victim
    return_ns = time.time_ns()
    returned = bring_back(on, victim, seed)
    await_whole(on)
    absent = {name for name in on.members if name != victim} - returned.keys()
    whole = replace(
        noticed,
        returned_ms=returned,
        missing=tuple(sorted(absent.union(noticed.missing))),
        began_ns=fault_ns,
        victim_from_ns=return_ns,
    )
    return judged(whole, on.log)


def _stop(fault: str, on: Contestant, victim: str, seed: str, settings: FaultSettings) -> Round:
    del seed
    fault_ns = time.time_ns()
    os.kill(on.pid(victim), signal.SIGSTOP)
    try:
        time.sleep(settings.stop_s)
    finally:
        os.kill(on.pid(victim), signal.SIGCONT)
    return _recovered(Round(fault=fault, victim=victim), on, (fault_ns, time.time_ns()), settings)


def _standstill(
    fault: str, on: Contestant, victim: str, seed: str, settings: FaultSettings
) -> Round:
    """Stop the victim for good: the silence of a lost host where there are no namespaces."""
    fault_ns = time.time_ns()
    os.kill(on.pid(victim), signal.SIGSTOP)
    noticed = _noticed(fault, on, victim, fault_ns, settings)
    on.kill(victim)
    return _back(noticed, on, seed, fault_ns)


def _host(fault: str, on: Contestant, victim: str, seed: str, settings: FaultSettings) -> Round:
    ground = on.ground
    if not isinstance(ground, Namespaces):
        raise BenchError(f"{on.name}: its members need hosts of their own to lose one")
    fault_ns = ground.cut(victim)
    try:
        noticed = _noticed(fault, on, victim, fault_ns, settings)
    finally:
        mended_ns = ground.mend(victim)
    survivors = [name for name in on.members if name != victim]
    deadline = time.monotonic() + settings.reunion_s
    seen_ns = on.log.wait_seen([Sight.ALIVE], victim, survivors, mended_ns, settings.reunion_s)
    whole_ns = on.log.wait_whole(on.members, max(0.0, deadline - time.monotonic()))
    if whole_ns is None:
        return _again(noticed, on, seed, fault_ns)
    whole = replace(
        noticed,
        returned_ms={name: round((at_ns - mended_ns) / 1e6, 1) for name, at_ns in seen_ns.items()},
        whole_ms=round(max(0, whole_ns - mended_ns) / 1e6, 1),
        began_ns=fault_ns,
        victim_from_ns=mended_ns,
    )
    return judged(whole, on.log)


def _again(noticed: Round, on: Contestant, seed: str, fault_ns: int) -> Round:
    """Start a victim again that did not come back whole. Who held it alive already has nothing to report."""
    on.kill(noticed.victim)
    return_ns = time.time_ns()
    on.spawn(noticed.victim, seed)
    await_whole(on)
    whole = replace(noticed, is_restarted=True, began_ns=fault_ns, victim_from_ns=return_ns)
    return judged(whole, on.log)


def _deaf(fault: str, on: Contestant, victim: str, seed: str, settings: FaultSettings) -> Round:
    del seed
    fault_ns = on.toggle_deafness(victim)
    time.sleep(settings.deaf_s)
    over_ns = on.toggle_deafness(victim)
    return _recovered(Round(fault=fault, victim=victim), on, (fault_ns, over_ns), settings)


def _recovered(
    bare: Round, on: Contestant, span_ns: tuple[int, int], settings: FaultSettings
) -> Round:
    """Wait for late verdicts, and until all are whole again; return the completed round."""
    began_ns, over_ns = span_ns
    time.sleep(settings.watch_s)
    whole_ns = await_whole(on)
    whole = replace(
        bare,
        whole_ms=round(max(0, whole_ns - over_ns) / 1e6, 1),
        began_ns=began_ns,
        victim_from_ns=began_ns,
    )
    return judged(whole, on.log)


def burn(settings: FaultSettings) -> tuple[int, int]:
    """Keep the host busy; return from when to when, Unix times in ns."""
    began_ns = time.time_ns()
    with busy_loops(settings.burners):
        time.sleep(settings.burn_s)
    return began_ns, time.time_ns()


def after_burn(on: Contestant, span_ns: tuple[int, int], settings: FaultSettings) -> Round:
    """Return the round of one contestant that lived through a burn from when to when."""
    return _recovered(Round(fault="burn"), on, span_ns, settings)


@contextlib.contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Run `count` processes that do nothing but use a processor."""
    command = [*tether(), sys.executable, "-S", "-c", "while True: pass"]
    loops: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(count):
            # One by one: if one cannot be started, those before it are ended.
            loop = subprocess.Popen(command, start_new_session=True)
            loops.append(loop)
        yield
    finally:
        for loop in loops:
            loop.kill()
        for loop in loops:
            loop.wait()


def judged(played: Round, log: SightingLog, end_ns: int | None = None) -> Round:
    """Return a round with the wrong verdicts from its fault on, and before `end_ns`.

    They are counted once more when the next round begins: one that falls in the pause belongs to somebody.
    """
    seen = log.since(played.began_ns, end_ns)
    if played.fault in APART:
        # Whose host was lost reaches nobody, and is right to hold them dead.
        seen = [one for one in seen if one.observer != played.victim]
    others = blame_of(seen, played.victim)
    back = blame_of([one for one in seen if one.at_ns >= played.victim_from_ns], played.victim)
    blame = replace(
        others,
        victim_accusations=back.victim_accusations,
        victim_suspicions=back.victim_suspicions,
    )
    return replace(played, blame=blame)


def blame_of(seen: Sequence[Sighting], victim: str) -> Blame:
    """Count the verdicts that were wrong: on others than the victim, and on the victim itself."""

    def count(sight: Sight, *, is_victim: bool) -> int:
        return sum(one.sight is sight and (one.member == victim) is is_victim for one in seen)

    return Blame(
        false_accusations=count(Sight.DEAD, is_victim=False),
        suspicions=count(Sight.SUSPECT, is_victim=False),
        victim_accusations=count(Sight.DEAD, is_victim=True),
        victim_suspicions=count(Sight.SUSPECT, is_victim=True),
    )


def draw(members: Sequence[str], rng: random.Random) -> Iterator[tuple[str, str]]:
    """Yield victims, each with another member at which it comes back: everybody once before anybody again."""
    while True:
        for victim in rng.sample(list(members), len(members)):
            yield victim, rng.choice([member for member in members if member != victim])


_Play = Callable[[str, Contestant, str, str, FaultSettings], Round]
_PLAYS: Final[Mapping[str, _Play]] = {
    "kill": _kill,
    "restart": _kill,
    "leave": _leave,
    "stop": _stop,
    "deaf": _deaf,
    "host": _host,
    "standstill": _standstill,
}
