"""Who is the busiest, and when nobody is."""

from __future__ import annotations

from mesh.tui.busiest import Busiest, busiest
from mesh.tui.rows import MemberRow
from tests.unit.tui.boards import board_of, member_json, text_of


def members(*rows: tuple[int, float] | tuple[int, float, str]) -> list[MemberRow]:
    """Return members n1, n2, … of four slots, each given as slots taken, load, and state if not alive."""
    return [
        MemberRow.read(member_json(n, used=row[0], load=row[1], state=(*row, "alive")[2]))
        for n, row in enumerate(rows, start=1)
    ]


def name(found: Busiest) -> str:
    return f"n{int(found.key, 16)}" if found.key else f"{found.tied} tied"


def test_greater_of_slots_and_load_decides() -> None:
    assert name(busiest(members((1, 2.0), (3, 0.1)))) == "n1"
    assert name(busiest(members((1, 0.2), (3, 0.1)))) == "n2"
    assert name(busiest(members((3, 0.5), (3, 0.9)))) == "n2"


def test_on_one_host_whose_load_all_tell_slots_decide() -> None:
    assert name(busiest(members((1, 2.55), (2, 2.5), (0, 2.55)))) == "n2"


def test_equals_are_tied_whoever_looks() -> None:
    assert name(busiest(members((2, 0.5), (2, 0.45), (0, 0.1)))) == "2 tied"
    assert name(busiest(members((0, 0.61), (0, 0.6), (0, 0.58)))) == "3 tied"


def test_dead_and_idle_members_are_not_busy() -> None:
    assert busiest(members((4, 1.0, "dead"), (0, 0.1))) == Busiest()


def test_mark_stays_until_another_has_nearly_as_much_to_do() -> None:
    held = busiest(members((0, 0.8), (0, 0.6)))
    assert name(held) == "n1"
    assert name(busiest(members((0, 0.8), (0, 0.74)), held.key)) == "n1"
    assert name(busiest(members((0, 0.8), (0, 0.78)), held.key)) == "2 tied"
    assert name(busiest(members((0, 0.6), (0, 0.8)), held.key)) == "n2"


def test_members_of_one_host_that_told_its_load_at_different_times_are_tied() -> None:
    """As seen: 214 % beside 228 %, and one of three with the same 181 % that was marked before."""
    assert name(busiest(members((2, 2.14), (2, 2.28), (2, 2.28)))) == "3 tied"
    held = busiest(members((1, 1.81), (2, 1.81), (1, 1.81)))
    assert name(held) == "n2"
    assert name(busiest(members((2, 1.81), (2, 1.81), (2, 1.81)), held.key)) == "3 tied"


def test_mark_goes_to_whoever_has_more_slots_taken_where_all_loads_are_beyond_telling() -> None:
    held = busiest(members((1, 2.55), (0, 2.55)))
    assert name(held) == "n1"
    assert name(busiest(members((1, 2.55), (4, 2.55)), held.key)) == "n2"


def test_screen_says_that_members_are_tied_and_marks_none() -> None:
    board = board_of([member_json(n, used=2, load=0.5) for n in (1, 2)])
    text = "".join(text_of(board, 80, 24))
    assert "2 equally busy" in text
    assert "▲" not in text
