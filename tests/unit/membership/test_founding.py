"""Of those who start at once with one list of seeds, one founds."""

import itertools

import pytest

from mesh.core.events import EventKind
from mesh.core.limits import EXPECT_MAX
from mesh.membership.founding import FRESH_ROUNDS, Founding
from mesh.wire.swim_messages import MET_MAX
from tests.unit.membership.pump import Host, Pump, are_equal, card, node_id


def founders(hosts: list[Host]) -> list[Host]:
    return [host for host in hosts if EventKind.FOUND in host.kinds()]


@pytest.mark.parametrize("order", list(itertools.permutations((1, 2, 3))))
@pytest.mark.parametrize("seed", range(2))
def test_exactly_one_of_three_founds_in_any_order_of_start(
    order: tuple[int, ...], seed: int
) -> None:
    pump = Pump(seed)
    hosts = []
    for number in order:
        hosts.append(pump.add(number, 1, 2, 3, expect=3))
        pump.run(pump.rng.random())
    pump.run(5.0)
    assert [host.node_id for host in founders(hosts)] == [node_id(1)]
    assert are_equal(hosts)


@pytest.mark.parametrize("seed", range(8))
def test_exactly_one_founds_when_messages_take_long_and_overtake_each_other(seed: int) -> None:
    pump = Pump(seed)
    pump.delay_s = 0.3
    hosts = [pump.add(number, 1, 2, 3, expect=3) for number in (3, 1, 2)]
    pump.run(10.0)
    assert len(founders(hosts)) == 1
    assert len({host.swim.identity.mesh_id for host in hosts}) == 1


def test_those_who_share_one_seed_meet_through_it() -> None:
    pump = Pump()
    hosts = [pump.add(number, 5, expect=5) for number in (1, 2, 3, 4, 5)]
    pump.run(5.0)
    assert [host.node_id for host in founders(hosts)] == [node_id(1)]
    assert are_equal(hosts)


def test_fewer_than_expected_never_found() -> None:
    pump = Pump()
    hosts = [pump.add(number, 1, 2, 3, expect=3) for number in (1, 2)]
    pump.run(60.0)
    assert founders(hosts) == []


def test_without_expect_seeking_nodes_never_found() -> None:
    pump = Pump()
    hosts = [pump.add(number, 1, 2, 3) for number in (1, 2, 3)]
    pump.run(60.0)
    assert founders(hosts) == []


def test_node_that_died_before_the_founding_holds_nobody_up() -> None:
    pump = Pump()
    first = pump.add(1, 1, 2, 3, 4, expect=3)
    hosts = [pump.add(2, 1, 2, 3, 4, expect=3)]
    pump.run(2.0)
    pump.kill(first)
    hosts += [pump.add(number, 1, 2, 3, 4, expect=3) for number in (3, 4)]
    pump.run(2 * FRESH_ROUNDS * pump.config.join_retry_s + 2)
    assert [host.node_id for host in founders(hosts)] == [node_id(2)]
    assert are_equal(hosts)


def test_node_only_heard_of_does_not_count_as_met() -> None:
    founding = Founding(3, 1.0)
    founding.heard(10.0, card(2))
    founding.heard_of(card(3))
    assert not founding.is_mine(10.0, node_id(1))
    founding.heard(10.5, card(3))
    assert founding.is_mine(10.5, node_id(1))
    assert not founding.is_mine(10.5, node_id(9)), "the lowest id founds"


def test_those_heard_long_ago_do_not_count() -> None:
    founding = Founding(2, 1.0)
    founding.heard(10.0, card(2))
    assert founding.is_mine(10.0 + FRESH_ROUNDS, node_id(1))
    assert not founding.is_mine(10.1 + FRESH_ROUNDS, node_id(1))


def test_founder_lets_in_at_once_whoever_completed_the_number() -> None:
    pump = Pump()
    first = pump.add(1, 2, expect=2)
    pump.run(0.1)
    second = pump.add(2, 1, expect=2)
    assert pump.run_until(lambda: second.swim.phase == "member", 0.1)
    assert EventKind.FOUND in first.kinds()


def test_cards_kept_are_bounded() -> None:
    founding = Founding(3, 1.0)
    for number in range(1, 301):
        founding.heard(10.0, card(number))
    assert len(founding.cards(b"own")) <= 256


def test_as_many_can_meet_as_can_be_expected() -> None:
    founding = Founding(EXPECT_MAX, join_retry_s=1.0)
    for number in range(2, EXPECT_MAX + 1):
        assert not founding.is_mine(0.0, node_id(1))
        founding.heard(0.0, card(number))
    assert founding.is_mine(0.0, node_id(1))
    assert EXPECT_MAX == MET_MAX
