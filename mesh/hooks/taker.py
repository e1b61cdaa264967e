"""One node's way to the turns of a hook: what it asks for, and whether it may run what it was granted.

    ask ──► `TakeTurn` ──► granted, and heard in time ──► run it; the next question is for another run
                      ├──► waits ───────────────────────► ask again after that
                      └──► no answer, or heard too late ► ask again soon, for the same run

A turn is used within `USE_S` of the question or not at all (`turn.py` says why). So a node that was stopped between its
question and the run does not run it, and takes the same turn again.

Source: our own.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from mesh.errors import ConfigError
from mesh.hooks.commands import TakeTurn

USE_S: Final = 5.0
"""A majority is waited for, and a turn is used, within this; less than the shortest cool-down."""

RETRY_S: Final = 10.0
"""Where no majority answered, it is asked again after this."""


class Heard(NamedTuple):
    """What follows from an answer."""

    may_run: bool
    wait_s: float
    """Nothing need be asked before this is over."""


class TurnTaker:
    """The turns of one hook at one node; one question is under way at a time."""

    def __init__(self, hook: str, cool_down_s: float, rng: random.Random) -> None:
        """`rng` makes the marks of its runs; no other node's may make the same.

        Raises:
            ConfigError: a cool-down would be over before its turn is used, and others would not believe in that.
        """
        if cool_down_s <= USE_S:
            raise ConfigError(
                f"a cool-down of more than {USE_S:g} s is expected, found {cool_down_s:g}"
            )
        self._hook = hook
        self._cool_down_s = cool_down_s
        self._rng = rng
        self._mark = rng.getrandbits(64)
        self._asked_at = float("-inf")

    def ask(self, now: float, command_id: int) -> TakeTurn:
        """Return what to ask the node for at once."""
        self._asked_at = now
        return TakeTurn(command_id, self._hook, self._cool_down_s, self._mark, USE_S)

    def hear(self, now: float, answer: Mapping[str, Any] | None) -> Heard:
        """Take the answer to the question, None: there is none. Of a grant the run is to begin at once."""
        if answer is None:
            return Heard(may_run=False, wait_s=RETRY_S)
        if answer["outcome"] != "granted":
            return Heard(may_run=False, wait_s=answer["wait_s"])
        if now > self._asked_at + USE_S:
            return Heard(may_run=False, wait_s=0.0)
        self._mark = self._rng.getrandbits(64)
        return Heard(may_run=True, wait_s=self._cool_down_s + USE_S)
