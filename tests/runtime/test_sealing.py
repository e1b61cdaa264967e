"""What stands between a node's sockets and its driver, with and without a key."""

from __future__ import annotations

from pathlib import Path

import pytest

from mesh.core.address import Address
from mesh.core.events import EventKind
from mesh.core.ids import MeshId, NodeId, low32
from mesh.errors import CommandRefused, DecodeError
from mesh.runtime.keyed import is_lone_ping
from mesh.runtime.keystore import KeyStore
from mesh.runtime.sealing import Sealing, sealing_for
from mesh.seal.key import Key
from mesh.seal.ring import ring_of
from mesh.wire.frames import split_exchange
from mesh.wire.packet import encode_message, encode_packet
from mesh.wire.swim_messages import Nack, Ping

KEY, OTHER = Key(b"k" * 32), Key(b"o" * 32)
MESH = MeshId(7)


class End:
    """A driver that says what reached it, with its sealing and what it sends."""

    def __init__(self, number: int, *keys: Key) -> None:
        self.node_id = NodeId(number)
        self.address = Address("127.0.0.1", 1000 + number)
        self.now = 0.0
        self.got: list[bytes] = []
        self.asked: list[bytes] = []
        self.sent: list[tuple[Address, bytes]] = []
        self.said: list[str] = []
        store = KeyStore(Path("/nonexistent/keys"), ring_of(keys), MESH) if keys else None
        self.sealing: Sealing = sealing_for(
            store,
            node_id=self.node_id,
            mesh_id=lambda: MESH,
            clock=lambda: self.now,
            say=self.said.append,
        )
        self.send, self.take, self.counters = self.sealing.between(
            lambda to, data: self.sent.append((to, data)), self
        )

    def handle_datagram(self, source: Address, data: bytes) -> None:
        self.got.append(data)

    def handle_request(self, source: Address, data: bytes) -> bytes:
        self.asked.append(data)
        return packet(self, Nack(1))

    def pass_on(self, to: End) -> None:
        """Deliver all that was sent, and what is sent in answer."""
        while self.sent or to.sent:
            for sender, receiver in ((self, to), (to, self)):
                for _, data in sender.sent:
                    receiver.take(sender.address, data)
                sender.sent.clear()


def packet(sender: End, *messages: object) -> bytes:
    return encode_packet(MESH, sender.node_id, [encode_message(message) for message in messages])


def test_without_a_key_everything_passes_as_it_is() -> None:
    end = End(1)
    data = packet(end, Nack(1))
    end.send(end.address, data)
    end.take(end.address, data)
    assert (end.sent, end.got) == ([(end.address, data)], [data])
    assert end.sealing.describe() == {"keys": []}
    for take in (end.sealing.on_offer, end.sealing.on_answer):
        with pytest.raises(DecodeError, match="a node without a key"):
            take(b"ring")


async def test_without_a_key_mesh_key_says_what_is_missing() -> None:
    service = End(1).sealing.service(list)
    with pytest.raises(CommandRefused, match="start it with --key FILE"):
        await service({}, None)  # type: ignore[arg-type]  # the client is not asked


def test_with_a_key_packets_arrive_as_they_were_and_travel_sealed() -> None:
    a, b = End(1, KEY), End(2, KEY)
    data = packet(a, Nack(1), Nack(2))
    a.send(b.address, data)
    assert data[18:] not in a.sent[0][1]
    a.pass_on(b)
    assert b.got == [data]
    assert b.sealing.describe() == {"keys": [KEY.name]}


def test_ping_of_a_stranger_is_answered_as_a_request_and_taken_when_it_is_none() -> None:
    a, b = End(1, KEY), End(2, KEY)
    ping = packet(a, Ping(1, low32(b.node_id), 0))
    a.send(b.address, ping)
    a.pass_on(b)
    assert (b.asked, b.got) == ([ping], [])
    assert len(a.got) == 1
    a.send(b.address, ping)
    a.pass_on(b)
    assert (b.asked, b.got) == ([ping], [ping])


def test_only_a_ping_alone_asks_nothing_else() -> None:
    end = End(1)
    ping = Ping(1, 2, 0)
    assert is_lone_ping(packet(end, ping))
    for data in (packet(end, ping, Nack(1)), packet(end, ping, ping), packet(end, Nack(1)), b""):
        assert not is_lone_ping(data)


def test_node_without_a_key_and_one_with_another_are_dropped_and_counted() -> None:
    b = End(2, KEY)
    for stranger in (End(1), End(3, OTHER)):
        stranger.send(b.address, packet(stranger, Nack(1)))
        b.take(stranger.address, stranger.sent[0][1])
    assert (b.got, b.sent) == ([], [])
    assert (b.counters["dropped_unsealed"], b.counters["dropped_unopened"]) == (1, 1)


def test_later_ring_is_taken_over_from_either_side_of_an_offer_and_said() -> None:
    old, new = End(1, KEY), End(2, OTHER, KEY)
    offered = split_exchange(old.sealing.offer())[2]
    old.sealing.on_answer(new.sealing.on_offer(offered))
    assert old.sealing.describe() == new.sealing.describe()
    assert any("the key ring was changed, as a member told" in line for line in old.said)
    assert any(
        "a restart forgets the change" in line for line in old.said
    )  # it cannot be kept here
    assert all(key.to_text() not in line for line in old.said for key in (KEY, OTHER))


def test_ring_that_was_offered_and_cannot_be_kept_is_said_where_that_is_so() -> None:
    old, new = End(1, KEY), End(2, OTHER, KEY)
    for end in (old, new):
        end.sealing.note(EventKind.FOUND)
    old.said.clear()
    new.sealing.on_answer(old.sealing.on_offer(split_exchange(new.sealing.offer())[2]))
    assert sorted(old.sealing.describe()["keys"]) == sorted((KEY.name, OTHER.name))
    assert any("warning" in line and "a restart forgets the change" in line for line in old.said)
