"""A mesh that fell apart comes together by itself: by seeds, by snapshots, for ever."""

from __future__ import annotations

import dataclasses

import pytest

from mesh.core.address import Address
from mesh.core.events import EventKind
from mesh.core.ids import MeshId, NodeId
from mesh.core.known import KnownMember
from mesh.core.limits import RECALLED_MAX
from mesh.membership.profile import lan
from mesh.wire.records import Cause, Standing, State, encode_card
from mesh.wire.swim_messages import Alive, Dead, Join, Left, Suspect
from tests.unit.membership.pump import Host, Pump, address, are_equal, card_bytes, node_id


def back(pump: Pump, host: Host, *seeds: int, at: Address | None = None) -> Host:
    """Start a dead host's next session from its disk, with what it remembered, perhaps elsewhere."""
    old = host.swim.identity
    number = next(n for n in range(1, 301) if node_id(n) == old.node_id)
    return pump.add(
        number,
        *seeds,
        boot=old.card.boot + 1,
        mesh_id=old.mesh_id,
        address=at or host.address,
        remembered=host.snapshots[-1].members if host.snapshots else (),
    )


def settled(pump: Pump, count: int) -> list[Host]:
    """A mesh that lived long enough for its snapshots."""
    hosts = pump.mesh(count)
    pump.run(15.0)
    return hosts


def are_whole(hosts: list[Host]) -> bool:
    return are_equal(hosts) and all(len(h.swim.table.living) == len(hosts) - 1 for h in hosts)


def test_a_mass_restart_without_seeds_converges() -> None:
    pump = Pump()
    hosts = settled(pump, 7)
    for host in hosts:
        pump.kill(host)
    again = [back(pump, host) for host in hosts]
    assert pump.run_until(lambda: are_whole(again), 5.0)
    assert not any(EventKind.FOUND in host.kinds() for host in again)


def test_a_mass_restart_with_every_address_changed_but_one_converges() -> None:
    pump = Pump()
    hosts = settled(pump, 7)
    for host in hosts:
        pump.kill(host)
    again = [
        back(pump, host, at=None if place == 4 else address(100 + place))
        for place, host in enumerate(hosts)
    ]
    assert pump.run_until(lambda: are_whole(again), 5.0)


def test_the_one_that_kept_its_address_may_come_last() -> None:
    pump = Pump()
    hosts = settled(pump, 5)
    for host in hosts:
        pump.kill(host)
    again = [back(pump, host, at=address(100 + n)) for n, host in enumerate(hosts[1:])]
    pump.run(40.0)
    assert not are_whole(again)
    again.append(back(pump, hosts[0]))
    assert pump.run_until(lambda: are_whole(again), 5.0)


def test_one_living_address_among_hundreds_of_dead_is_found() -> None:
    pump = Pump()
    hosts = settled(pump, 3)
    pump.kill(hosts[2])
    pump.run(5.0)
    dead = tuple(KnownMember(NodeId(n), f"d{n}", address(n)) for n in range(50, 200))
    alive = KnownMember(hosts[1].node_id, "host-2", hosts[1].address)
    old = hosts[2].swim.identity
    pump.partition(hosts[0])  # so that reconnection does not do it
    again = pump.add(3, boot=2, mesh_id=old.mesh_id, remembered=(*dead[:70], alive, *dead[70:]))
    per_round = sum(isinstance(ask.message, Join) for ask in again.asked)
    assert per_round == RECALLED_MAX
    assert pump.run_until(lambda: again.state_of(hosts[1]) is State.ALIVE, 60.0)


@pytest.mark.parametrize("seed", range(3))
def test_sides_that_restarted_apart_find_each_other_soon_by_their_snapshots(seed: int) -> None:
    pump = Pump(seed, lan())
    hosts = settled(pump, 4)
    for host in hosts:
        pump.kill(host)
    pump.partition(*hosts[:2])
    again = [back(pump, host) for host in hosts]
    pump.run(60.0)
    assert [len(host.swim.table.living) for host in again] == [1, 1, 1, 1]
    pump.heal()
    assert pump.run_until(lambda: are_whole(again), 5.0)


def test_one_who_never_returns_costs_a_small_mesh_a_question_now_and_then_for_ever() -> None:
    pump = Pump(config=lan())
    hosts = settled(pump, 3)
    for host in hosts:
        pump.kill(host)
    again = [back(pump, host) for host in hosts[:2]]
    pump.run(1000.0)
    for host in again:
        host.asked.clear()
    pump.run(200.0)
    for host in again:
        assert 15 <= sum(ask.to == hosts[2].address for ask in host.asked) <= 35


def test_another_mesh_at_a_remembered_address_stops_nobody() -> None:
    pump = Pump()
    hosts = settled(pump, 3)
    for host in hosts:
        pump.kill(host)
    pump.add(40, found=True, address=hosts[0].address)
    again = [back(pump, host) for host in hosts[1:]]
    assert pump.run_until(lambda: are_whole(again), 5.0)
    assert [host.stop for host in again] == [None, None]


def test_garbage_at_a_remembered_address_stops_nobody() -> None:
    pump = Pump()
    hosts = settled(pump, 2)
    pump.kill(hosts[1])
    pump.kill(hosts[0])
    pump.garbage = {hosts[0].address: b"HTTP/1.1 400 Bad Request\r\n"}
    again = back(pump, hosts[1])
    pump.run(10.0)
    assert again.stop is None


@pytest.mark.parametrize("pause_s", [0.0, 30.0])
def test_a_member_that_returns_at_another_address_is_seen_there_by_all(pause_s: float) -> None:
    pump = Pump()
    hosts = settled(pump, 5)
    pump.kill(hosts[3])
    pump.run(pause_s)
    again = back(pump, hosts[3], at=address(120))
    rest = [*hosts[:3], hosts[4], again]
    assert pump.run_until(lambda: are_whole(rest), 5.0)
    assert {host.knows(again).address for host in rest} == {address(120)}
    assert not any(EventKind.CONFLICT in host.kinds() for host in rest)


def test_a_member_that_restarts_at_once_is_seen_by_all() -> None:
    pump = Pump()
    hosts = settled(pump, 5)
    for victim in (2, 0, 4, 2):
        pump.kill(hosts[victim])
        hosts[victim] = back(pump, hosts[victim])
        assert pump.run_until(lambda: are_whole(hosts), 3.0)


def old_words(host: Host, boot: int, address_before: Address) -> list[object]:
    """Everything that was ever said of an earlier session of a host, and more."""
    mine, number = host.node_id, 4
    words: list[object] = []
    for incarnation in range(3):
        words += [
            Alive(card_bytes(number, boot=boot, incarnation=incarnation, address=address_before)),
            Suspect(mine, boot, incarnation, node_id(1)),
            Dead(mine, boot, incarnation, Cause.SILENT, node_id(1)),
            Left(mine, boot, incarnation),
        ]
    return words


def test_a_stale_rumour_neither_revives_nor_adds_nor_kills_anybody() -> None:
    pump = Pump()
    hosts = settled(pump, 5)
    first = hosts[3]
    pump.kill(first)
    hosts[3] = back(pump, first, at=address(120))
    pump.run(5.0)
    boot = hosts[3].swim.identity.card.boot
    stale = old_words(first, boot - 1, first.address)
    for _ in range(3):
        pump.rng.shuffle(stale)
        for host in hosts[:3]:
            for word in stale:
                pump.at_host(host, hosts[4], word)
        assert are_whole(hosts)
        pump.run(1.0)
    assert are_whole(hosts)
    pump.kill(hosts[3])
    rest = [*hosts[:3], hosts[4]]
    assert pump.run_until(lambda: all(h.state_of(hosts[3]) is State.DEAD for h in rest), 20.0)
    for word in [*stale, *old_words(hosts[3], boot, address(120))[:1]]:
        pump.at_host(hosts[0], hosts[4], word)
    pump.run(3.0)
    assert [host.state_of(hosts[3]) for host in rest] == [State.DEAD] * 4


def test_verdicts_on_somebody_unknown_add_nobody() -> None:
    pump = Pump()
    hosts = pump.mesh(3)
    size = len(hosts[0].swim.table)
    for word in old_words(hosts[1], 1, address(9)):
        if isinstance(word, Suspect | Dead | Left):
            stranger = dataclasses.replace(word, node_id=node_id(77))
            pump.at_host(hosts[0], hosts[1], stranger)
    assert len(hosts[0].swim.table) == size


def test_a_node_of_no_mesh_asks_nobody_that_it_remembers() -> None:
    pump = Pump()
    host = pump.add(1, remembered=(KnownMember(node_id(2), "host-2", address(2)),))
    pump.run(2.0)
    assert not [ask for ask in host.asked if isinstance(ask.message, Join)]
    assert host.swim.identity.mesh_id != MeshId(0)


def test_a_death_in_a_welcome_of_somebody_met_before_is_a_suspicion() -> None:
    pump = Pump()
    hosts = settled(pump, 4)
    pump.kill(hosts[3])
    again = pump.add(4, boot=2, mesh_id=hosts[3].swim.identity.mesh_id, remembered=())
    pump.at_host(again, hosts[1], Alive(hosts[2].swim.identity.card_bytes))
    assert again.state_of(hosts[2]) is State.ALIVE
    card = hosts[2].swim.identity.card
    dead = Standing(card.boot, card.incarnation, State.DEAD, Cause.SILENT, 5, encode_card(card))
    again.swim._entrance._take_over(pump.now, hosts[1].node_id, (dead,))
    assert again.state_of(hosts[2]) is State.SUSPECT
    pump._carry_out(again, again.swim.handle_timeout(pump.now))
    pump.run(5.0)
    assert are_whole([*hosts[:3], again])
    assert again.kinds(hosts[2]).count(EventKind.DEAD) == 0
