"""What goes wrong in a random world: weather, cuts, stops, crashes, and blows that an owner gets."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from mesh.core.ids import NodeId
from tests.sim.registers.clockwork import Clockwork, Network, Weather
from tests.sim.registers.hosts import Host


class Trouble:
    """Plans it all at the start, and ends it."""

    def __init__(
        self,
        clockwork: Clockwork,
        network: Network,
        hosts: Mapping[NodeId, Host],
        rng: random.Random,
        voter_s: float,
    ) -> None:
        """Make trouble for leases whose voters wait for `voter_s`."""
        self._clockwork = clockwork
        self._network = network
        self._hosts = hosts
        self._nodes = tuple(hosts)
        self._rng = rng
        self._voter_s = voter_s

    def begin(self, until: float) -> None:
        """Plan what goes wrong up to then."""
        rng, longest_s = self._rng, 2 * self._voter_s
        self._network.weather = Weather(
            loss=rng.choice((0, 0.02, 0.1, 0.3)),
            copies=rng.choice((0, 0.05, 0.2)),
            late=rng.choice((0, 0.02, 0.1)),
            late_s_max=rng.choice((1, 3 * self._voter_s)),
            delays_s=rng.choice(((0.002,), (0.02, 0.1), (0.002, 0.01, 0.5), (0.002, 0.002, 0.8))),
        )

        def at(act: Callable[[], None]) -> None:
            self._clockwork.after(rng.uniform(1, until), act)

        for _ in range(rng.choice((0, 4, 12))):
            at(lambda: self._cut(rng.uniform(0.5, longest_s)))
        for _ in range(rng.choice((0, 3, 8))):
            at(lambda: self._any_host().pause(rng.uniform(0.5, longest_s)))
        for _ in range(rng.choice((0, 4, 15))):
            at(lambda: self._restart(self._any_host()))
        for _ in range(rng.choice((0, 0, 2))):
            at(self._restart_all)
        for _ in range(rng.choice((0, 8, 16))):
            at(self._strike)

    def end(self) -> None:
        """Heal everything; what was sent before may still arrive late."""
        self._network.weather = Weather()
        self._network.cuts.clear()
        for host in self._hosts.values():
            host.wakes_at = 0.0
            host.start()

    # Inside.

    def _any_host(self) -> Host:
        return self._hosts[self._rng.choice(self._nodes)]

    def _cut(self, seconds: float) -> None:
        """Cut one node off from some others, in one direction or both, for a while."""
        rng = self._rng
        node, one_way = rng.choice(self._nodes), rng.random() < 0.5
        cut = set()
        for other in self._nodes:
            if rng.random() < 0.7:
                cut |= {(node, other)} if one_way else {(node, other), (other, node)}
        self._cut_for(seconds, cut)

    def _cut_for(self, seconds: float, cut: set[tuple[NodeId, NodeId]]) -> None:
        cuts = self._network.cuts
        cuts |= cut
        self._clockwork.after(seconds, lambda: cuts.difference_update(cut))

    def _strike(self) -> None:
        """Stop the owner, or cut it off one way or both, until the voters give it up."""
        rng = self._rng
        owners = [h for h in self._hosts.values() if h.process is not None and h.process.is_owner]
        if not owners:
            return
        host, seconds = rng.choice(owners), self._voter_s * rng.uniform(0.8, 1.4)
        others = [node for node in self._nodes if node != host.own]
        kind = rng.randrange(4)
        if kind == 0:
            host.pause(seconds)
        elif kind == 1:
            self._restart(host)
        else:
            cut = {(host.own, node) for node in others}
            cut |= {(node, host.own) for node in others} if kind == 2 else set()
            self._cut_for(seconds, cut)

    def _restart(self, host: Host) -> None:
        host.crash()
        self._clockwork.after(self._rng.uniform(0.05, 3), host.start)

    def _restart_all(self) -> None:
        for host in self._hosts.values():
            self._restart(host)
