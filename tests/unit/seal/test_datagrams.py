"""Datagrams between seals: first contact, replay, reflection, rotation, restarts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mesh.core.address import Address
from mesh.core.ids import MeshId
from mesh.seal.datagrams import HEADER, NUMBER_MAX, SEAL_BYTES_MAX
from mesh.seal.freshness import CHALLENGE_S, HELD_PER_PEER_MAX, HELD_S
from mesh.seal.ring import KeyRing, ring_of
from mesh.wire.packet import DATAGRAM_BYTES_MAX, PACKET_BYTES_MAX, encode_packet
from tests.unit.seal.sealed_peers import KEY, MESH, OTHER, Peer, acquainted, talk


def test_news_on_first_contact_counts_after_one_round_trip() -> None:
    a, b = Peer(1), Peer(2)
    assert talk(0.0, a, b, b"news") == 3
    assert b.got == [b"news"]
    assert talk(0.0, b, a, b"more") == 1
    assert talk(0.0, a, b, b"again") == 1
    assert (a.got, b.got) == ([b"more"], [b"news", b"again"])


def test_ping_on_first_contact_is_answered_at_once_and_costs_no_datagram_more() -> None:
    a, b = Peer(1), Peer(2)
    (ack,) = b.hears(0.0, a, a.says(0.0, b, b"ping"))
    assert (b.asked, b.got) == ([a.address], [])
    assert a.hears(0.0, b, ack) == []
    assert a.got == [b"ack"]
    assert b.hears(1.0, a, a.says(1.0, b, b"news")) == []
    assert b.got == [b"news"]


def test_acquainted_peers_add_twenty_bytes_and_strangers_stay_within_the_bound() -> None:
    a, b = acquainted()
    plain = encode_packet(MESH, a.node_id, (b"x" * 30,))
    assert len(a.seal.seal(1.0, b.address, plain)) == len(plain) + 20
    stranger = Peer(3)
    for _ in range(2):  # the first is answered at once, and the proof of the second is owed
        stranger.hears(1.0, a, a.says(1.0, stranger, b"news"))
    full = encode_packet(MESH, stranger.node_id, (b"x" * (PACKET_BYTES_MAX - 18),))
    assert len(stranger.seal.seal(1.0, a.address, full)) == len(full) + SEAL_BYTES_MAX
    assert PACKET_BYTES_MAX + SEAL_BYTES_MAX <= DATAGRAM_BYTES_MAX


def test_datagram_counts_once_and_may_be_overtaken() -> None:
    a, b = acquainted()
    b.got.clear()
    first, second = a.says(1.0, b, b"first"), a.says(1.0, b, b"second")
    for data in (second, first, first, second, first):
        b.hears(1.0, a, data)
    assert b.got == [b"second", b"first"]
    assert b.seal.counters["dropped_replayed"] == 3


def test_nothing_recorded_counts_at_a_node_that_has_forgotten_all_sessions() -> None:
    a, b = acquainted()
    recorded = [a.says(now / 10, b, b"old news") for now in range(200)]
    again = Peer(2, boot=1)
    for data in recorded:
        for reply in again.hears(30.0, a, data):
            a.hears(30.0, again, reply)  # its proofs are lost
    assert again.got == []
    talk(31.0, a, again, b"today")
    for data in recorded:
        again.hears(31.1, a, data)
    assert again.got == [b"today"]


def test_recorded_ping_is_answered_and_never_let_in() -> None:
    a, b = acquainted()
    recorded = [a.says(1.0, b, b"ping") for _ in range(20)]
    again = Peer(2, boot=1)
    for data in recorded:
        assert len(again.hears(9.0, a, data)) == 1
    assert again.got == []


def test_datagram_for_one_member_counts_at_no_other() -> None:
    a, b, c = Peer(1), Peer(2), Peer(3)
    for other in (b, c):
        talk(0.0, a, other, b"hello")
        talk(0.0, other, a, b"hello")
    c.got.clear()
    c.hears(1.0, a, a.says(1.0, b, b"for b"))
    assert c.got == []
    assert c.seal.counters["dropped_unopened"] == 1
    talk(1.0, a, c, b"for c")
    assert c.got == [b"for c"]


def test_recording_played_back_does_not_make_a_datagram_open_elsewhere() -> None:
    a, b, c = Peer(1), Peer(2), Peer(3)
    old = b.says(0.0, a, b"old boot")
    b = Peer(2, boot=1)
    for other in (b, c):
        talk(1.0, a, other, b"hello")
        talk(1.0, other, a, b"hello")
    a.hears(2.0, b, old)  # from now on `a` doubts who is at b's address
    said = a.says(2.0, b, b"for b")
    c.got.clear()
    c.hears(2.0, a, said)
    assert c.got == []
    b.hears(2.0, a, said)
    assert b.got[-1] == b"for b"


def test_another_member_at_a_known_address_proves_itself_there() -> None:
    a, b = acquainted()
    c = Peer(3)
    c.address = b.address
    assert talk(1.0, c, a, b"I live here now") == 3
    assert talk(2.0, a, c, b"welcome") == 1
    assert c.got == [b"welcome"]
    b.got.clear()
    b.hears(3.0, a, a.says(3.0, c, b"for c"))
    assert b.got == []


def test_member_that_moves_to_the_address_of_another_is_understood_there() -> None:
    a, b = acquainted()
    c = Peer(3)
    talk(0.0, a, c, b"hello")
    talk(0.0, c, a, b"hello")
    c.address = b.address
    assert talk(1.0, c, a, b"I live here now") == 3
    assert a.got[-1] == b"I live here now"
    assert talk(2.0, a, c, b"I see") == 1
    assert c.got[-1] == b"I see"
    assert talk(3.0, c, a, b"good") == 1


def test_member_that_moved_and_is_in_doubt_itself_is_understood_where_it_is() -> None:
    before = Peer(1)
    c = Peer(3)
    recorded = before.says(0.0, c, b"old boot")
    a, b = Peer(1, boot=1), Peer(2)
    for other in (b, c):
        talk(0.0, a, other, b"hello")
        talk(0.0, other, a, b"hello")
    c.hears(1.0, a, recorded)  # now c asks again who is there, with whatever it says
    c.address = b.address
    talk(2.0, c, a, b"I live here now")
    assert a.got[-1] == b"I live here now"
    talk(3.0, a, c, b"I see")
    assert c.got[-1] == b"I see"


def test_recorded_session_does_not_come_back_with_a_proof_of_the_running_one() -> None:
    a, b = acquainted()
    old = a.says(1.0, b, b"old boot")
    restarted = Peer(1, boot=1)
    talk(2.0, restarted, b, b"new boot")
    b.got.clear()
    replies = b.hears(3.0, a, old)
    for reply in replies:  # the running session answers the challenge that the recording caused
        for proof in restarted.hears(3.0, b, reply):
            b.hears(3.0, restarted, proof)
    assert b.got == []
    assert talk(4.0, restarted, b, b"still here") == 1
    assert b.got == [b"still here"]


def test_recorded_proof_is_worth_nothing() -> None:
    a, b = Peer(1), Peer(2)
    (challenge,) = b.hears(0.0, a, a.says(0.0, b, b"news"))
    (proof,) = a.hears(0.0, b, challenge)
    b.hears(0.0, a, proof)
    again = Peer(2, boot=1)
    again.hears(9.0, a, a.says(0.5, b, b"recorded"))
    again.hears(9.0, a, proof)
    assert again.got == []


def test_proof_that_was_held_back_for_long_lets_nothing_in() -> None:
    a, b = Peer(1), Peer(2)
    (challenge,) = b.hears(0.0, a, a.says(0.0, b, b"news"))
    (proof,) = a.hears(0.0, b, challenge)
    later = [a.says(now / 10, b, b"never arrived") for now in range(200)]
    b.hears(CHALLENGE_S + 10.0, a, proof)
    for data in later:
        b.hears(CHALLENGE_S + 10.0, a, data)
    assert b.got == []
    talk(CHALLENGE_S + 11.0, a, b, b"today")
    assert b.got[-1] == b"today"


def test_what_was_kept_back_too_long_or_too_much_is_dropped_and_counted() -> None:
    a, b = Peer(1), Peer(2)
    late = a.says(0.0, b, b"late")
    (challenge,) = b.hears(0.0, a, late)
    (proof,) = a.hears(HELD_S + 0.1, b, challenge)
    b.hears(HELD_S + 0.1, a, proof)
    assert b.got == []
    c = Peer(3)
    for i in range(HELD_PER_PEER_MAX + 5):
        b.hears(5.0, c, c.says(5.0, b, b"%d" % i))
    assert b.seal.counters["dropped_unproven"] == 1 + 5


def test_reflected_unsealed_and_foreign_datagrams_are_dropped_and_counted() -> None:
    a, b = acquainted()
    a.got.clear()
    a.hears(1.0, b, a.says(1.0, b, b"mirror"))
    a.hears(1.0, b, encode_packet(MESH, b.node_id, (b"plain",)))
    a.hears(1.0, b, Peer(2, ring=ring_of([OTHER])).says(1.0, a, b"other key"))
    a.hears(1.0, b, Peer(2, mesh_id=MeshId(8)).says(1.0, a, b"other mesh"))
    assert a.got == []
    counters = a.seal.counters
    assert counters["dropped_reflected"] == counters["dropped_unsealed"] == 1
    assert counters["dropped_unopened"] == 2


@pytest.mark.parametrize(
    "change", [lambda d, i: d[:i] + bytes((d[i] ^ 1,)) + d[i + 1 :], lambda d, i: d[:i]]
)
def test_datagram_with_one_bit_changed_or_cut_anywhere_opens_nothing(
    change: Callable[[bytes, int], bytes],
) -> None:
    a, b = acquainted()
    b.got.clear()
    data = a.says(1.0, b, b"pay 10")
    for i in range(len(data)):
        assert b.hears(1.0, a, change(data, i)) == []
    assert b.got == []
    b.hears(1.0, a, data)
    assert b.got == [b"pay 10"]


def test_rotation_loses_nothing_whoever_changes_first() -> None:
    a, b = acquainted()
    for step in ("add", "use", "remove"):
        for peer in (a, b):
            _apply(peer.ring, step)
            a.got.clear()
            b.got.clear()
            assert talk(1.0, a, b, b"to b") == 1
            assert talk(1.0, b, a, b"to a") == 1
            assert (a.got, b.got) == ([b"to a"], [b"to b"])
    b.hears(2.0, a, Peer(1).says(2.0, b, b"with the old key"))
    assert b.seal.counters["dropped_unopened"] == 1


def _apply(ring: KeyRing, step: str) -> None:
    if step == "add":
        ring.add(OTHER)
    elif step == "use":
        ring.use(OTHER.key_id)
    else:
        ring.remove(KEY.key_id)


def test_no_nonce_is_used_twice_over_restarts_with_the_same_disk() -> None:
    to, nonces = Peer(2), set[bytes]()
    for boot in range(50):
        peer = Peer(1, boot=boot)
        nonces |= {peer.says(0.0, to, b"same text")[10 : HEADER.size] for _ in range(20)}
    assert len(nonces) == 50 * 20


def test_session_ends_before_its_numbers_run_out_and_the_next_one_is_let_in() -> None:
    a, b = acquainted()
    a.seal._number = NUMBER_MAX - 2
    said = [a.says(1.0, b, b"%d" % i) for i in range(4)]
    salts, numbers = {data[10:18] for data in said}, {data[18:22] for data in said}
    assert len(salts) == 2
    assert numbers == {i.to_bytes(4, "big") for i in (NUMBER_MAX - 2, NUMBER_MAX - 1, 0, 1)}
    for data in said:
        for challenge in b.hears(1.0, a, data):
            for proof in a.hears(1.0, b, challenge):
                b.hears(1.0, a, proof)
    assert b.got[-4:] == [b"0", b"1", b"2", b"3"]


def test_recording_sent_with_a_members_address_does_not_keep_its_challenge_from_it() -> None:
    a, b, c = Peer(1), Peer(2), Peer(3)
    recorded = c.says(0.0, b, b"old")
    c.address = a.address
    assert len(b.hears(1.0, c, recorded)) == 1
    assert talk(1.0, a, b, b"news") == 3
    assert b.got == [b"news"]


def test_flood_of_unproven_datagrams_is_answered_at_a_bounded_pace() -> None:
    a, b = Peer(1), Peer(2)
    assert sum(len(b.hears(0.0, a, a.says(0.0, b, b"news"))) for _ in range(500)) == 1
    from_everywhere = 0
    for port in range(1, 5_001):
        a.address = Address("127.0.0.2", port)
        from_everywhere += len(b.hears(0.0, a, a.says(0.0, b, b"news")))
    assert 900 <= from_everywhere <= 1_000
