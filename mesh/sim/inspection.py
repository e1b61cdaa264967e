"""A run under inspection: time passes in steps, and after each the checkers look at every view."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable
from typing import Final, TypeAlias

from mesh.node.config import SwimConfig
from mesh.node.view import View
from mesh.sim.checkers import Accusations, Convergence, Safety, Violation
from mesh.sim.forgotten import Absence
from mesh.sim.patience import Patience
from mesh.sim.repair import Repair
from mesh.sim.world import World

Progress: TypeAlias = Callable[[float, str], None]

_STORY_LINES: Final = 80
_SHORT_S: Final = 600.0  # what is remembered for longer is not forgotten in any run
_IMPATIENCE: Final = 8  # a full comparison at least once in so many steps


class Inspection:
    """Lets a world run and collects what it did wrong. A run is over at its first violation."""

    def __init__(
        self, world: World, swim: SwimConfig, *, check: bool, progress: Progress | None = None
    ) -> None:
        self.world = world
        self.violations: list[Violation] = []
        self.accusations = Accusations(world, swim)
        self.repair = Repair(world.census, swim)
        self._patience = Patience(world, swim)
        self.absence = Absence(world.census, swim)
        self._convergence = Convergence(world.census)
        # By clocks that may be fast; and between two looks somebody may go, or be met again.
        lasts_s = 0.97 * min(swim.left_retention_s, swim.forgotten_retention_s)
        lasts_s -= 4 * swim.probe_interval_s
        self._safety = Safety(world.census, lasts_s if lasts_s < _SHORT_S else math.inf)
        self._check = check
        self._progress = progress

    def say(self, text: str) -> None:
        """Tell who watches the run."""
        if self._progress is not None:
            self._progress(self.world.loop.now_s, text)

    def views(self) -> dict[str, View]:
        """Return the view of every running node that is not paused, by its host's name."""
        now_s = self.world.loop.now_s
        return {
            host.spec.name: host.node.view(host.clock.read(now_s))
            for host in self.world.hosts
            if host.node is not None and not host.is_paused
        }

    def begin_repair(self) -> None:
        """From now on nothing is in the way of the truth: every single error has its time to go."""
        self.repair.begin(self.world.loop.now_s, self.world.hosts, self.views())

    def run_for(self, duration_s: float, step_s: float) -> bool:
        """Let time pass, looking at all views after each step; stop and say False at a violation."""
        end_s = self.world.loop.now_s + duration_s
        while self.world.loop.now_s < end_s and not self.violations:
            self._step(min(step_s, end_s - self.world.loop.now_s))
            if self._check and not self.violations:
                self._look()
        return not self.violations

    def wait_converged(
        self, bound_s: float, step_s: float, *, is_demanded: bool = True
    ) -> float | None:
        """Wait until all views equal the truth and return when that was, in true time.

        That is the time of the last event before it, or of the last look that found a difference.
        After `bound_s` it returns None, and the differences are violations if convergence is
        demanded. While events come in, most comparisons are spared.
        """
        begin_s = self.world.loop.now_s
        end_s = begin_s + bound_s
        wrong_s = begin_s
        spared = 0
        while not self.violations:
            events = len(self.world.events)
            if not self.run_for(step_s, step_s):
                return None
            now_s = self.world.loop.now_s
            is_over = now_s >= end_s
            if len(self.world.events) > events and spared < _IMPATIENCE and not is_over:
                spared += 1
                continue
            spared = 0
            found = self._differences(now_s)
            if not found:
                last_s = self.world.events[-1].at_s if self.world.events else begin_s
                return max(wrong_s, last_s)
            wrong_s = now_s
            if is_over:
                self.violations += found if is_demanded else []
                return None
        return None

    def demand_converged(self) -> None:
        """Take every difference between the views and the truth for a violation, now."""
        if not self.violations:
            now_s = self.world.loop.now_s
            self.violations += self._differences(now_s)

    def _differences(self, now_s: float) -> list[Violation]:
        views = self.views()
        return self._convergence.differences(now_s, views) + self.absence.differences(now_s, views)

    def story(self, log: list[tuple[float, str, tuple[int, ...]]]) -> str:
        """Return all that was seen of the member that the first violation is about, with the faults."""
        if not self.violations:
            return ""
        first = self.violations[0]
        subject = first.member or first.observer
        lines = [(at_s, f"** {text}") for at_s, text, _ in log]
        census = self.world.census
        for observed in self.world.events:
            event = observed.event
            about = "" if event.member_id is None else census.name_of(event.member_id)
            name = observed.observer.spec.name
            if subject in {about, name} and first.observer in {name, about, "everybody"}:
                cause = f" ({event.cause})" if event.cause else ""
                detail = "; ".join([event.detail, *event.evidence])
                text = f"{name}: {event.kind} {event.member or about}{cause} {detail}".rstrip(" ;")
                lines.append((observed.at_s, text))
        lines.sort(key=lambda line: line[0])
        return "\n".join(f"{at_s:10.4f}  {text}" for at_s, text in lines[-_STORY_LINES:])

    def _step(self, step_s: float) -> None:
        try:
            self.world.run_for(step_s)
        except Exception as error:  # noqa: BLE001 - whatever a node raises is what we look for
            self.note_crash(error)
        self.violations += self.accusations.violations + self._patience.violations
        self.accusations.violations.clear()
        self._patience.violations.clear()
        self.violations += self.repair.collect(self.world.loop.now_s)

    def note_crash(self, error: Exception) -> None:
        """Take an exception that came out of a node for a violation; an OSError did not, it is raised.

        Nodes touch no file: the one that takes the trace has failed.
        """
        if isinstance(error, OSError):
            raise error
        acting = self.world.acting
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = (
            f"raised {type(error).__name__}: {error} in {where.name}, line {where.lineno} "
            f"of {where.filename.rpartition('/')[2]}"
        )
        name = acting.spec.name if acting is not None else ""
        self.violations.append(Violation("crash", self.world.loop.now_s, name, "", text))

    def _look(self) -> None:
        now_s = self.world.loop.now_s
        for host in self.world.hosts:
            if host.node is not None and not host.is_paused:
                view = host.node.view(host.clock.read(now_s))
                self.violations += self._safety.observe(now_s, host, view)
