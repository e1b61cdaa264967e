"""A sealed mesh under hostile datagrams, with all of its old traffic in hostile hands: nothing changes.

The nodes and the seals are the real ones; the network and the time are simulated, so that what each
datagram did can be looked at before anything else happens.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

import pytest

from mesh.core.address import Address
from mesh.node.commands import ForgetMember, Leave
from mesh.seal.datagrams import FLOOR_S, MARK_S
from mesh.seal.freshness import HELD_MAX, PEERS_MAX
from mesh.sim.host import Host
from tests.property.sealed_world import KEY, OTHER, SealedWorld, Sent, mangled, node_of, now_of

GROWTH_MIB_MAX = 8.0
ACCUSED = ("suspect", "dead", "conflict", "left")
LOOK_EVERY = 500


def attack(mesh: SealedWorld, datagrams: Iterable[Sent], to: Callable[[Sent], Host | None]) -> int:
    """Give datagrams to the nodes while no time passes; check that nothing is let in or changes."""
    before = mesh.shown()
    let_in = {host.spec.name: node_of(host).lets_in for host in mesh.running()}
    events, exchanges = len(mesh.world.events), {id(h): set(h.exchanges) for h in mesh.running()}
    count = 0
    for count, sent in enumerate(datagrams, 1):
        host = to(sent)
        if host is None or host.node is None:
            continue
        node = node_of(host)
        node.handle_datagram(now_of(mesh.world, host), sent.source, sent.data)
        if count % LOOK_EVERY == 0:
            assert mesh.shown() == before
    assert mesh.shown() == before
    assert {host.spec.name: node_of(host).lets_in for host in mesh.running()} == let_in
    assert len(mesh.world.events) == events
    assert {id(h): set(h.exchanges) for h in mesh.running()} == exchanges
    return count


def accusations(mesh: SealedWorld, since_s: float) -> list[object]:
    return [e for e in mesh.world.events if e.at_s >= since_s and e.event.kind in ACCUSED]


def rss_mib() -> float:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / (1 << 20)


@pytest.mark.parametrize("count", [50_000, pytest.param(1_000_000, marks=pytest.mark.sweep)])
def test_random_changed_and_replayed_datagrams_change_nothing_and_cost_bounded_memory(
    count: int,
) -> None:
    mesh, stranger = SealedWorld(1), SealedWorld(2, OTHER)
    mesh.start(3)
    stranger.start(3)
    mesh.world.run_for(20.0)
    tape = list(mesh.tape)
    assert len(tape) > 100
    rng = random.Random(count)
    attack(mesh, islice(mangled(rng, tape + stranger.tape), 10_000), _addressed(mesh))
    small_mib = rss_mib()
    attack(mesh, islice(mangled(rng, tape + stranger.tape), count), _addressed(mesh))
    growth_mib = rss_mib() - small_mib
    print(f"{count} datagrams: {growth_mib:+.1f} MiB")
    assert growth_mib < GROWTH_MIB_MAX
    since_s = mesh.world.loop.now_s
    mesh.world.run_for(30.0)
    assert accusations(mesh, since_s) == []
    names = {host.spec.name for host in mesh.world.hosts}
    for host in mesh.running():
        assert mesh.states(host) == dict.fromkeys(names, "alive")
        freshness = node_of(host).seal._freshness
        assert len(freshness.challenges) <= PEERS_MAX
        assert sum(map(len, freshness._held.values())) == freshness._held_count <= HELD_MAX


def _addressed(mesh: SealedWorld) -> Callable[[Sent], Host | None]:
    return lambda sent: mesh.world.host_at(sent.to)


def test_traffic_replayed_in_order_and_shuffled_counts_nowhere_a_second_time() -> None:
    mesh = SealedWorld(3)
    mesh.start(4)
    mesh.world.run_for(30.0)
    tape = list(mesh.tape)
    assert attack(mesh, tape, _addressed(mesh)) > 200
    random.Random(3).shuffle(tape)
    for host in mesh.running():  # each at every node, whomever it was for
        attack(mesh, tape, lambda _, host=host: host)  # type: ignore[misc]  # a default binds the loop's host
    mesh.world.run_for(20.0)
    assert accusations(mesh, 10.0) == []


def test_replayed_traffic_is_worth_nothing_at_a_node_that_has_restarted_and_forgotten_all() -> None:
    mesh = SealedWorld(4)
    hosts = mesh.start(3)
    mesh.world.run_for(30.0)
    tape = list(mesh.tape)
    mesh.world.crash(hosts[1])
    mesh.world.run_for(20.0)
    mesh.fleet.boot(hosts[1])
    attack(mesh, tape, _addressed(mesh))  # before it has met anybody
    mesh.world.run_for(10.0)
    since_s = mesh.world.loop.now_s
    attack(mesh, tape, _addressed(mesh))
    mesh.world.run_for(20.0)
    assert accusations(mesh, since_s) == []
    assert set(mesh.states(hosts[0]).values()) == {"alive"}


@pytest.mark.parametrize("how", ["left", "killed", "forgotten"])
def test_replayed_traffic_brings_nobody_back(how: str) -> None:
    mesh = SealedWorld(5)
    hosts = mesh.start(4)
    mesh.world.run_for(20.0)
    gone = hosts[3]
    name = gone.spec.name
    tape = list(mesh.tape)
    if how == "left":
        mesh.world.command(gone, Leave("over"))
        mesh.world.run_for(5.0)
    else:
        mesh.world.crash(gone)
        mesh.world.run_for(40.0)
    if how == "forgotten":
        mesh.world.command(hosts[0], ForgetMember(1, name))
        mesh.world.run_for(5.0)
    before = {host.spec.name: mesh.states(host).get(name) for host in mesh.running()}
    assert "alive" not in before.values()
    for _ in range(3):
        attack(mesh, tape, _addressed(mesh))
        mesh.world.run_for(10.0)
    after = {host.spec.name: mesh.states(host).get(name) for host in mesh.running()}
    assert after == before


def test_death_is_noticed_as_soon_while_the_dead_members_traffic_is_replayed() -> None:
    took = []
    for is_replayed in (False, True):
        mesh = SealedWorld(6)
        hosts = mesh.start(4)
        mesh.world.run_for(20.0)
        tape = list(mesh.tape)
        mesh.world.crash(hosts[3])
        died_s = mesh.world.loop.now_s
        while {mesh.states(h)[hosts[3].spec.name] for h in mesh.running()} != {"dead"}:
            if is_replayed:
                attack(mesh, tape[-400:], _addressed(mesh))
            mesh.world.run_for(0.5)
            assert mesh.world.loop.now_s < died_s + 120.0
        took.append(mesh.world.loop.now_s - died_s)
    print(f"dead after {took[0]:.1f} s, under replay after {took[1]:.1f} s")
    assert took[1] <= took[0] + 5.0


def test_meshes_with_different_keys_that_ping_each_other_let_nothing_in() -> None:
    mesh, other = SealedWorld(7, KEY), SealedWorld(8, OTHER)
    mesh.start(3)
    other.start(3)
    attack(mesh, other.tape, _addressed(mesh))
    attack(other, mesh.tape, _addressed(other))
    for world in (mesh, other):
        for host in world.running():
            assert node_of(host).seal.counters["dropped_unopened"] > 0


def test_recorded_pings_from_anywhere_are_answered_there_and_start_nothing() -> None:
    mesh = SealedWorld(9)
    hosts = mesh.start(3)
    mesh.world.run_for(30.0)
    tape = list(mesh.tape)
    mesh.world.crash(hosts[0])
    mesh.world.run_for(FLOOR_S + MARK_S)  # a proof vouches for so long
    mesh.fleet.boot(hosts[0])
    mesh.world.run_for(10.0)
    far = [sent._replace(source=Address("192.0.2.1", port)) for port, sent in enumerate(tape, 1)]
    attack(mesh, far, _addressed(mesh))
    assert all(not host.exchanges for host in mesh.running())
