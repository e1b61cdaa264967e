"""Seats: which voters keep a register, and who is the first of them."""

from mesh.core.ids import NodeId
from mesh.placement.cells import cell_of
from mesh.placement.rendezvous import rank
from mesh.registers.roster import successor_key
from mesh.registers.seating import Seating
from mesh.wire.roster_messages import Roster

NODES = tuple(NodeId(n) for n in range(1, 8))
KEYS = [b"task/%d" % n for n in range(200)]


def test_up_to_three_voters_keep_every_register_ranked_by_its_cell() -> None:
    seating = Seating(NODES[0], Roster(4, NODES[:3]))
    for key in KEYS:
        expected = rank(cell_of(key.decode()), [(node, 1) for node in NODES[:3]])
        assert seating.seats(key) == Roster(4, tuple(expected))
    assert {seating.place(key) for key in KEYS} == {0, 1, 2}


def test_of_more_voters_the_best_three_keep_it() -> None:
    seating = Seating(NODES[0], Roster(4, NODES))
    for key in KEYS:
        seats = seating.seats(key).voters
        assert seats == tuple(rank(cell_of(key.decode()), [(node, 1) for node in NODES])[:3])
        assert seating.place(key) == (seats.index(NODES[0]) if NODES[0] in seats else None)
    assert {voter for key in KEYS for voter in seating.seats(key).voters} == set(NODES)


def test_every_voter_keeps_the_registers_of_rosters() -> None:
    assert Seating(NODES[0], Roster(4, NODES)).seats(successor_key(4)) == Roster(4, NODES)


def test_any_bytes_are_a_key() -> None:
    seating = Seating(NODES[0], Roster(4, NODES))
    assert len(seating.seats(bytes(range(256))[:160]).voters) == 3


def test_no_roster_has_no_voters() -> None:
    seating = Seating(NODES[0], None)
    assert seating.seats(KEYS[0]) == Roster(0, ())
    assert seating.place(KEYS[0]) is None


def test_a_later_roster_takes_the_place_of_an_earlier_one() -> None:
    seating = Seating(NODES[0], Roster(4, NODES[:3]))
    assert seating.seats(KEYS[0]).epoch == 4
    assert seating.adopt(Roster(6, NODES[:1]))
    assert seating.seats(KEYS[0]) == Roster(6, NODES[:1])
    for late in (Roster(6, NODES[:2]), Roster(5, NODES)):
        assert not seating.adopt(late)
        assert seating.seats(KEYS[0]) == Roster(6, NODES[:1])
