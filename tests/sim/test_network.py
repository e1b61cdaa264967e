"""The virtual network: delays, losses, copies, cuts, and what streams do then."""

from __future__ import annotations

import pytest

from mesh.sim.network import Conditions, Network

CALM = Conditions(delay_s=0.01, jitter_s=0.0)


def arrivals(network: Network, sender: int, count: int = 200) -> list[tuple[float, ...]]:
    return [network.datagram_arrivals(float(n), sender, 99) for n in range(count)]


def test_a_calm_network_delays_and_nothing_else() -> None:
    assert arrivals(Network(1, CALM), 0, 3) == [(0.01,), (1.01,), (2.01,)]


def test_one_seed_gives_one_network() -> None:
    rough = Conditions(loss_ratio=0.3, copy_ratio=0.3, jitter_s=0.01)
    assert arrivals(Network(7, rough), 0) == arrivals(Network(7, rough), 0)
    assert arrivals(Network(7, rough), 0) != arrivals(Network(8, rough), 0)


def test_one_senders_packets_do_not_shift_anothers_fate() -> None:
    rough = Conditions(loss_ratio=0.3, copy_ratio=0.3, jitter_s=0.01)
    alone, shared = Network(7, rough), Network(7, rough)
    arrivals(shared, 1)
    assert arrivals(shared, 0) == arrivals(alone, 0)


@pytest.mark.parametrize("ratio", [0.1, 0.5, 0.9])
def test_loss_is_as_frequent_as_it_says(ratio: float) -> None:
    lossy = Network(1, Conditions(loss_ratio=ratio))
    lost = sum(not times for times in arrivals(lossy, 0, 4000))
    assert lost / 4000 == pytest.approx(ratio, abs=0.04)


def test_copies_come_a_second_time_and_later() -> None:
    copying = Network(1, Conditions(copy_ratio=1.0, copy_delay_s=2.0))
    for first_s, second_s in arrivals(copying, 0):
        assert first_s <= second_s <= first_s + 2.0


def test_jitter_reorders_packets() -> None:
    network = Network(1, Conditions(delay_s=0.001, jitter_s=0.05))
    times = [network.datagram_arrivals(n / 1000, 0, 1)[0] for n in range(100)]
    assert times != sorted(times)


def test_a_cut_is_one_way_until_it_is_mended() -> None:
    network = Network(1, CALM)
    cut = network.cut([0, 1], [2])
    assert not network.passes(0, 2)
    assert network.passes(2, 0)
    assert network.datagram_arrivals(0.0, 1, 2) == ()
    network.mend(cut)
    network.mend(cut)
    assert network.passes(0, 2)


def test_a_clog_holds_what_is_sent_until_it_ends() -> None:
    network = Network(1, CALM)
    network.clog(0, 5.0)
    assert network.datagram_arrivals(1.0, 0, 1) == (5.01,)
    assert network.datagram_arrivals(6.0, 0, 1) == (6.01,)
    assert network.datagram_arrivals(1.0, 1, 0) == (1.01,)


def test_a_link_may_differ_from_the_rest() -> None:
    network = Network(1, CALM)
    network.set_link(0, 1, Conditions(delay_s=1.0, jitter_s=0.0))
    assert network.datagram_arrivals(0.0, 0, 1) == (1.0,)
    assert network.datagram_arrivals(0.0, 1, 0) == (0.01,)


def test_loss_makes_a_stream_slow_and_loses_nothing() -> None:
    network = Network(1, Conditions(delay_s=0.01, jitter_s=0.0, loss_ratio=0.5))
    times = [network.stream_arrival(0.0, 0, 1) for _ in range(200)]
    assert min(times) == 0.01
    assert max(times) > 0.2


def test_healing_ends_every_fault() -> None:
    network = Network(1, Conditions(loss_ratio=1.0))
    network.cut([0], [1])
    network.clog(0, 100.0)
    network.set_link(0, 1, Conditions(loss_ratio=1.0))
    network.heal(CALM)
    assert network.datagram_arrivals(0.0, 0, 1) == (0.01,)
