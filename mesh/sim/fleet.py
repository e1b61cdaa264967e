"""The hosts of a run as their users set them up: names, addresses, seeds, clocks, what they offer.

The first hosts are everybody's seeds. The very first founds the mesh when it boots for the first time;
later it asks the other seeds, as everybody does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from mesh.core.ids import new_mesh_id
from mesh.core.rng import stream
from mesh.node.acquaint import acquaint
from mesh.node.config import LEASES, PACES, UPKEEPS, Metadata, SwimConfig
from mesh.node.node import Node
from mesh.sim.host import Clock, Host, HostSpec
from mesh.sim.world import World, host_address

SEED_HOSTS: Final = 3
_MOVED: Final = 100_000  # moved hosts live in a range of their own


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetOptions:
    """What hosts differ in."""

    clock_rate_error: float = 0.0
    """How far clocks may run from true time, as a ratio; each host draws its own rate."""

    profile: str = "lan"
    """Of leases, and of how fast the roster follows the members; membership's times are given to the fleet."""

    slots_max: int = 4
    has_names_given: bool = True


class Fleet:
    """Makes hosts, and starts nodes on them."""

    def __init__(self, world: World, swim: SwimConfig, options: FleetOptions) -> None:
        self._world = world
        self._swim = swim
        self._options = options
        self._moves = 0

    def add(self) -> Host:
        """Add one host, off; its clock starts anywhere and runs within the allowed error."""
        index = len(self._world.hosts)
        rng = stream(self._world.seed, f"host/{index}")
        error = self._options.clock_rate_error
        clock = Clock(rng.uniform(0.0, 1e6), 1.0 + rng.uniform(-error, error))
        name = f"node-{index}"
        spec = HostSpec(
            name=name,
            address=host_address(index),
            swim=self._swim,
            leases=LEASES[self._options.profile](),
            pace=PACES[self._options.profile](),
            upkeep=UPKEEPS[self._options.profile](),
            is_name_given=self._options.has_names_given,
            meta=Metadata(slots=rng.randint(1, self._options.slots_max), version="sim"),
        )
        self._world.names[f"{name}.mesh"] = (spec.address,)
        return self._world.add_host(spec, clock)

    def boot(self, host: Host, *, moved: bool = False, has_seeds: bool = True) -> None:
        """Start the node of a host; `moved` gives the host another address first."""
        address = host.spec.address
        if moved:
            self._moves += 1
            address = host_address(_MOVED + self._moves)
            self._world.names[f"{host.spec.name}.mesh"] = (address,)
        is_first = host.index == 0 and host.session == 0
        seeds = () if is_first or not has_seeds else self._seeds(host)
        spec = replace(host.spec, address=address, seeds=seeds, found=is_first)
        self._world.boot(host, spec)

    def boot_acquainted(self, count: int) -> None:
        """Add and start `count` members that have known each other for long. O(count squared)."""
        mesh_id = new_mesh_id(stream(self._world.seed, "acquainted"))
        members: list[tuple[Node, float]] = []
        for _ in range(count):
            host = self.add()
            host.disk["mesh_id"] = mesh_id
            if not members:
                host.disk["founder"] = 1
            self._world.boot(host)
            assert isinstance(host.node, Node), "only real nodes can be made to know each other"
            members.append((host.node, host.clock.read(self._world.loop.now_s)))
        acquaint(members)
        for host in self._world.hosts[-count:]:
            self._world.poke(host)

    def _seeds(self, host: Host) -> tuple[str, ...]:
        """Every other seed is named, the rest are numeric; a seed may have moved since."""
        hosts = [other for other in self._world.hosts[:SEED_HOSTS] if other is not host]
        return tuple(
            f"{other.spec.name}.mesh:7946" if other.index % 2 else str(other.spec.address)
            for other in hosts
        )
