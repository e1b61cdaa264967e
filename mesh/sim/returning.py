"""A mass restart: whoever returns without seeds has an address in its snapshot that is still right.

All that is promised is that one such address is enough. So one seed host, the *keeper*, stays where it is
from the first such restart on: it neither moves nor leaves nor loses its disk. Whoever does not know it from
before, or is not told any more which mesh it belongs to, returns with seeds, as any newcomer.
"""

from __future__ import annotations

from collections.abc import Sequence

from mesh.core.ids import NodeId
from mesh.sim.fleet import SEED_HOSTS, Fleet
from mesh.sim.host import Host


class Returning:
    """Starts the nodes of a mesh that died as a whole."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self.keeper: Host | None = None

    def restart(self, hosts: Sequence[Host], *, moved: bool) -> None:
        """Start these hosts, in this order, without seeds where that is fair; all but the keeper may have moved."""
        if self.keeper is None:
            self.keeper = self._best(hosts)
        for host in hosts:
            if host.node is not None:
                continue
            is_keeper = host is self.keeper
            knows = is_keeper or (self.keeper is not None and _knows(host, self.keeper))
            is_member = bool(host.disk.get("mesh_id"))
            self._fleet.boot(
                host, moved=moved and not is_keeper, has_seeds=not (knows and is_member)
            )

    def _best(self, hosts: Sequence[Host]) -> Host | None:
        """Return the seed host that most of the others know where it is, or None."""
        known = {
            host.index: sum(_knows(other, host) for other in hosts)
            for host in hosts
            if host.index < SEED_HOSTS and host.disk.get("mesh_id")
        }
        best = max(known, key=lambda index: (known[index], -index), default=None)
        return next((host for host in hosts if host.index == best), None)


def _knows(host: Host, keeper: Host) -> bool:
    """Say whether a host's snapshot has the keeper where it is now."""
    snapshot = host.snapshot
    if snapshot is None or snapshot.mesh_id != host.disk.get("mesh_id"):
        return False
    keeper_id = NodeId(keeper.disk.get("node_id", 0))
    return any(
        known.node_id == keeper_id and known.address == keeper.spec.address
        for known in snapshot.members
    )
