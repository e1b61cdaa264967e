"""Every command that a driver can hand to a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from mesh.core.address import Address
from mesh.tasks.commands import TaskCommand


@dataclass(frozen=True, slots=True)
class Leave:
    """Take no more work; stop what still runs after `within_s`, and release it; tell everybody, then `Stop`.

    Given twice, it is still one leave, by the earlier of the two times.
    """

    reason: str
    within_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ForgetMember:
    """Remove a gone member for good, by name or id. Answer: `{"node_id", "name", "was"}`."""

    command_id: int
    whom: str


@dataclass(frozen=True, slots=True)
class Why:
    """Tell a member's story, by name, id, or the beginning of an id. Answer: see `mesh.node.story`."""

    command_id: int
    whom: str


@dataclass(frozen=True, slots=True)
class SetLoad:
    """The host's load. Not answered.

    `load_average_pct`: who wanted to run in the last minute, in hundredths of all its processors, 0 to 255.
    `busy_pct`: how much of the processors that this node may use is in use now, 0 to 100; None: not known, as busy as
    the load average.
    `lag_ms`: how late the node's loop runs, smoothed, in milliseconds.
    """

    load_average_pct: int
    busy_pct: int | None = None
    lag_ms: int = 0


@dataclass(frozen=True, slots=True)
class TakeAddress:
    """This node is reached at another address from now on. Not answered."""

    address: Address


@dataclass(frozen=True, slots=True)
class SetRoom:
    """Whether the store takes on more, and what it lacks, in words. Not answered.

    Without room this node drops what others ask it to vote on, and refuses commands that need its own vote.
    """

    has_room: bool
    lacks: str = ""


@dataclass(frozen=True, slots=True)
class SetFitness:
    """Whether this host is fit for work, as its health check says, and why, in words. Not answered.

    Unfit, it takes no more tasks; what runs here goes on.
    """

    is_fit: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class Look:
    """Somebody looks at the mesh: ask the members how busy they are. Not answered."""


Command: TypeAlias = (
    Look | TaskCommand | Leave | ForgetMember | Why | SetLoad | TakeAddress | SetRoom | SetFitness
)
