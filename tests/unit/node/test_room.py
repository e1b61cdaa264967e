"""A voter whose disk has no room: what it would have to store is dropped, the others are a majority, and it lives on."""

from __future__ import annotations

from mesh.core.effects import Answer
from mesh.node.commands import SetRoom
from mesh.node.config import Metadata
from mesh.tasks.commands import Submit
from tests.unit.node.neighbours import Neighbours
from tests.unit.node.talk import job

NOBODY_RUNS = Metadata(slots=0)


def three_voters() -> Neighbours:
    wire = Neighbours()
    for number in (1, 2, 3):
        wire.begin(number, meta=NOBODY_RUNS)
    wire.run(60, lambda: all(votes(wire, number) for number in (1, 2, 3)))
    assert all(votes(wire, number) for number in (1, 2, 3))
    return wire


def votes(wire: Neighbours, number: int) -> bool:
    registers = wire.nodes[number].view(wire.now).node["registers"]
    return bool(registers["votes"]) and len(registers["voters"]) == 3


def submit(wire: Neighbours, number: int, text: str) -> Answer:
    command = wire.give(number, lambda command: Submit(command, job(text)))
    wire.run(5, lambda: wire.answer(command))
    answer = wire.answer(command)
    assert answer is not None
    return answer


def dropped(wire: Neighbours, number: int) -> int:
    found: int = wire.nodes[number].view(wire.now).node["counters"].get("dropped_no_room", 0)
    return found


def keeps(wire: Neighbours, number: int, text: str) -> bool:
    return f"task/{text}".encode() in {record.key for record in wire.disks[number].kept().records}


def test_voter_without_room_stores_nothing_for_others_and_a_majority_goes_on() -> None:
    wire = three_voters()
    wire.give(3, lambda _: SetRoom(has_room=False))
    assert submit(wire, 1, "full").result == {"id": "full"}
    assert dropped(wire, 3) > 0
    assert [keeps(wire, number, "full") for number in (1, 2, 3)] == [True, True, False]
    assert votes(wire, 3)


def test_voter_that_has_room_again_votes_as_before() -> None:
    wire = three_voters()
    wire.give(3, lambda _: SetRoom(has_room=False))
    submit(wire, 1, "full")
    wire.give(3, lambda _: SetRoom(has_room=True))
    before = dropped(wire, 3)
    submit(wire, 1, "again")
    assert keeps(wire, 3, "again")
    assert dropped(wire, 3) == before


def test_two_of_three_voters_without_room_accept_nothing() -> None:
    wire = three_voters()
    for number in (2, 3):
        wire.give(number, lambda _: SetRoom(has_room=False))
    assert submit(wire, 1, "lost").error is not None
    assert not keeps(wire, 2, "lost")
    assert not keeps(wire, 3, "lost")
