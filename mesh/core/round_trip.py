"""Round trips measured: how long to wait for the next answer.

Source: the retransmission timeout of TCP [RFC 6298 §2], its bounds left to the caller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SMOOTHING: Final = 0.125
DEVIATION_SMOOTHING: Final = 0.25
DEVIATIONS: Final = 4
"""The weights of a new round trip, and how many mean deviations above the smoothed one to wait."""


@dataclass(slots=True)
class RoundTrip:
    """The smoothed round trip and its mean deviation, in seconds, from the first that was measured on."""

    mean_s: float
    deviation_s: float

    @classmethod
    def first(cls, rtt_s: float) -> RoundTrip:
        """Return what one round trip says."""
        return cls(rtt_s, rtt_s / 2)

    def measure(self, rtt_s: float) -> None:
        """Take one more round trip in."""
        error_s = rtt_s - self.mean_s
        self.deviation_s += DEVIATION_SMOOTHING * (abs(error_s) - self.deviation_s)
        self.mean_s += SMOOTHING * error_s

    @property
    def patience_s(self) -> float:
        """How long an answer may take before it is missed."""
        return self.mean_s + DEVIATIONS * self.deviation_s
