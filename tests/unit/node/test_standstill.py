"""Too few voters: each member says so once, a submission says why, and who would bring it about is told before it leaves."""

from __future__ import annotations

from typing import Any

from mesh.core.effects import Emit
from mesh.core.events import EventKind
from mesh.node.commands import Leave
from mesh.node.config import Metadata
from mesh.node.standstill import LASTING_S, Standstill
from mesh.tasks.commands import Submit
from tests.unit.node.neighbours import Neighbours
from tests.unit.node.talk import job

NOBODY_RUNS = Metadata(slots=0)
LOST = "2 of 3 voters are away (host-2, host-3): nothing can be stored until one returns"


def wire_of(count: int) -> Neighbours:
    wire = Neighbours()
    for number in range(1, count + 1):
        wire.begin(number, meta=NOBODY_RUNS)
        if number == 3:
            wire.run(60, lambda: all(len(registers(wire, one)["voters"]) == 3 for one in (1, 2, 3)))
    wire.run(5)
    return wire


def registers(wire: Neighbours, number: int) -> dict[str, Any]:
    found: dict[str, Any] = wire.nodes[number].view(wire.now).node["registers"]
    return found


def warnings(wire: Neighbours, number: int) -> list[str]:
    events = [effect.event for effect in wire.heard(number, Emit)]
    return [event.detail for event in events if event.kind is EventKind.WARN]


def test_every_member_says_once_that_too_few_voters_are_here_and_that_they_are_back() -> None:
    wire = wire_of(4)
    assert "host-4" not in registers(wire, 4)["voters"]
    for number in (1, 4):
        warnings(wire, number)
    wire.away = {2}
    wire.run(20)
    assert [warnings(wire, number) for number in (1, 4)] == [[], []]
    assert registers(wire, 4)["standstill"] == ""
    wire.away = {2, 3}
    wire.run(60)
    assert [warnings(wire, number) for number in (1, 4)] == [[LOST], [LOST]]
    assert registers(wire, 4)["standstill"] == LOST
    assert registers(wire, 4)["voters_away"] == ["host-2", "host-3"]
    wire.away = set()
    wire.run(60)
    for number in (1, 4):
        (text,) = warnings(wire, number)
        assert "enough voters are here again" in text
        assert registers(wire, number)["standstill"] == ""


def test_submission_says_which_voters_are_away() -> None:
    wire = wire_of(3)
    wire.away = {2, 3}
    wire.run(60, lambda: registers(wire, 1)["standstill"])
    command = wire.give(1, lambda number: Submit(number, job("t")))
    wire.run(20, lambda: wire.answer(command))
    answer = wire.answer(command)
    assert answer is not None
    assert str(answer.error).startswith(LOST)


def test_voter_without_which_no_majority_is_left_says_what_its_leaving_means() -> None:
    wire = wire_of(4)
    assert [registers(wire, number)["parting"] for number in (1, 2, 3, 4)] == [""] * 4
    wire.away = {3}
    wire.run(60, lambda: registers(wire, 1)["parting"])
    assert registers(wire, 1)["parting"] == (
        "once this node has left, 2 of 3 voters are away (host-1, host-3): nothing can be stored until one returns, "
        "and no task starts or ends"
    )
    assert registers(wire, 4)["parting"] == ""


def test_only_voter_of_several_members_says_so_and_the_last_member_does_not() -> None:
    wire = wire_of(2)
    assert "the only voter is away (host-1)" in str(registers(wire, 1)["parting"])
    assert registers(wire, 2)["parting"] == ""
    wire.give(2, lambda _: Leave("enough"))
    wire.run(10, lambda: not registers(wire, 1)["parting"])
    assert registers(wire, 1)["parting"] == ""


def test_what_lasts_for_a_moment_is_not_said() -> None:
    standstill = Standstill()
    assert standstill.step(0.0, LOST) == []
    assert standstill.step(LASTING_S - 0.1, "") == []
    assert standstill.step(LASTING_S, LOST) == []
    assert standstill.next_deadline() == 2 * LASTING_S
    assert [emit.event.detail for emit in standstill.step(2 * LASTING_S, LOST)] == [LOST]
    assert standstill.step(9.0, LOST) == []
    assert standstill.next_deadline() is None
