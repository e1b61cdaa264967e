"""How healthy this node is itself, from what it misses: the local health score.

0 is healthy. It grows with what points at the observer (a probe without an answer whose relays stayed
silent too, a suspicion of itself that it had to refute, its own loop running late) and falls with each
probe that is answered. Probes slow down with it, so that a slow observer accuses late, or nobody.

Source: local health multiplier [Lifeguard §IV.A]. Deviation: a probe that fails counts the nacks that it
missed, nothing if all came, as in [memberlist]; and the loop's own lag counts too.
"""

from __future__ import annotations


class Awareness:
    """A score from 0 to `score_max`."""

    __slots__ = ("_max", "score")

    def __init__(self, score_max: int) -> None:
        self._max = score_max
        self.score = 0

    def note(self, points: int) -> None:
        """Add points (negative: better), within the bounds."""
        self.score = max(0, min(self._max, self.score + points))

    @property
    def scale(self) -> int:
        """By how much period and timeout of probes are stretched: 1 when healthy."""
        return self.score + 1
