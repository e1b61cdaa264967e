"""Sides that restarted apart find each other through their seeds."""

from mesh.core.address import Address
from mesh.wire.swim_messages import SyncRoot
from tests.unit.membership.pump import Host, Pump, address, are_equal


def syncs_to(host: Host, at: Address) -> int:
    return sum(isinstance(ask.message, SyncRoot) and ask.to == at for ask in host.asked)


def restarted_apart(pump: Pump) -> list[Host]:
    """Four hosts whose processes all died, and that started again in two parts cut off from each other."""
    hosts = pump.mesh(4)
    for host in hosts:
        pump.kill(host)
    pump.partition(*hosts[:2])
    again = [
        pump.restart(host, seeds=tuple({1, 2, 3, 4} - {number}))
        for number, host in enumerate(hosts, 1)
    ]
    pump.run(30.0)
    return again


def test_sides_that_restarted_apart_know_nothing_of_each_other() -> None:
    pump = Pump()
    hosts = restarted_apart(pump)
    assert [len(host.swim.table.living) for host in hosts] == [1, 1, 1, 1]
    assert hosts[0].state_of(hosts[2]) is None


def test_sides_that_restarted_apart_find_each_other_through_their_seeds() -> None:
    pump = Pump()
    hosts = restarted_apart(pump)
    pump.heal()

    def is_whole() -> bool:
        return are_equal(hosts) and all(len(host.swim.table.living) == 3 for host in hosts)

    assert pump.run_until(is_whole, 2 * pump.config.sync_interval_s)


def test_a_seed_that_is_a_living_member_costs_no_exchange_of_its_own() -> None:
    pump = Pump()
    first = pump.add(1)
    other = pump.add(2, 1)
    third = pump.add(3, 1)
    pump.run(100 * pump.config.sync_interval_s)
    to_seed = syncs_to(other, first.address)
    to_third = syncs_to(other, third.address)
    assert 25 < to_seed < 75  # of 100 periodic ones
    assert 25 < to_third < 75


def test_a_seed_that_is_gone_for_good_is_tried_once_an_interval() -> None:
    pump = Pump()
    hosts = pump.mesh(3)
    pump.kill(hosts[0])
    pump.run(50 * pump.config.sync_interval_s)
    assert 30 < syncs_to(hosts[1], hosts[0].address) < 70


def test_a_node_without_seeds_and_one_that_leaves_watch_nothing() -> None:
    pump = Pump()
    founder = pump.add(1)
    leaver = pump.add(2, 1)
    pump.run(1.0)
    founder.asked.clear()
    pump.leave(leaver)
    pump.run(50.0)
    assert syncs_to(founder, address(2)) == 0
    assert leaver.stop is not None
    assert leaver.stop.exit_code == 0
