"""The numbers that one session may use in ballots: each once, and none that another session used.

A ballot belongs to one session of one node: two sessions that used one would be two owners with one token.
So numbers are set aside durably, in blocks, before the first of a block is sent: a session that ends leaves
a gap.

Source: our own.
"""

from __future__ import annotations

from typing import Final

from mesh.core.ballot import N_MAX
from mesh.errors import LocalProtocolError

BLOCK: Final = 1024
"""So many numbers are set aside at once."""

LEAP_MAX: Final = 1 << 32
"""A number that is further ahead than this was not counted to: it is not followed."""


class Numbers:
    """The numbers that this session may use in ballots: each once, and none that another session used."""

    __slots__ = ("_limit", "_next")

    def __init__(self, set_aside: int) -> None:
        """Go on after what earlier sessions have set aside."""
        self._next = set_aside + 1
        self._limit = set_aside  # durable, or on its way before anything that is sent later

    def can_follow(self, above: int) -> bool:
        """Say whether somebody may have counted to this: what a node says of others is not taken for granted."""
        return max(self._next, above + 1) <= self._highest

    def take(self, above: int = 0) -> tuple[int, int | None]:
        """Return a number above `above` that was never used, and what has to be stored before it is sent.

        The second is the new limit of what is set aside; None: nothing has to be stored.

        Raises:
            LocalProtocolError: `above` is no number that anybody has counted to; nothing was taken.
        """
        n = max(self._next, above + 1)
        if n > self._highest:
            raise LocalProtocolError(
                f"a number of at most {self._highest} is expected, found {above}"
            )
        self._next = n + 1
        if n <= self._limit:
            return n, None
        self._limit = n + BLOCK
        return n, self._limit

    @property
    def _highest(self) -> int:
        return min(self._next + LEAP_MAX, N_MAX)
