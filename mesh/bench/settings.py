"""What `mesh bench detect` is to measure, checked before anything starts."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final

from mesh.bench.faults import FaultSettings
from mesh.bench.namespaces import why_not
from mesh.errors import ConfigError

CAN_DEAFEN: Final = frozenset({"mesh", "memberlist"})
"""Who has a hook inside its members."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectSettings:
    """What is to be measured."""

    nodes: int = 8
    rounds: int = 5
    faults: tuple[str, ...] = ("kill",)
    profile: str = "lan"
    evidence: str = "all"
    """What Mesh's members tell a crash by; peers know silence alone."""

    tolerance_s: float | None = None
    """How long a suspect of Mesh may be silent; None: as the profile has it."""

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
        hard_of_nothing = [name for name in self.vs if not self.is_played("deaf", name)]
        if self.faults == ("deaf",) and hard_of_nothing:
            raise ConfigError(
                f"deaf needs a hook inside the members, which {' and '.join(hard_of_nothing)} lack; "
                "leave them out of --vs"
            )
        if "host" in self.faults and (reason := why_not()):
            others = ",".join(fault for fault in self.faults if fault != "host") or "kill"
            raise ConfigError(
                f"--fault host gives each member a host of its own, which cannot be had: {reason}; "
                f"without it: --fault {others}"
            )

    @staticmethod
    def is_played(fault: str, contestant: str) -> bool:
        """Say whether a contestant can play a fault at all."""
        return fault != "deaf" or contestant in CAN_DEAFEN

    @property
    def total_rounds(self) -> int:
        """How many rounds are played by all contestants together."""
        names = ("mesh", *self.vs)
        return self.rounds * sum(
            self.is_played(fault, name) for fault in self.faults for name in names
        )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON shape."""
        parts = asdict(self)
        parts.pop("kinship_python")  # a path of this host, and no part of what was measured
        details = parts.pop("details")
        return {**parts, "faults": list(self.faults), "vs": list(self.vs), **details}
