"""Identifiers: 64-bit random numbers for machines, short text for people and tasks.

Node and mesh ids are integers, not bytes: they order and hash the same way in every process
(``PYTHONHASHSEED`` does not touch them), which keeps runs reproducible.
"""

from __future__ import annotations

import random
import re
from typing import Final, NewType

NodeId = NewType("NodeId", int)
"""A node's identity: 64 random bits, drawn once per data directory. Never 0."""

MeshId = NewType("MeshId", int)
"""A mesh's identity: 64 random bits, drawn by its founder. 0 means 'none yet'."""

TaskId = NewType("TaskId", str)
"""A task's identity: the caller's idempotency key, or fresh random text."""

NO_MESH: Final = MeshId(0)
NO_NODE: Final = NodeId(0)
TASK_ID_CHARS_MAX: Final = 128
NAME_CHARS_MAX: Final = 64

_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u
_DIGITS: Final = re.compile(r"[0-9a-f]{16}", re.ASCII)


def new_node_id(rng: random.Random) -> NodeId:
    """Draw a node id from `rng`; never 0."""
    return NodeId(rng.getrandbits(64) or 1)


def new_mesh_id(rng: random.Random) -> MeshId:
    """Draw a mesh id from `rng`; never 0."""
    return MeshId(rng.getrandbits(64) or 1)


def new_task_id(rng: random.Random) -> TaskId:
    """Draw a task id from `rng`: 12 characters, 60 bits."""
    bits = rng.getrandbits(60)
    return TaskId("".join(_ALPHABET[bits >> shift & 31] for shift in range(0, 60, 5)))


def low32(value: int) -> int:
    """Return the low 32 bits of an id or a boot: enough to tell whether it is the one that is meant."""
    return value & 0xFFFF_FFFF


def id_of(text: object) -> int | None:
    """Return the id that `format_id` made this text of; None: it is no such text."""
    return int(text, 16) if type(text) is str and _DIGITS.fullmatch(text) else None


def format_id(value: int) -> str:
    """Return the 16 hexadecimal digits by which people and JSON see a node or mesh id."""
    return f"{value:016x}"
