"""What a run showed, for programs (JSON) and for people (a table of plain text)."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mesh.core.time import format_duration
from mesh.node.config import profile
from mesh.sim.checkers import Violation

_VIOLATIONS_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """How soon the survivors noticed, in seconds from the fault. `missing`: who never did."""

    seconds: tuple[float, ...]
    missing: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """Whose `seconds` these are, one for one; or nothing, when nobody asks."""

    def lines(self) -> list[str]:
        """Return a line for each survivor, the quickest first; who never noticed comes last."""
        noticed = sorted(zip(self.seconds, self.names, strict=False))
        return [
            *(f"  {name} noticed after {seconds:.3f} s" for seconds, name in noticed),
            *(f"  {name} never noticed" for name in self.missing),
        ]

    def to_json(self) -> dict[str, Any]:
        """Return first, median and last over the survivors."""
        if not self.seconds:
            return {"missing": len(self.missing)} if self.missing else {}
        return {
            "first_s": round(min(self.seconds), 4),
            "median_s": round(statistics.median(self.seconds), 4),
            "last_s": round(max(self.seconds), 4),
            "missing": len(self.missing),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The outcome of one run. Times are seconds of simulated true time, but for `wall_s`."""

    settings: Mapping[str, Any]
    seed: int
    trace_hash: str
    converged_s: float | None
    """From the first start (in a mixed run: from the end of the faults) until all views were right."""

    healed_s: float | None = None
    """From the end of the fault until all views were right again."""

    detection: Detection = field(default_factory=lambda: Detection(seconds=()))
    false_accusations: int = 0
    packets_s: float | None = None
    """Packets that an idle member sends a second, frames of streams included."""

    bytes_s: float | None = None
    simulated_s: float = 0.0
    steps: int = 0
    wall_s: float = 0.0
    is_checked: bool = False
    """Whether every node's own invariants, and every view on the way, were looked at."""

    violations: Sequence[Violation] = ()
    replay: str = ""
    story: str = ""

    @property
    def has_held(self) -> bool:
        """Say whether every invariant held."""
        return not self.violations

    def to_json(self) -> dict[str, Any]:
        """Return the shape that `mesh sim --json` prints. It repeats with the seed."""
        return {
            "settings": dict(self.settings),
            "seed": self.seed,
            "trace_hash": self.trace_hash,
            "converged_s": _rounded(self.converged_s),
            "healed_s": _rounded(self.healed_s),
            "detection": self.detection.to_json(),
            "false_accusations": self.false_accusations,
            "packets_s": _rounded(self.packets_s),
            "bytes_s": _rounded(self.bytes_s),
            "simulated_s": round(self.simulated_s, 3),
            "steps": self.steps,
            "invariants": "held" if self.has_held else [str(v) for v in self.violations],
            "checked": self.is_checked,
            "replay": self.replay,
        }

    def to_speed(self) -> str:
        """Return how fast it went, which alone differs from run to run."""
        speed = f"{self.steps / self.wall_s:,.0f} steps a second" if self.wall_s else "not timed"
        return f"{format_duration(self.simulated_s)} simulated in {format_duration(self.wall_s)}, {speed}"

    def to_text(self, *, is_verbose: bool = False) -> str:
        """Return an aligned table; after a failure also the way to replay it, and the story.

        The same seed gives the same text. `is_verbose`: also when each survivor noticed.
        """
        settings = ", ".join(f"{key} {value}" for key, value in self.settings.items())
        rows = [
            ("settings", settings),
            ("seed", str(self.seed)),
            ("converged", _seconds(self.converged_s, self._since())),
        ]
        if self.healed_s is not None:
            since = "from the end of the fault until all views were right again"
            rows.append(("healed", _seconds(self.healed_s, since)))
        if self.detection.seconds:
            found = self.detection.to_json()
            words = [f"{key} {found[f'{key}_s']:.3f} s" for key in ("first", "median", "last")]
            missing = len(self.detection.missing)
            rows.append(("detection", ", ".join(words) + (f", {missing} never" if missing else "")))
        elif self.detection.missing:
            rows.append(("detection", f"none by {len(self.detection.missing)} survivors"))
        if self.detection.seconds or self.detection.missing:
            rows.append(("to be expected", self._expected()))
        rows.append(("false accusations", str(self.false_accusations)))
        if self.packets_s is not None:
            rate = f"{self.packets_s:.2f} packets, {self.bytes_s or 0:.0f} bytes a second"
            rows.append(("idle member sends", rate))
        rows += [
            ("simulated", f"{format_duration(self.simulated_s)}, {self.steps:,} steps"),
            ("trace", f"{self.trace_hash}: of all inputs and effects; it repeats with the seed"),
            ("invariants", self._verdict()),
        ]
        width = max(len(name) for name, _ in rows)
        lines = [f"{name:<{width}}  {value}" for name, value in rows]
        if is_verbose:
            lines += self.detection.lines()
        if not self.has_held:
            lines += [f"  {violation}" for violation in self.violations[:_VIOLATIONS_SHOWN]]
            lines += [f"replay: {self.replay}", "what happened:", self.story]
        return "\n".join(lines)

    def _since(self) -> str:
        is_mixed = self.settings.get("scenario") == "mixed"
        return f"from the {'end of the faults' if is_mixed else 'first start'} until all views were right"

    def _expected(self) -> str:
        """Return what the profile and the size make of a detection: how silence is found, and what else there is."""
        swim, nodes = profile(self.settings["profile"]), self.settings["nodes"]
        shared_s, alone_s = swim.suspicion_s(nodes), swim.longest_suspicion_s(nodes)
        silence = (
            f"a probe within a period or two of {swim.probe_interval_s:g} s, and a suspicion of "
            f"{shared_s:.1f} s if enough share it, {alone_s:.1f} s if nobody does "
            f"({self.settings['profile']}, {nodes} members)"
        )
        if self.settings.get("fault") == "crash":
            return f"a few round trips, since its host tells of a crash; were it silent, {silence}"
        return silence

    def _verdict(self) -> str:
        if not self.has_held:
            return f"{len(self.violations)} violations"
        if self.is_checked:
            return "held, every view and node looked at on the way"
        return "held at the end and in all events; --check looks at views and nodes on the way, too"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _seconds(value: float | None, since: str) -> str:
    return "never" if value is None else f"{value:.3f} s, {since}"
