"""How long a lease is trusted, and waited for: the one inequality that keeps two owners apart.

    owner    ├─ sends ───── trusts for T_owner ─────┤ in doubt: its work is frozen ┆ lost: killed
    voter        ├─ hears ───── waits for T_voter ───────────────┼─ grace ─┤ may promise another

The owner counts from *before it sent*, a voter from *when it heard*, which is later: so the owner stops
trusting first, however slow the network was. Clocks run at rates that differ by up to `rho` from true time:
T_owner by the slowest clock must end before T_voter by the fastest. Only durations travel, never times.

Source: [Leases]; the owner's time counted from before it asks is our own reading of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from mesh.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTimes:
    """The times of all leases of a mesh, in seconds; every member has the same."""

    renew_s: float
    """Between two rounds of renewals. Shorter: more packets. At most a third of `owner_s`, or one lost packet is doubt."""

    owner_s: float
    """So long the owner trusts a lease, from before it asked."""

    voter_s: float
    """So long a voter waits for the next renewal, from when it heard the last."""

    grace_s: float
    """So long a voter waits beyond that: an owner may be back by then."""

    rho: float = 0.05
    """How far a clock's rate may be off, as a share: 0.05 is 3 s in a minute, far beyond any clock that is not broken."""

    def __post_init__(self) -> None:
        """Refuse times that would allow two owners.

        Raises:
            ConfigError: names the relation that does not hold.
        """
        for name in ("renew_s", "owner_s", "voter_s", "grace_s", "rho"):
            value = getattr(self, name)
            if not isfinite(value):  # else it would pass comparisons that it does not meet
                raise ConfigError(f"lease {name}: a finite number is expected, found {value}")
        if not 0 < self.rho < 0.5:
            raise ConfigError(
                f"lease rho: more than 0 and less than 0.5 is expected, found {self.rho}"
            )
        if not 0 < self.renew_s <= self.owner_s / 3:
            raise ConfigError(
                f"lease renew_s: more than 0 and at most a third of owner_s ({self.owner_s / 3:g}) is "
                f"expected, found {self.renew_s:g}"
            )
        if self.grace_s < 0:
            raise ConfigError(f"lease grace_s: 0 or more is expected, found {self.grace_s:g}")
        least = self.owner_s * (1 + self.rho) / (1 - self.rho)
        if self.voter_s < least:
            raise ConfigError(
                f"lease voter_s: at least owner_s * (1 + rho) / (1 - rho) = {least:.3g} is expected, found "
                f"{self.voter_s:g}: a voter that waits for less gives away what its owner still trusts"
            )

    @property
    def doubt_s(self) -> float:
        """How long an owner in doubt goes on asking before it gives its work up."""
        return self.voter_s + self.grace_s


def local() -> LeaseTimes:
    """Return the times of the profile `local`."""
    return LeaseTimes(renew_s=0.5, owner_s=2, voter_s=3, grace_s=0.5)


def lan() -> LeaseTimes:
    """Return the times of the profile `lan`."""
    return LeaseTimes(renew_s=2, owner_s=10, voter_s=15, grace_s=2)


def wan() -> LeaseTimes:
    """Return the times of the profile `wan`."""
    return LeaseTimes(renew_s=10, owner_s=60, voter_s=90, grace_s=10)
