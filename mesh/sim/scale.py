"""What a mesh costs against its size: packets, detection, dissemination, joining, up to thousands of members.

Two runs of one seed for each size: a mesh that forms through one seed node, and one that is converged from
the start, where members are killed, one loses its host and one is paused. Everything is read from traffic and
events, and events are dropped as soon as they are counted: to compare three thousand full views would take
nine million comparisons, and more memory than the mesh. The command is `mesh sim --scale 100,300,1000,3000`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from mesh.core.events import EventKind
from mesh.core.ids import NodeId
from mesh.core.rng import stream
from mesh.node.config import profile
from mesh.node.node import Node
from mesh.sim.fleet import Fleet, FleetOptions
from mesh.sim.host import Host
from mesh.sim.network import Conditions, Network
from mesh.sim.world import Observed, World

JOINED_MAX: Final = 1000
"""A larger mesh is not made to join: everybody meets everybody, and each meeting is simulated."""

DELAY_S: Final = 0.001
KILLS: Final = 3
_SETTLE_S: Final = 15.0  # lifelines are opened, and the first anti-entropy begins
_IDLE_S: Final = 15.0
_REST_S: Final = 2.0  # before a fault, until no news of the last one is left
_STEP_S: Final = 0.05
_NOTICED_MAX_S: Final = 40.0
_JOINED_MAX_S: Final = 60.0
_START_S: Final = 1.0  # all nodes start within


@dataclass(frozen=True, slots=True, kw_only=True)
class Noticed:
    """How soon a fault is noticed, in seconds of simulated time since it began. None: not at all, or not by all."""

    suspected_s: float | None
    """The first member that says a word against it."""

    first_s: float | None
    """The first that holds it for dead."""

    last_s: float | None
    """The last."""

    def to_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {"suspected_s": self.suspected_s, "first_s": self.first_s, "last_s": self.last_s}


@dataclass(frozen=True, slots=True, kw_only=True)
class Calm:
    """What one converged mesh did. Seconds are simulated; all of it repeats with the seed."""

    members: int
    packets_s: float
    bytes_s: float
    killed: Noticed
    """The slowest of `KILLS` kills."""

    lost: Noticed
    paused: Noticed
    spread_s: float | None
    """From the first suspicion of the lost host to the moment at which all have heard of it: gossip alone."""

    false_accusations: int

    def to_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "packets_s": self.packets_s,
            "bytes_s": self.bytes_s,
            "killed": self.killed.to_json(),
            "lost": self.lost.to_json(),
            "paused": self.paused.to_json(),
            "spread_s": self.spread_s,
            "false_accusations": self.false_accusations,
        }


class _Tally:
    """When each member was first said to be suspect, or dead, by each observer; and how many were met."""

    def __init__(self, world: World) -> None:
        self.said: dict[tuple[NodeId, EventKind], dict[int, float]] = {}
        self.met = 0
        self.met_at_s = 0.0
        world.watchers.append(self._take)

    def _take(self, observed: Observed) -> None:
        event = observed.event
        if event.kind is EventKind.JOIN:
            self.met += 1
            self.met_at_s = observed.at_s
        elif event.kind in {EventKind.SUSPECT, EventKind.DEAD} and event.member_id is not None:
            by = self.said.setdefault((event.member_id, event.kind), {})
            by.setdefault(observed.observer.index, observed.at_s)

    def times(self, node_id: NodeId, kind: EventKind) -> dict[int, float]:
        """Return when each observer said so, by its index."""
        return self.said.get((node_id, kind), {})


class _Mesh:
    """A world, its fleet, and the tally of what it says."""

    def __init__(self, seed: int) -> None:
        conditions = Conditions(delay_s=DELAY_S, jitter_s=DELAY_S / 10)
        self.world = World(seed, Node, Network(seed, conditions))
        self.fleet = Fleet(self.world, profile("lan"), FleetOptions(clock_rate_error=1e-4))
        self.rng = stream(seed, "scale")
        self.tally = _Tally(self.world)
        self.harmed: list[Host] = []

    def run_until(self, is_over: Callable[[], bool], bound_s: float) -> bool:
        """Let time pass until something is so, or the bound has passed; say which."""
        end_s = self.world.loop.now_s + bound_s
        while self.world.loop.now_s < end_s:
            self.world.run_for(_STEP_S)
            self.world.events.clear()
            if is_over():
                return True
        return False

    def rest(self, duration_s: float) -> None:
        """Let time pass."""
        self.run_until(lambda: False, duration_s)

    def idle(self, duration_s: float) -> tuple[float, float]:
        """Return how many packets, and bytes, a member sends a second."""
        before = self._sent()
        self.rest(duration_s)
        packets, size = (after - first for after, first in zip(self._sent(), before, strict=True))
        member_seconds = duration_s * len(self.world.hosts)
        return packets / member_seconds, size / member_seconds

    def harm(self, do: Callable[[Host], None]) -> tuple[Noticed, float | None]:
        """Do something to a member for good; return how it was noticed, and the spread of the suspicion."""
        self.rest(_REST_S)
        whole = [host for host in self.world.hosts[1:] if host not in self.harmed]
        victim = self.rng.choice(whole)
        self.harmed.append(victim)
        began_s, survivors = self.world.loop.now_s, len(self.world.hosts) - len(self.harmed)
        do(victim)
        is_known = self.run_until(
            lambda: len(self.tally.times(victim.node_id, EventKind.DEAD)) >= survivors,
            _NOTICED_MAX_S,
        )
        said = sorted(self.tally.times(victim.node_id, EventKind.SUSPECT).values())
        dead = sorted(self.tally.times(victim.node_id, EventKind.DEAD).values())
        noticed = Noticed(
            suspected_s=said[0] - began_s if said else None,
            first_s=dead[0] - began_s if dead else None,
            last_s=dead[-1] - began_s if is_known else None,
        )
        return noticed, said[-1] - said[0] if len(said) >= survivors else None

    def false_accusations(self) -> int:
        """Return how often anybody was held for dead to whom nothing was done."""
        harmed = {host.node_id for host in self.harmed}
        return sum(
            len(by)
            for (node_id, kind), by in self.tally.said.items()
            if kind is EventKind.DEAD and node_id not in harmed
        )

    def _sent(self) -> tuple[int, int]:
        traffic = [host.traffic for host in self.world.hosts]
        return sum(t.packets_sent for t in traffic), sum(t.bytes_sent for t in traffic)


def measure_calm(
    seed: int, members: int, *, settle_s: float = _SETTLE_S, idle_s: float = _IDLE_S
) -> Calm:
    """Measure a converged mesh of at least 10 members: idle, then one fault after the other."""
    mesh = _Mesh(seed)
    mesh.fleet.boot_acquainted(members)
    mesh.rest(settle_s)
    packets_s, bytes_s = mesh.idle(idle_s)
    killed = [mesh.harm(mesh.world.crash)[0] for _ in range(KILLS)]
    lost, spread_s = mesh.harm(lambda host: mesh.world.crash(host, power=False))
    paused, _ = mesh.harm(mesh.world.pause)
    return Calm(
        members=members,
        packets_s=packets_s,
        bytes_s=bytes_s,
        killed=max(killed, key=lambda one: (one.last_s is None, one.last_s or 0.0)),
        lost=lost,
        paused=paused,
        spread_s=spread_s,
        false_accusations=mesh.false_accusations(),
    )


def measure_join(seed: int, members: int) -> float | None:
    """Return how long it takes, from the first start, until all that join through one seed see all."""
    mesh = _Mesh(seed)
    for _ in range(members):
        mesh.fleet.add()
    for host in mesh.world.hosts:
        at_s = 0.0 if host.index == 0 else mesh.rng.uniform(0.0, _START_S)
        mesh.world.loop.schedule(at_s, mesh.fleet.boot, host)
    pairs = members * (members - 1)
    is_whole = mesh.run_until(lambda: mesh.tally.met >= pairs, _JOINED_MAX_S)
    return mesh.tally.met_at_s if is_whole else None
