"""Messages to one peer share datagrams, within their shares."""

from __future__ import annotations

import random

import pytest

from mesh.core.address import Address
from mesh.errors import LocalProtocolError
from mesh.node.budget import BREATH_S, MESSAGES_MAX, SHARE_BYTES_MAX, Budget
from tests.unit.membership.pump import address

NOW = 100.0


def drain(budget: Budget, now: float) -> list[tuple[Address, list[bytes]]]:
    taken = budget.take(now)
    budget.check_invariants()
    return taken


def test_messages_to_one_peer_share_a_datagram_and_stay_in_order() -> None:
    budget = Budget()
    for number in range(6):
        budget.add(address(1 + number % 2), bytes([number]))
    assert drain(budget, NOW) == [
        (address(1), [b"\0", b"\2", b"\4"]),
        (address(2), [b"\1", b"\3", b"\5"]),
    ]
    assert (len(budget), budget.next_deadline()) == (0, None)


def test_a_datagram_is_never_filled_beyond_its_share() -> None:
    budget = Budget()
    for size in (SHARE_BYTES_MAX, 400, 400, 400):
        budget.add(address(1), bytes(size))
    sizes = [[len(part) for part in parts] for _, parts in drain(budget, NOW)]
    assert sizes == [[SHARE_BYTES_MAX], [400, 400], [400]]


def test_a_datagram_holds_a_bounded_number_of_messages() -> None:
    budget = Budget()
    for _ in range(MESSAGES_MAX + 1):
        budget.add(address(1), b"x")
    assert [len(parts) for _, parts in drain(budget, NOW)] == [MESSAGES_MAX, 1]


def test_a_message_longer_than_the_share_is_refused_and_changes_nothing() -> None:
    budget = Budget()
    with pytest.raises(LocalProtocolError, match="ask on a stream"):
        budget.add(address(1), bytes(SHARE_BYTES_MAX + 1))
    assert drain(budget, NOW) == []


def test_past_the_burst_messages_wait_for_tokens_and_leave_in_order() -> None:
    budget = Budget(rate_s=100.0, burst=2)
    for number in range(6):
        budget.add(address(number + 1), bytes([number]))
    assert [to for to, _ in drain(budget, NOW)] == [address(1), address(2)]
    assert budget.held == 1
    left: list[Address] = []
    now = NOW
    while (due := budget.next_deadline()) is not None:
        assert due >= now + BREATH_S
        now = due
        left += [to for to, _ in drain(budget, now)]
    assert left == [address(number) for number in (3, 4, 5, 6)]
    assert now <= NOW + 4 / 100.0 + BREATH_S
    assert budget.dropped == 0


def test_whoever_waits_longest_is_served_first_however_much_another_is_told() -> None:
    budget = Budget(rate_s=100.0, burst=1)
    budget.add(address(9), b"first")
    drain(budget, NOW)
    for _ in range(10):
        budget.add(address(1), bytes(SHARE_BYTES_MAX))
    budget.add(address(2), b"late")
    now, order = NOW, list[Address]()
    while (due := budget.next_deadline() or now + BREATH_S) and len(budget):
        now = due
        order += [to for to, _ in drain(budget, now)]
    assert order == [address(1)] * 10 + [address(2)]


def test_when_too_many_wait_the_oldest_is_given_up_and_counted() -> None:
    budget = Budget(rate_s=1.0, burst=1, waiting_max=3)
    budget.add(address(9), b"taken")
    drain(budget, NOW)
    for number in range(5):
        budget.add(address(1 + number % 2), bytes([number]))
    assert (len(budget), budget.dropped) == (3, 2)
    assert drain(budget, NOW + 1.0) == [(address(1), [b"\2", b"\4"])]
    assert drain(budget, NOW + 2.0) == [(address(2), [b"\3"])]


def test_no_second_has_more_datagrams_than_rate_and_burst() -> None:
    rng, budget = random.Random(1), Budget(rate_s=50.0, burst=10)
    now, sent = NOW, list[float]()
    while now < NOW + 10.0:
        now += rng.random() * 0.02
        for _ in range(rng.randrange(4)):
            budget.add(address(1 + rng.randrange(200)), bytes(1 + rng.randrange(400)))
        sent += [now for _ in drain(budget, now)]
    assert all(sum(at <= other < at + 1.0 for other in sent) <= 60 for at in sent)
    assert len(sent) >= 500
