"""Who votes: a roster for each epoch, and the register in which its successor is chosen.

The successor of an epoch is a register of that epoch's own voters, written once and kept for good: so two
who would change the roster agree on one change, before any voter seals anything.

A roster that is chosen is not yet in force. Each of its voters installs it (installation.py) and votes
from then on; an epoch is over where it is sealed. Nobody has to say when.

Source: our own.
"""

from __future__ import annotations

from typing import Final

import msgpack

from mesh.core.ids import NodeId
from mesh.errors import DecodeError
from mesh.registers.proposal import Change
from mesh.wire.register_messages import Standing, Value
from mesh.wire.roster_messages import SCHEMAS, Roster

FIRST: Final = 1
"""The epoch of the founder, alone."""

FULL: Final = 3
"""So many voters a register has, once there are as many."""

_FORM: Final = next(field for kind, field in SCHEMAS.values() if kind is Roster)


ROSTERS: Final = b"\x00roster/"
"""The registers that hold rosters, by how their keys begin."""


def founding(founder: NodeId) -> Roster:
    """Return the first roster of a mesh."""
    return Roster(FIRST, (founder,))


def successor_key(epoch: int) -> bytes:
    """Return the key of the register that holds the successor of an epoch."""
    return ROSTERS + b"%d" % epoch


def successor_of(roster: Roster, voters: list[NodeId]) -> Roster:
    """Return the roster of these voters that follows another."""
    return Roster(roster.epoch + 1, tuple(sorted(set(voters))))


def proposing(roster: Roster) -> Change:
    """Return the change that writes a roster as the successor, if there is none yet."""
    body: bytes = msgpack.packb(_FORM.pack(roster))
    return lambda found: Value(Standing.FINAL, body) if found is None else found


def chosen_roster(value: Value) -> Roster:
    """Return the roster that a successor's register holds.

    Raises:
        DecodeError: the value is no roster.
    """
    try:
        raw = msgpack.unpackb(value.body)
    except ValueError as error:
        raise DecodeError(
            f"a roster is expected, found bytes that are no msgpack: {error}"
        ) from error
    roster: Roster = _FORM.unpack(raw)
    return roster
