"""What node and guardian tell each other survives the way, and garbage calls nobody."""

from __future__ import annotations

import math

import pytest

from mesh.guardian import link
from mesh.guardian.link import Leader


class Ear:
    """Orders, written down."""

    def __init__(self) -> None:
        self.heard: list[tuple[object, ...]] = []

    def watch(self, run_id: int, leader: Leader, freeze_at: float, kill_at: float) -> None:
        who = leader.pid, leader.start, leader.keeps_orphans
        self.heard.append(("watch", run_id, who, freeze_at, kill_at))

    def move(self, run_id: int, freeze_at: float, kill_at: float) -> None:
        self.heard.append(("move", run_id, freeze_at, kill_at))

    def done(self, run_id: int) -> None:
        self.heard.append(("done", run_id))

    def take_obituary(self, letters: list[tuple[bytes, int, bytes]]) -> None:
        self.heard.append(("obituary", letters))

    def clear(self) -> None:
        self.heard.append(("clear",))


LETTERS = [(b"\x7f\0\0\1", 7946, b"for one"), (b"\0" * 15 + b"\1", 65535, b"for another, longer")]
ORDERS = [
    (
        link.encode_run(2**63, Leader(7, 2**40, keeps_orphans=True), 1.5, math.inf),
        ("watch", 2**63, (7, 2**40, True), 1.5, math.inf),
    ),
    (
        link.encode_run(1, Leader(7, 8), 0.0, -1.0),
        ("watch", 1, (7, 8, False), 0.0, -1.0),
    ),
    (link.encode_deadline(3, 4.25, 5.5), ("move", 3, 4.25, 5.5)),
    (link.encode_run_id(link.DONE, 6), ("done", 6)),
    (link.encode_obituary(LETTERS), ("obituary", LETTERS)),
    (link.encode_obituary([]), ("obituary", [])),
    (bytes((link.CLEAR,)), ("clear",)),
]


@pytest.mark.parametrize(("packet", "heard"), ORDERS)
def test_an_order_arrives_as_it_was_given(packet: bytes, heard: tuple[object, ...]) -> None:
    ear = Ear()
    link.deliver(packet, ear)
    assert ear.heard == [heard]


@pytest.mark.parametrize(
    "packet", [packet for packet, heard in ORDERS if heard[0] not in {"obituary", "clear"}]
)
def test_an_order_of_another_length_is_refused(packet: bytes) -> None:
    for wrong in (packet[:-1], packet + b"\0", packet[:1]):
        with pytest.raises(ValueError, match="order"):
            link.deliver(wrong, Ear())


@pytest.mark.parametrize(
    "packet",
    [
        b"",
        b"\0",
        b"\xff" * 30,
        bytes((link.CLEAR, 0)),
        bytes((link.FROZEN,)) + bytes(8),
        link.encode_deadline(1, math.nan, 1.0),
        link.encode_run(1, Leader(2, 3), 1.0, math.nan),
        bytes((link.OBITUARY,)),
        bytes((link.OBITUARY, 1)),
        bytes((link.OBITUARY, 1, 5)) + bytes(7),
        bytes((link.OBITUARY, 1, 16)) + bytes(16),
        bytes((link.OBITUARY, link.LETTERS_MAX + 1)) + bytes((4, 1, 2, 3, 4, 5, 6, 0, 0)) * 65,
        bytes((link.OBITUARY, 0, 0)),
        link.encode_obituary(LETTERS) + b"\0",
        link.encode_obituary(LETTERS)[:-1],
        bytes((link.OBITUARY, 1, 4, 127, 0, 0, 1, 1, 1, 5, 0xC1)) + bytes(1473),
    ],
)
def test_garbage_calls_nobody(packet: bytes) -> None:
    ear = Ear()
    with pytest.raises(ValueError, match=r"expected|length"):
        link.deliver(packet, ear)
    assert ear.heard == []


@pytest.mark.parametrize("kind", [link.FROZEN, link.THAWED, link.KILLED, link.REFUSED])
def test_an_answer_arrives_as_it_was_given(kind: int) -> None:
    assert link.decode_answer(link.encode_run_id(kind, 2**64 - 1)) == (kind, 2**64 - 1, 0)


def test_what_was_cleared_arrives() -> None:
    packet = link.encode_cleared(3, link.LEFT_UNKNOWN)
    assert link.decode_answer(packet) == (link.CLEARED, 3, link.LEFT_UNKNOWN)


@pytest.mark.parametrize("packet", [b"", bytes(9), link.encode_run_id(link.DONE, 1), b"\x14" * 8])
def test_what_is_no_answer_is_refused(packet: bytes) -> None:
    with pytest.raises(ValueError, match="an answer"):
        link.decode_answer(packet)


def test_an_obituary_that_no_guardian_takes_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 64 letters"):
        link.encode_obituary([(b"\x7f\0\0\1", 7946, b"")] * 65)
    with pytest.raises(ValueError, match="1472 bytes"):
        link.encode_obituary([(b"\x7f\0\0\1", 7946, bytes(1473))])


def test_the_largest_order_fits_a_packet() -> None:
    largest = link.encode_obituary(
        [(bytes(16), 1, bytes(link.LETTER_BYTES_MAX))] * link.LETTERS_MAX
    )
    assert len(largest) == link.PACKET_BYTES_MAX
    ear = Ear()
    link.deliver(largest, ear)
    assert len(ear.heard) == 1
