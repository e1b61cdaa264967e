"""What leaves a node's tasks: effects for its driver, what is to be stored, and messages for other nodes.

Source: our own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from mesh.core.effects import Effect
from mesh.core.ids import NodeId
from mesh.registers.outbox import Commit


@dataclass(frozen=True, slots=True)
class Send:
    """Send these messages, of registers and of tasks, to a node that is not this one, in this order; they may be lost."""

    to: NodeId
    messages: tuple[object, ...]


Step: TypeAlias = Effect | tuple[NodeId, object]
"""What a machine of this floor returns: effects in order, and messages to members, this node among them."""

Outgoing: TypeAlias = Effect | Commit | Send
"""What leaves a node's tasks. A `Commit` is durable before `committed` is called with its number; nothing else waits for it."""
