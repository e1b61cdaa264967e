"""How fast voters compare, ship and purge, and what a desk is asked to do for it.

    compared every compare_s ─► what stood still for settle_s is shipped, if it was asked for less than ANSWER_S ago
    final for MESSAGE_LIFE_S at every voter ─► may be purged, however short it was to be kept

The one relation that all of it rests on: whatever was sent before a register was final is gone from the network
before the register is purged, and what is shipped was held when it was asked for. So nothing that comes late brings
back what is over. Times are of this node's own clock.

Source: our own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Final, TypeAlias

from mesh.core.ids import NodeId
from mesh.errors import ConfigError
from mesh.registers.handover import Propose
from mesh.registers.record import Record
from mesh.registers.voter import Forget
from mesh.wire.repair_messages import RepairMessage, Shipped

ANSWER_S: Final = 4.0
"""What is shipped later than this after it was asked for is dropped."""

CERTAIN_S: Final = 6.0
"""After so long nothing that was asked for before is taken any more: ANSWER_S by a clock that is far off."""

MESSAGE_LIFE_S: Final = 300.0
"""No message is on its way for longer."""

RETAIN_S: Final = 86_400.0
"""So long what is final is kept, where nobody says otherwise."""

FINALS_MAX: Final = 100_000
"""So many final registers a voter keeps; beyond that the oldest go first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepTimes:
    """How a voter looks after what it keeps."""

    compare_s: float
    """Between two comparisons with one other voter. Shorter: what is lacking is found sooner, by more packets."""

    settle_s: float
    """So long a record stands unchanged before it is compared: much longer than a write takes to reach all voters."""

    message_life_s: float = MESSAGE_LIFE_S
    """So long a value is final at every voter before it may be purged: longer than any message lives."""

    finals_max: int = FINALS_MAX
    """So many final registers a voter keeps."""

    def __post_init__(self) -> None:
        """Refuse times by which something could come back.

        Raises:
            ConfigError: names the relation that does not hold.
        """
        for name in ("compare_s", "settle_s", "message_life_s"):
            value = getattr(self, name)
            if not isfinite(value) or value <= 0:
                raise ConfigError(f"upkeep {name}: more than 0 s is expected, found {value}")
        if self.message_life_s < 2 * CERTAIN_S:
            raise ConfigError(
                f"upkeep message_life_s: at least {2 * CERTAIN_S:g} is expected, found {self.message_life_s:g}: what "
                "is shipped may be on its way for as long, and no message may outlive what it is about"
            )
        if self.finals_max < 0:
            raise ConfigError(f"upkeep finals_max: 0 or more is expected, found {self.finals_max}")


assert CERTAIN_S > ANSWER_S
assert RETAIN_S > 10 * MESSAGE_LIFE_S


def local() -> UpkeepTimes:
    """Return the times of the profile `local`."""
    return UpkeepTimes(compare_s=20, settle_s=2)


def lan() -> UpkeepTimes:
    """Return the times of the profile `lan`."""
    return UpkeepTimes(compare_s=60, settle_s=10)


def wan() -> UpkeepTimes:
    """Return the times of the profile `wan`."""
    return UpkeepTimes(compare_s=120, settle_s=30)


Expires: TypeAlias = Callable[[bytes, Record], float | None]
"""Tells of a final record until when (by this node's clock) it is kept; None: for good. It may be asked at any time."""


@dataclass(frozen=True, slots=True)
class Fill:
    """Have the voter take what another has shipped."""

    entry: Shipped


UpkeepMove: TypeAlias = tuple[NodeId, RepairMessage] | Fill | Forget | Propose
"""A message to another voter, or what is to be done here, at once and in order."""
