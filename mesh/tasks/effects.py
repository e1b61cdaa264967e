"""What the work of a lease asks of whoever runs processes, beside `StartProcess` and `StopProcess`.

`GuardProcess` comes before `StartProcess` of its run, and again whenever the lease was renewed: whoever stands
guard freezes and kills the run at those times though the node be stopped. The node freezes and thaws as well:
on a host without a guardian that is all there is.

Source: our own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from mesh.core.effects import Effect
from mesh.core.ids import NodeId
from mesh.registers.outbox import Commit


@dataclass(frozen=True, slots=True)
class GuardProcess:
    """Freeze a run at `freeze_at` and kill it at `kill_at`, unless these are moved before; a run that was frozen goes on when they are.

    Seconds of this node's own clock. They come before the run is started, and hold from its start on.
    """

    run_id: int
    freeze_at: float
    kill_at: float


@dataclass(frozen=True, slots=True)
class FreezeProcess:
    """Stop a run's every process where it stands, at once; it may be thawed."""

    run_id: int


@dataclass(frozen=True, slots=True)
class ThawProcess:
    """Let a frozen run go on."""

    run_id: int


@dataclass(frozen=True, slots=True)
class Send:
    """Send these messages, of registers and of tasks, to a node that is not this one, in this order; they may be lost."""

    to: NodeId
    messages: tuple[object, ...]


RunEffect: TypeAlias = GuardProcess | FreezeProcess | ThawProcess
Step: TypeAlias = Effect | RunEffect | tuple[NodeId, object]
"""What a machine of this floor returns: effects in order, and messages to members, this node among them."""

Outgoing: TypeAlias = Effect | RunEffect | Commit | Send
"""What leaves a node's tasks. A `Commit` is durable before `committed` is called with its number; nothing else waits for it."""
