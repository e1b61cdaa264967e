"""What a user may say of the hooks of a node: the shell lines, and when they run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mesh.core import limits
from mesh.errors import ConfigError
from mesh.hooks.shortage import COOL_DOWN_S, SHORT_AFTER_S
from mesh.runtime.requests import ARGUMENT_BYTES_MAX

HEALTH_EVERY_S: Final = 10.0
HEALTH_TIMEOUT_S_MAX: Final = 30.0
"""No run of a check may take longer, however seldom it runs: a host that has become unfit is to be known for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookSettings:
    """The hooks of one node as its user wants them. None: not said."""

    health_check: str | None = None
    """A line for the shell that exits with 0 while this host is fit for work. None: it always is."""

    health_every_s: float | None = None
    """How often it runs, 1 s to 1 h: the longer, the longer an unfit host goes on to take tasks. None: 10 s."""

    on_shortage: str | None = None
    """A line for the shell that is run when the mesh is short of slots."""

    short_after_s: float | None = None
    """How long the load has to be high, 1 s to 1 h. None: 30 s."""

    shortage_cool_down_s: float | None = None
    """How long it is not run again in the whole mesh, 10 s to 7 d. None: 10 min."""

    @property
    def are_any(self) -> bool:
        """Say whether any line is to be run."""
        return self.health_check is not None or self.on_shortage is not None

    @property
    def check_every_s(self) -> float:
        """How often the health check runs."""
        return HEALTH_EVERY_S if self.health_every_s is None else self.health_every_s

    @property
    def check_timeout_s(self) -> float:
        """How long one run of it may take."""
        return min(self.check_every_s, HEALTH_TIMEOUT_S_MAX)

    @property
    def load_lasts_s(self) -> float:
        """How long the load has to be high."""
        return SHORT_AFTER_S if self.short_after_s is None else self.short_after_s

    @property
    def cool_down_s(self) -> float:
        """How long the hook of a shortage is not run again."""
        return COOL_DOWN_S if self.shortage_cool_down_s is None else self.shortage_cool_down_s

    def check(self) -> None:
        """Raise ConfigError for whatever is wrong."""
        _check_line("--health-check", self.health_check)
        _check_line("--on-shortage", self.on_shortage)
        check, shortage = self.health_check, self.on_shortage
        for flag, found_s, (low_s, high_s), owner, line in (
            ("--health-every", self.health_every_s, limits.HEALTH_EVERY_S, "--health-check", check),
            ("--short-after", self.short_after_s, limits.SHORT_AFTER_S, "--on-shortage", shortage),
            (
                "--shortage-cool-down",
                self.shortage_cool_down_s,
                limits.COOL_DOWN_S,
                "--on-shortage",
                shortage,
            ),
        ):
            if found_s is None:
                continue
            if line is None:
                raise ConfigError(
                    f"{flag} says when {owner} is run: {owner} CMD is expected with it, found none; name the command, "
                    f"or leave {flag} away"
                )
            if not low_s <= found_s <= high_s:
                raise ConfigError(
                    f"{flag} lies between {low_s:g} and {high_s:g} s, found {found_s:g}; name a time within that, "
                    "or leave it away"
                )


def _check_line(flag: str, line: str | None) -> None:
    if line is None:
        return
    if not line.strip():
        raise ConfigError(f"{flag} expects a command for the shell, found nothing but blanks")
    if "\0" in line:
        raise ConfigError(
            f"{flag} expects a command without the character NUL, which no command can be given"
        )
    size = len(line.encode("utf-8", "surrogateescape"))
    if size > ARGUMENT_BYTES_MAX:
        raise ConfigError(
            f"{flag} expects a command of at most {ARGUMENT_BYTES_MAX} bytes, found {size}: put it into a file"
        )
