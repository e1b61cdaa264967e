"""A voter whose disk has no room: what it would have to store is dropped, the others are a majority, and it lives on."""

from __future__ import annotations

from mesh.core.effects import Answer
from mesh.node.commands import SetRoom
from mesh.node.config import Metadata
from mesh.queues.commands import SetQueue
from mesh.queues.settings import Strategy
from mesh.tasks.commands import Submit, SubmitMany
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


def alone(slots: int) -> Neighbours:
    wire = Neighbours()
    wire.begin(1, meta=Metadata(slots=slots))
    return wire


def test_only_voter_without_room_refuses_what_is_submitted_to_it_and_says_why() -> None:
    wire = alone(slots=0)
    assert submit(wire, 1, "before").result == {"id": "before"}
    wire.give(1, lambda _: SetRoom(has_room=False, lacks="1.0 MiB are free"))
    before = wire.disks[1].kept()
    began = wire.now
    for given in (
        wire.give(1, lambda number: Submit(number, job("full"))),
        wire.give(1, lambda number: SubmitMany(number, (job("full"),))),
        wire.give(1, lambda number: SetQueue(number, "thumbs", Strategy.PULL)),
    ):
        answer = wire.answer(given)
        assert answer is not None
        assert answer.result is None
        assert "nothing new can be stored" in str(answer.error)
        assert "1.0 MiB are free" in str(answer.error)
    wire.run(60)
    assert wire.now >= began + 60
    assert wire.disks[1].kept() == before
    wire.give(1, lambda _: SetRoom(has_room=True))
    assert submit(wire, 1, "after").result == {"id": "after"}


def test_only_voter_without_room_starts_nothing_and_goes_on_when_there_is_some() -> None:
    wire = alone(slots=1)
    submit(wire, 1, "first")
    submit(wire, 1, "second")
    (first,) = wire.started()[1]
    wire.give(1, lambda _: SetRoom(has_room=False))
    wire.exit(1, first.run_id)
    wire.run(60)
    assert wire.started() == {}, "what it took on before is ended, and nothing more is taken on"
    counts = wire.nodes[1].view(wire.now).task_counts
    assert (counts["done"], counts["ready"]) == (1, 1)
    wire.give(1, lambda _: SetRoom(has_room=True))
    wire.run(60, wire.started)
    assert wire.nodes[1].view(wire.now).task_counts["leased"] == 1


def test_voter_without_room_submits_to_the_others_and_stores_nothing_itself() -> None:
    wire = three_voters()
    wire.give(3, lambda _: SetRoom(has_room=False))
    for number in range(12):
        assert submit(wire, 3, f"t{number}").result == {"id": f"t{number}"}
        assert keeps(wire, 1, f"t{number}")
        assert not keeps(wire, 3, f"t{number}")


def test_voter_without_room_whose_vote_is_needed_refuses_at_once() -> None:
    wire = three_voters()
    wire.away = {2}
    wire.run(30)
    wire.give(3, lambda _: SetRoom(has_room=False, lacks="1.0 MiB are free"))
    began = wire.now
    assert "1.0 MiB are free" in str(submit(wire, 3, "t").error)
    assert wire.now == began


def test_only_voter_without_room_still_asks_others_to_vote() -> None:
    wire = alone(slots=0)
    wire.give(1, lambda _: SetRoom(has_room=False))
    for number in (2, 3):
        wire.begin(number, meta=NOBODY_RUNS)
    wire.run(60, lambda: all(votes(wire, number) for number in (1, 2, 3)))
    assert submit(wire, 1, "full").result == {"id": "full"}
