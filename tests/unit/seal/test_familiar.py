"""A session that has become familiar: what holds for a datagram's long way holds for its short one."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from mesh.core.address import Address
from mesh.core.ids import MeshId, NodeId
from mesh.seal.datagrams import DatagramSeal
from mesh.seal.key import Key
from mesh.seal.ring import ring_of
from mesh.wire.packet import encode_packet

KEY, OTHER = Key(b"k" * 32), Key(b"o" * 32)
MESH, OTHER_MESH = MeshId(7), MeshId(8)
LISTENER = Address("127.0.0.1", 2)


class Speaker:
    """A member that seals; what it seals is opened by a `Listener`, or by nobody."""

    def __init__(self, boot: int = 0) -> None:
        self.address = Address("127.0.0.1", 1)
        self.ring = ring_of([KEY])
        self.mesh_id = MESH
        self.seal = _seal(self, NodeId(1), boot)

    def says(self, now: float, text: bytes) -> bytes:
        return self.seal.seal(now, LISTENER, encode_packet(self.mesh_id, NodeId(1), (text,)))


class Listener:
    """A member that opens."""

    def __init__(self) -> None:
        self.address = LISTENER
        self.ring = ring_of([KEY])
        self.mesh_id = MESH
        self.seal = _seal(self, NodeId(2), 0)

    def lets_in(self, now: float, source: Address, data: bytes) -> list[bytes]:
        return [packet[18:] for packet in self.seal.open(now, source, data)[0]]

    def meets(self, now: float, speaker: Speaker) -> None:
        """Prove themselves to each other, and go on until the speaker's session is familiar."""
        queue = [(True, speaker.says(now, b"hello"))]
        for is_to_me, data in queue:  # grows by what is answered
            taker, source = (
                (self.seal, speaker.address) if is_to_me else (speaker.seal, self.address)
            )
            queue += [(not is_to_me, reply) for _, reply in taker.open(now, source, data)[1]]
        hello = encode_packet(MESH, NodeId(2), (b"hello",))
        speaker.seal.open(now, self.address, self.seal.seal(now, speaker.address, hello))
        assert self.lets_in(now, speaker.address, speaker.says(now, b"again")) == [b"again"]
        familiar = self.seal.open_familiar(speaker.address, speaker.says(now, b"familiar"))
        assert familiar == encode_packet(MESH, NodeId(1), (b"familiar",))


def _seal(who: Speaker | Listener, node_id: NodeId, boot: int) -> DatagramSeal:
    return DatagramSeal(
        ring=who.ring,
        node_id=node_id,
        mesh_id=lambda: who.mesh_id,
        entropy=random.Random(f"{node_id}/{boot}").randbytes,
        answer=lambda _source, _packet: b"",
    )


def familiar() -> tuple[Speaker, Listener]:
    speaker, listener = Speaker(), Listener()
    listener.meets(0.0, speaker)
    return speaker, listener


def test_datagram_of_a_familiar_session_counts_once_and_may_be_overtaken() -> None:
    speaker, listener = familiar()
    said = [speaker.says(1.0, b"%d" % i) for i in range(300)]
    for i in (0, 299, 298, 43, 44):
        expected = [] if i == 43 else [b"%d" % i]  # 43 is older than the window is wide
        assert listener.lets_in(1.0, speaker.address, said[i]) == expected
        assert listener.lets_in(1.0, speaker.address, said[i]) == []
    assert listener.seal.counters["dropped_replayed"] == 6
    assert listener.seal.counters["dropped_unopened"] == 0


@pytest.mark.parametrize(
    "change", [lambda d, i: d[:i] + bytes((d[i] ^ 1,)) + d[i + 1 :], lambda d, i: d[:i]]
)
def test_datagram_of_a_familiar_session_that_was_changed_or_cut_opens_nothing(
    change: Callable[[bytes, int], bytes],
) -> None:
    speaker, listener = familiar()
    data = speaker.says(1.0, b"pay 10")
    for i in range(len(data)):
        assert listener.seal.open(1.0, speaker.address, change(data, i)) == ((), ())
    dropped = listener.seal.counters
    assert dropped["dropped_unopened"] + dropped["dropped_reflected"] == len(data)
    assert listener.lets_in(1.0, speaker.address, data) == [b"pay 10"]


def test_familiar_session_is_over_when_its_sender_has_proved_another() -> None:
    speaker, listener = familiar()
    recorded = [speaker.says(1.0, b"old boot") for _ in range(3)]
    restarted = Speaker(boot=1)
    listener.meets(2.0, restarted)
    for data in recorded:
        assert listener.lets_in(2.5, speaker.address, data) == []
    assert listener.lets_in(3.0, speaker.address, restarted.says(3.0, b"new")) == [b"new"]


def test_familiar_session_opens_nothing_in_another_mesh() -> None:
    speaker, listener = familiar()
    before = speaker.says(1.0, b"before")
    listener.mesh_id = OTHER_MESH
    assert listener.seal.open(1.0, speaker.address, before) == ((), ())
    assert listener.seal.counters["dropped_unopened"] == 1
    speaker.mesh_id = OTHER_MESH
    assert listener.lets_in(1.0, speaker.address, speaker.says(1.0, b"after")) == [b"after"]


def test_familiar_session_opens_nothing_with_a_key_that_was_removed() -> None:
    speaker, listener = familiar()
    before = speaker.says(1.0, b"before")
    for ring in (speaker.ring, listener.ring):
        ring.add(OTHER)
        ring.use(OTHER.key_id)
        ring.remove(KEY.key_id)
    assert listener.seal.open(1.0, speaker.address, before) == ((), ())
    assert listener.seal.counters["dropped_unopened"] == 1
    assert listener.lets_in(1.0, speaker.address, speaker.says(1.0, b"after")) == [b"after"]


def test_familiar_session_that_takes_another_key_stays_understood() -> None:
    speaker, listener = familiar()
    listener.ring.add(OTHER)
    assert listener.lets_in(1.0, speaker.address, speaker.says(1.0, b"old")) == [b"old"]
    speaker.ring.add(OTHER)
    speaker.ring.use(OTHER.key_id)
    for text in (b"new", b"newer"):
        assert listener.lets_in(1.0, speaker.address, speaker.says(1.0, text)) == [text]


def test_familiar_session_from_elsewhere_counts_and_is_asked_to_prove_itself_there() -> None:
    speaker, listener = familiar()
    elsewhere = Address("127.0.0.1", 3)
    packets, replies = listener.seal.open(1.0, elsewhere, speaker.says(1.0, b"moved"))
    assert [packet[18:] for packet in packets] == [b"moved"]
    assert [to for to, _ in replies] == [elsewhere]
