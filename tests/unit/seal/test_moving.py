"""Members that moved, each to where the other knew a third: what is proved at an address ages."""

from __future__ import annotations

import random

from mesh.core.address import Address
from mesh.seal.freshness import PEERS_MAX, UNANSWERED_MAX, Freshness
from tests.unit.seal.sealed_peers import Peer, acquainted, talk


def moved_at_once() -> tuple[Peer, Peer]:
    """Two that know each other, each at the address where it knew a third that is gone."""
    (a, b), c, d = acquainted(), Peer(3), Peer(4)
    for one, third in ((a, c), (b, d)):
        talk(0.0, one, third, b"hello")
        talk(0.0, third, one, b"hello")
    a.address, b.address = d.address, c.address
    return a, b


def test_two_that_moved_at_once_each_to_where_it_knew_a_third_understand_each_other() -> None:
    a, b = moved_at_once()
    for tick in range(20):
        now = 1.0 + tick * 0.5
        talk(now, a, b, b"%d" % tick)
        talk(now, b, a, b"%d" % tick)
    assert a.got[-1] == b.got[-1] == b"19"
    assert len(b.got) >= 14
    # And what one says is for the other again, and for nobody else.
    for one, other in ((a, b), (b, a)):
        third = Peer(5)
        third.hears(20.0, one, one.says(20.0, other, b"for one"))
        assert third.seal.counters["dropped_unopened"] == 1
        assert talk(20.0, one, other, b"for one") == 1


def test_who_knows_that_it_moved_is_understood_at_once_wherever_the_others_are() -> None:
    a, b = moved_at_once()
    a.seal.begin_anew()
    talk(1.0, a, b, b"I moved")
    assert b.got[-1] == b"I moved"
    assert talk(1.1, b, a, b"I see") == 1
    assert a.got[-1] == b"I see"
    third = Peer(5)
    third.hears(1.2, a, a.says(1.2, b, b"for b"))
    assert third.seal.counters["dropped_unopened"] == 1


def test_it_is_enough_that_one_of_them_speaks() -> None:
    a, b = moved_at_once()
    for tick in range(6):
        talk(1.0 + tick * 0.5, a, b, b"%d" % tick)
    assert b.got[-1] == b"5"
    assert talk(5.0, b, a, b"I hear you") == 1
    assert a.got[-1] == b"I hear you"


def test_what_is_said_to_one_that_answers_is_for_that_one_however_long_it_goes() -> None:
    a, b = acquainted()
    for tick in range(600):
        now = 1.0 + tick * 0.3
        for _ in range(UNANSWERED_MAX):
            talk(now, a, b, b"work")
        assert talk(now, b, a, b"done") == 1
    assert len(b.got) == 1 + 600 * UNANSWERED_MAX
    assert b.seal.counters["proof_packets"] <= 1


def test_much_that_is_said_at_once_is_not_unanswered_for_that() -> None:
    a, b = acquainted()
    said = [a.says(1.0 + n / 1000, b, b"%d" % n) for n in range(400)]
    assert {data[1] for data in said} == {said[0][1]}
    for data in said:
        assert b.hears(1.5, a, data) == []


def test_recording_played_back_is_no_answer() -> None:
    a, b = moved_at_once()
    old = Peer(3)
    old.address = b.address
    recorded = [old.says(0.0, a, b"%d" % n) for n in range(3)]
    for tick in range(12):
        now = 1.0 + tick * 0.5
        a.hears(now, old, recorded[tick % 3])
        talk(now, a, b, b"%d" % tick)
    assert b.got[-1] == b"11"


def test_of_those_that_leave_everything_unanswered_a_bounded_number_is_remembered() -> None:
    a, freshness = Peer(1), Freshness(random.Random(1).randbytes)
    for port in range(1, PEERS_MAX + 1_000):
        to = Address("10.0.0.1", port)
        challenge = freshness.challenge_for(0.0, to)
        freshness.prove(0.0, to, (a.node_id, 1), challenge, 0)
        assert freshness.receiver_at(0.0, to) == a.node_id
    assert len(freshness.proved_at) <= PEERS_MAX
