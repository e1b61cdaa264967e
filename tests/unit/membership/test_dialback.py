"""Whoever is let in is dialled back, and both sides say in plain words if that fails."""

from __future__ import annotations

import pytest

from mesh.core.events import EventKind
from mesh.membership.dialback import DIALS_MAX, PINGS
from mesh.wire.swim_messages import Join, Ping, Reached, Welcome
from tests.unit.membership.pump import Host, Pump, address, are_equal, card_bytes, node_id


def warnings(host: Host) -> list[str]:
    return [event.detail for event in host.events if event.kind is EventKind.WARN]


def dials(host: Host) -> int:
    return sum(isinstance(ask.tag, tuple) and ask.tag[0] == "dial" for ask in host.asked)


def test_a_node_that_can_be_reached_is_dialled_once_and_nobody_warns() -> None:
    pump = Pump()
    hosts = pump.mesh(4)
    pump.run(10.0)
    assert dials(hosts[0]) == 3
    assert [warnings(host) for host in hosts] == [[]] * 4
    assert sum(isinstance(ask.message, Reached) for ask in hosts[1].asked) == 1


def test_the_welcome_waits_for_nothing() -> None:
    pump = Pump()
    seed = pump.add(1)
    reply, _ = seed.swim.handle_request(pump.now, node_id(2), Join(card_bytes(2), 0, 0, ()))
    assert isinstance(reply, Welcome)


def test_lost_packets_are_no_firewall() -> None:
    pump = Pump(seed=6)
    pump.loss_ratio = 0.3
    hosts = [pump.add(1), *(pump.add(number, 1) for number in range(2, 12))]
    pump.run(10.0)
    assert [text for host in hosts for text in warnings(host) if "cannot reach" in text] == []


def test_a_node_that_advertises_where_nobody_is_is_told_so_by_the_seed() -> None:
    pump = Pump()
    seed = pump.add(1)
    lost = pump.add(2, 1)
    # Its packets go out; what is sent to the address that it advertises arrives nowhere.
    pump.cut = lambda _a, b: b == lost.address
    reply, outputs = seed.swim.handle_request(
        pump.now, lost.node_id, Join(lost.swim.identity.card_bytes, 0, 0, ())
    )
    assert isinstance(reply, Welcome)
    pump._carry_out(seed, outputs)
    assert pump.run_until(lambda: bool(warnings(seed)), 2 * pump.config.exchange_timeout_s)
    (text,) = warnings(seed)
    assert text.startswith(
        f"cannot reach host-2 at {lost.address} by UDP: no answer to {PINGS} pings"
    )
    assert "and by TCP: timed out; check --advertise and the firewall" in text


def test_a_node_that_drops_udp_is_told_so_itself() -> None:
    pump = Pump()
    seed = pump.add(1)
    pump.drop_kind(Ping)
    joiner = pump.add(2, 1)
    assert pump.run_until(lambda: bool(warnings(joiner)), 3 * pump.config.exchange_timeout_s)
    expected = f"cannot reach this node at {joiner.address} by UDP: no answer to {PINGS} pings"
    assert warnings(joiner)[0].startswith(f"{address(1)} {expected}")
    assert warnings(joiner)[0].endswith("check --advertise and the firewall")
    assert "TCP" not in warnings(joiner)[0]
    assert any("cannot reach host-2" in text for text in warnings(seed))


def test_who_answers_at_the_advertised_address_must_be_the_one_who_joined() -> None:
    pump = Pump()
    seed = pump.add(1)
    other = pump.add(3, 1)
    pump.run(1.0)
    joiner = pump.add(2, 1, address=other.address)  # it is found last, so streams reach it
    pump.hosts.remove(joiner)
    pump.run(10.0)
    assert any("TCP: another node answers there" in text for text in warnings(seed))


def test_whoever_has_gone_meanwhile_is_no_news() -> None:
    pump = Pump()
    seed = pump.add(1)
    joiner = pump.add(2, 1)
    pump.run(0.05)
    pump.leave(joiner)
    pump.run(10.0)
    assert warnings(seed) == []


def test_a_flood_of_newcomers_is_dialled_within_a_limit() -> None:
    pump = Pump()
    seed = pump.add(1)
    for number in range(2, 2 + 2 * DIALS_MAX):
        seed.swim.handle_request(pump.now, node_id(number), Join(card_bytes(number), 0, 0, ()))
    assert len(seed.swim._entrance.dialback._dials) == DIALS_MAX


def test_a_question_of_another_session_is_answered_with_nothing() -> None:
    pump = Pump()
    seed = pump.add(1)
    pump.drop_kind(Ping)
    joiner = pump.add(2, 1)
    assert pump.run_until(lambda: bool(warnings(seed)), 10.0)
    dialback = seed.swim._entrance.dialback
    assert dialback.on_reached(joiner.node_id, Reached(1)).udp
    assert not dialback.on_reached(joiner.node_id, Reached(2)).udp
    assert not dialback.on_reached(node_id(9), Reached(1)).udp


@pytest.mark.parametrize("seconds", [0.0, 1.0])
def test_a_node_that_leaves_dials_nobody_any_more(seconds: float) -> None:
    pump = Pump()
    seed = pump.add(1)
    joiner = pump.add(2, 1)
    pump.run(seconds)
    pump.leave(seed)
    pump.run(20.0)
    assert warnings(seed) == []
    assert are_equal([joiner])
