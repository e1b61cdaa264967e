"""What is sealed ahead, to be sent when its node can send no more: it opens once, for one, in this session."""

from __future__ import annotations

import pytest

from mesh.seal.datagrams import NUMBER_MAX
from mesh.wire.packet import encode_packet
from tests.unit.seal.sealed_peers import OTHER, Peer, acquainted, talk


def last_word(a: Peer, b: Peer, text: bytes) -> bytes:
    return a.seal.seal_ahead(b.node_id, encode_packet(a.mesh_id, a.node_id, (text,)))


@pytest.mark.parametrize("sent", [0, 1, 1_000])
def test_what_was_sealed_ahead_counts_once_however_much_was_sent_since_and_from_anywhere(
    sent: int,
) -> None:
    a, b = acquainted()
    ahead = last_word(a, b, b"over")
    for _ in range(sent):
        b.hears(1.0, a, a.says(1.0, b, b"news"))
    stranger, before = Peer(99), len(b.got)
    for _ in range(3):
        b.hears(1_000.0, stranger, ahead)
    assert b.got[before:] == [b"over"]
    assert b.seal.counters["dropped_replayed"] == 2


def test_nothing_that_was_sent_before_counts_after_what_was_sealed_ahead() -> None:
    a, b = acquainted()
    ahead, late = last_word(a, b, b"over"), a.says(1.0, b, b"late")
    b.hears(1.0, a, ahead)
    b.hears(1.0, a, late)
    assert b.got[-1] == b"over"


def test_what_was_sealed_ahead_opens_for_one_alone() -> None:
    a, b = acquainted()
    c = Peer(3)
    talk(0.0, a, c, b"hello")
    c.hears(1.0, a, last_word(a, b, b"over"))
    assert b"over" not in c.got
    assert c.seal.counters["dropped_unopened"] == 1


def test_what_was_sealed_ahead_does_not_count_in_a_later_session_of_its_reader() -> None:
    a, b = acquainted()
    ahead = last_word(a, b, b"over")
    b_again = Peer(2, boot=1)
    b_again.hears(1.0, a, ahead)
    assert b_again.got == []


def test_no_number_is_used_twice_by_what_is_sealed_now_and_ahead() -> None:
    a, b = acquainted()
    a.seal._number = NUMBER_MAX - 10
    heads = []
    for _ in range(30):
        heads += [a.says(1.0, b, b"now")[10:22], last_word(a, b, b"ahead")[10:22]]
    assert len(set(heads)) == len(heads)


def test_what_is_sealed_ahead_is_bound_to_the_key_and_the_session() -> None:
    a, b = acquainted()
    era = a.seal.era
    a.says(1.0, b, b"news")
    last_word(a, b, b"over")
    assert a.seal.era == era
    a.seal._number = NUMBER_MAX
    a.says(1.0, b, b"news")
    assert a.seal.era != era
    era = a.seal.era
    a.ring.add(OTHER)
    a.ring.use(OTHER.key_id)
    assert a.seal.era != era
    last_word(a, b, b"over")
    b.ring.add(OTHER)
    for challenge in b.hears(2.0, a, a.says(2.0, b, b"again")):
        for proof in a.hears(2.0, b, challenge):
            b.hears(2.0, a, proof)
    b.hears(2.0, a, last_word(a, b, b"over"))
    assert b.got[-1] == b"over"
