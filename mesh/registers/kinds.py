"""What a register may hold, by how its key begins. That is all a voter knows of what it keeps.

    ␀roster/N          final at once, for good       the roster that follows epoch N
    queue/…, queuex/…  open for ever, nobody's       a setting: whoever is asked to may change it
    hook/…, hookx/…    the same                      which run of a hook was the latest
    all else           open, leased or final         its owner's, who ends it; then it is purged in time

A setting that somebody held a lease of, or that was final, could be changed no more, and nobody would have
meant it: so no voter takes such a value, whoever asks. What is never final is never over, and never purged.

Source: our own.
"""

from __future__ import annotations

from typing import Final

from mesh.errors import DecodeError
from mesh.registers.roster import ROSTERS, chosen_roster, successor_key
from mesh.wire.register_messages import Standing, Value

QUEUES: Final = b"queue/"
"""The registers that hold what was set for a queue, by how their keys begin."""

LONG_QUEUES: Final = b"queuex/"
"""Of a queue whose name is too long for a key; its hash follows."""

HOOKS: Final = b"hook/"
"""The registers that hold which run of a hook was the latest, by how their keys begin."""

LONG_HOOKS: Final = b"hookx/"
"""Of a hook whose name is too long for a key; its hash follows."""

SETTINGS: Final = (QUEUES, LONG_QUEUES, HOOKS, LONG_HOOKS)


def is_setting(key: bytes) -> bool:
    """Say whether a register holds a setting."""
    return key.startswith(SETTINGS)


def may_hold(key: bytes, value: Value) -> bool:
    """Say whether a register may hold a value.

    One of rosters holds the roster that follows its epoch, for good: a voter that took anything else would find no
    roster there in its next session, and could not begin. A setting is open.
    """
    if is_setting(key):
        return value.standing is Standing.OPEN
    if not key.startswith(ROSTERS):
        return True
    try:
        roster = chosen_roster(value)
    except DecodeError:
        return False
    return value.standing is Standing.FINAL and key == successor_key(roster.epoch - 1)
