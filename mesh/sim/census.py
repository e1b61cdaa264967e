"""Every node that ever was: its id, its boots, its host. The truth that views are compared with.

Identity is the disk: the id is drawn once per disk, the boot number is durable before the node exists.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from mesh.core.ids import MeshId, NodeId, format_id, new_node_id
from mesh.core.rng import stream
from mesh.node.config import NodeConfig
from mesh.sim.host import Host

UNIX_START_S: Final = 1_800_000_000.0


@dataclass(slots=True)
class Identity:
    """One node id: where it lives and under which boot numbers it ran."""

    node_id: NodeId
    name: str
    host: Host
    boots: list[int] = field(default_factory=list)
    """In the order in which they were taken; one may come again, where a disk and a clock were set back."""

    @property
    def boot(self) -> int:
        """The boot number of the latest session."""
        return self.boots[-1]

    @property
    def is_running(self) -> bool:
        """Say whether a node of this id runs just now."""
        return self.host.node is not None and self.host.node_id == self.node_id


class Census:
    """All identities of a run, in the order of their first boot."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._by_id: dict[int, Identity] = {}

    def identity(self, node_id: NodeId | str) -> Identity | None:
        """Return what is known of an id (a number, or 16 digits as in views)."""
        if isinstance(node_id, str):
            return self._by_id.get(int(node_id, 16))
        return self._by_id.get(node_id)

    def identities(self) -> list[Identity]:
        """Return all of them."""
        return list(self._by_id.values())

    def enrol(self, host: Host, now_s: float) -> NodeConfig:
        """Read or draw the identity of a host that boots, and return its node's configuration."""
        spec, disk = host.spec, host.disk
        if "node_id" not in disk:
            host.identities += 1
            label = f"identity/{host.index}/{host.identities}"
            disk["node_id"] = new_node_id(stream(self._seed, label))
        unix_s = UNIX_START_S + now_s + host.unix_error_s
        disk["boot"] = max(disk.get("boot", 0), int(unix_s)) + 1
        host.node_id = NodeId(disk["node_id"])
        host.copy_disk()
        identity = self._by_id.setdefault(host.node_id, Identity(host.node_id, spec.name, host))
        identity.boots.append(disk["boot"])
        snapshot = host.snapshot
        is_ours = snapshot is not None and snapshot.mesh_id == disk.get("mesh_id", 0)
        return NodeConfig(
            node_id=host.node_id,
            boot=disk["boot"],
            mesh_id=MeshId(disk.get("mesh_id", 0)),
            name=spec.name,
            is_name_given=spec.is_name_given,
            address=spec.address,
            meta=spec.meta,
            swim=spec.swim,
            leases=spec.leases,
            pace=spec.pace,
            upkeep=spec.upkeep,
            seeds=spec.seeds,
            remembered=snapshot.members if snapshot is not None and is_ours else (),
            is_founder=bool(disk.get("founder")),
            found=spec.found,
            expect=spec.expect,
            unix_offset_s=unix_s - host.clock.read(now_s),
        )

    def add_boot(self, host: Host, boot: int) -> None:
        """Note that a running node chose a higher boot number."""
        self._by_id[host.node_id].boots.append(boot)

    def name_of(self, node_id: NodeId) -> str:
        """Return a name for people."""
        identity = self._by_id.get(node_id)
        return identity.name if identity is not None else format_id(node_id)
