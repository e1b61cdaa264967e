"""What a node is told before it starts. Everything else it learns from messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from mesh.core.address import Address
from mesh.core.ids import NO_MESH, MeshId, NodeId
from mesh.core.known import KnownMember
from mesh.membership.lifeguard import LifeguardConfig, paper, plain_swim
from mesh.membership.profile import SwimConfig, profile
from mesh.registers import admission, leases, upkeep
from mesh.registers.admission import Pace
from mesh.registers.leases import LeaseTimes
from mesh.registers.upkeep import UpkeepTimes
from mesh.wire.records import Metadata

__all__ = [
    "LEASES",
    "PACES",
    "UPKEEPS",
    "LeaseTimes",
    "LifeguardConfig",
    "Metadata",
    "NodeConfig",
    "Pace",
    "SwimConfig",
    "UpkeepTimes",
    "paper",
    "plain_swim",
    "profile",
]

LEASES: Final[dict[str, Callable[[], LeaseTimes]]] = {
    "local": leases.local,
    "lan": leases.lan,
    "wan": leases.wan,
}
PACES: Final[dict[str, Callable[[], Pace]]] = {
    "local": admission.local,
    "lan": admission.lan,
    "wan": admission.wan,
}
UPKEEPS: Final[dict[str, Callable[[], UpkeepTimes]]] = {
    "local": upkeep.local,
    "lan": upkeep.lan,
    "wan": upkeep.wan,
}
"""By the profile's name, as `profile` has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """One node's identity, what it offers, and whom it asks."""

    node_id: NodeId
    boot: int
    """This session's number: greater than every earlier one of this id, durable before the first packet."""

    mesh_id: MeshId = NO_MESH
    """The mesh that the data directory names; NO_MESH when it names none."""

    name: str
    is_name_given: bool = True
    """False: the name is a default, and may be changed when it is taken."""

    address: Address
    """What other members are told to send to."""

    meta: Metadata
    swim: SwimConfig
    leases: LeaseTimes = field(default_factory=leases.lan)
    """The same at every member, like `pace` and `swim`."""

    pace: Pace = field(default_factory=admission.lan)
    upkeep: UpkeepTimes = field(default_factory=upkeep.lan)
    seeds: tuple[str, ...] = ()
    """As the user wrote them; resolved anew at every try."""

    remembered: tuple[KnownMember, ...] = ()
    """Members of `mesh_id` that an earlier session knew: asked beside the seeds."""

    is_founder: bool = False
    """An earlier session has founded `mesh_id`: its first voter is this node."""

    found: bool = False
    """Found a mesh at once, even with seeds."""

    expect: int = 0
    """With seeds: found a mesh once this many (this node among them) have met. 0: never found."""

    unix_offset_s: float = 0.0
    """Unix time minus `now`, taken once at start; only what people read is made from it."""
