"""A mesh that stays short runs its hook once a cool-down, in whole nodes: never sooner, whoever is cut off or crashes."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Final

import pytest

from mesh.core.effects import Answer
from mesh.hooks.latest import hook_key, shortage_of
from mesh.hooks.shortage import Shortage
from mesh.hooks.taker import USE_S, TurnTaker
from mesh.node.config import profile
from mesh.node.node import Node
from mesh.sim.fleet import Fleet, FleetOptions
from mesh.sim.host import Host
from mesh.sim.network import Conditions, Network
from mesh.sim.world import World

SEATED_S: Final = 10.0
"""By then all five vote."""

HOOK: Final = shortage_of("default")
COOL_DOWN_S: Final = 12.0
SHORT_AFTER_S: Final = 2.0


class _Hooked:
    """What runs the hook at one host, as the runtime does: it is lost when the node is."""

    def __init__(self, host: Host, rng: random.Random) -> None:
        self.host, self.session = host, host.session
        self.shortage = Shortage(rng, short_after_s=SHORT_AFTER_S)
        self.taker = TurnTaker(HOOK, COOL_DOWN_S, rng)
        self.asked = 0


class Short:
    """Five nodes with the hook, in a mesh that stays short."""

    def __init__(self, seed: int) -> None:
        conditions = Conditions(delay_s=0.005, loss_ratio=0.05)
        self.world = World(seed, Node, Network(seed, conditions), check=False)
        self.fleet = Fleet(self.world, profile("local"), FleetOptions(profile="local"))
        for _ in range(5):
            self.fleet.boot(self.fleet.add())
        self.world.run_for(SEATED_S)
        self.rng = random.Random(seed)
        self.hooked = [_Hooked(host, self.rng) for host in self.world.hosts]
        self.begun: list[tuple[float, int]] = []
        self.unanswered = 0
        self._last = 0
        self.world.clients.append(self._hear)

    def look(self) -> None:
        """Let each node that runs look at the load, as it does every second."""
        self.hooked = [
            one if one.session == one.host.session else _Hooked(one.host, self.rng)
            for one in self.hooked
        ]
        for one in self.hooked:
            if one.host.node is None or one.host.is_paused:
                continue
            now = one.host.clock.read(self.world.loop.now_s)
            if one.shortage.step(now, 1.0):
                self._last += 1
                one.asked = self._last
                self.world.command(one.host, one.taker.ask(now, self._last))

    def watch(self, seconds: float) -> None:
        for _ in range(round(seconds)):
            self.look()
            self.world.run_for(1.0)

    def _hear(self, answer: Answer) -> None:
        for one in self.hooked:
            if one.asked != answer.command_id:
                continue
            one.asked = 0
            now_s = self.world.loop.now_s
            now = one.host.clock.read(now_s)
            heard = one.taker.hear(now, answer.result)
            if heard.may_run:
                self.begun.append((now_s, one.host.index))
            self.unanswered += answer.error is not None
            one.shortage.answered(now, heard.wait_s)

    def pauses(self) -> list[float]:
        times = [at for at, _ in self.begun]
        return [late - early for early, late in pairwise(times)]


def test_of_five_nodes_one_runs_it_in_each_cool_down_and_none_without_a_majority() -> None:
    short = Short(1)
    short.watch(3 * COOL_DOWN_S)
    count = len(short.begun)
    assert 2 <= count <= 3, short.begun
    assert min(short.pauses()) >= COOL_DOWN_S
    assert max(short.pauses()) <= COOL_DOWN_S + USE_S + 4.0, "to begin, to spread, to look"
    assert short.unanswered == 0

    key = hook_key(HOOK)
    voters = [host for host in short.world.hosts if node(host)._work._desk.voter.record(key).value]
    for host in voters[:2]:
        short.world.crash(host)
    short.watch(2 * COOL_DOWN_S)
    assert len(short.begun) == count
    assert short.unanswered > 0
    for host in voters[:2]:
        short.fleet.boot(host)
    short.watch(COOL_DOWN_S)
    assert len(short.begun) > count


@pytest.mark.parametrize("seed", [2])
def test_whoever_is_cut_off_or_crashes_it_is_never_run_twice_within_one_and_is_run_again(
    seed: int,
) -> None:
    short = Short(seed)
    world, rng = short.world, random.Random(seed)
    network = world.network
    for _ in range(4):
        some = rng.sample(world.hosts, 2)
        kind = rng.choice(["cut off", "crash", "stop"])
        inside = [host.index for host in some]
        outside = [host.index for host in world.hosts if host not in some]
        cuts = []
        if kind == "cut off":
            cuts = [network.cut(inside, outside), network.cut(outside, inside)]
        for host in some:
            if kind == "crash":
                world.crash(host)
            elif kind == "stop":
                world.pause(host)
        short.watch(rng.uniform(5, 20))
        for cut in cuts:
            network.mend(cut)
        for host in some:
            if kind == "crash":
                short.fleet.boot(host)
            elif kind == "stop":
                world.resume(host)
        short.watch(5)
    assert short.pauses(), "it was run twice at least"
    assert min(short.pauses()) >= COOL_DOWN_S, short.begun
    before = len(short.begun)
    short.watch(3 * COOL_DOWN_S)
    assert len(short.begun) > before, "nothing is wrong any more, and the mesh is short"
    assert min(short.pauses()) >= COOL_DOWN_S, short.begun


def node(host: Host) -> Node:
    assert isinstance(host.node, Node)
    return host.node
