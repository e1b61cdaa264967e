"""What a guardian is handed: each letter sealed for its reader, anew when it has to be, and nothing that must stay here."""

from __future__ import annotations

from mesh.core.address import Address
from mesh.core.effects import WriteObituary
from mesh.core.ids import NodeId
from mesh.core.letter import Letter
from mesh.runtime.bequest import Bequest
from mesh.runtime.reach import Reach
from mesh.runtime.sealing import NoSealing

HERE, THERE = Address("127.0.0.1", 7946), Address("192.0.2.7", 7946)
OBITUARY = WriteObituary((Letter(NodeId(2), HERE, b"over"), Letter(NodeId(3), THERE, b"over")))


class Seal:
    """Seals so that one sees for whom, and under which key."""

    def __init__(self) -> None:
        self.era: object = "first"

    def seal_ahead(self, receiver: NodeId, packet: bytes) -> bytes:
        return f"{self.era} for {receiver}: ".encode() + packet


def handed(sealing: Seal | NoSealing, reach: Reach) -> tuple[Bequest, list[object]]:
    got: list[object] = []
    return Bequest(sealing, reach, lambda letters: got.append(list(letters))), got


def test_each_letter_is_sealed_for_its_reader() -> None:
    bequest, got = handed(Seal(), Reach(is_loopback_only=False))
    bequest.write(OBITUARY)
    assert got == [[(HERE, b"first for 2: over"), (THERE, b"first for 3: over")]]


def test_it_is_sealed_anew_when_the_seal_would_not_count_any_more_and_only_then() -> None:
    seal = Seal()
    bequest, got = handed(seal, Reach(is_loopback_only=False))
    bequest.write(OBITUARY)
    bequest.look()
    assert len(got) == 1
    seal.era = "second"
    bequest.look()
    bequest.look()
    assert got[1:] == [[(HERE, b"second for 2: over"), (THERE, b"second for 3: over")]]


def test_without_a_key_nothing_is_handed_on_that_would_leave_the_host() -> None:
    bequest, got = handed(NoSealing(), Reach())
    bequest.write(OBITUARY)
    assert got == [[(HERE, b"over")]]


def test_what_was_taken_back_stays_so_whatever_becomes_of_the_seal() -> None:
    seal = Seal()
    bequest, got = handed(seal, Reach())
    bequest.write(OBITUARY)
    bequest.write(WriteObituary(()))
    seal.era = "second"
    bequest.look()
    assert got[-1] == []
    assert len(got) == 2
