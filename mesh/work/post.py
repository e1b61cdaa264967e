"""A message for a member, before anybody looks up where that member is.

The keeper and the owner of a task may be one node. Machines here post to a node id; the facade hands
what is for this node straight to the other machine, and turns the rest into `Ask` and `Tell`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypeAlias

from mesh.core.effects import Effect
from mesh.core.ids import NodeId


@dataclass(frozen=True, slots=True)
class Post:
    """One message to a member. With a tag its reply, or None, comes back exactly once; without, it may be lost."""

    to: NodeId
    message: object
    tag: tuple[Hashable, ...] | None = None
    timeout_s: float = 2.0


Step: TypeAlias = Effect | Post
