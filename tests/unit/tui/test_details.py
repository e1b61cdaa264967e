"""Pages of details: why a member died, how a task went; and the cursor, the filter and the pause on the screen."""

from __future__ import annotations

from datetime import UTC

import pytest
from rich.cells import cell_len

from mesh.tui.board import Board
from mesh.tui.cells import Line
from mesh.tui.look import Look
from mesh.tui.member_page import member_page
from mesh.tui.pane import Sorting
from mesh.tui.screen import Screen
from tests.unit.tui.boards import (
    AT,
    after,
    board_of,
    cursor_line,
    event_json,
    failed_task,
    lines_of,
    member_json,
    page,
    small_board,
    task_json,
    text_of,
    view_json,
)

EVIDENCE = ["no refutation within 2.5 s", "no answer to a ping within 0.5 s", "no answer over TCP"]


def board_with_a_death() -> Board:
    dead = member_json(3, state="dead", cause="silent", since=AT - 20, used=None, load=None)
    board = board_of([member_json(1), member_json(2, used=4), dead])
    id_ = {"member_id": f"{3:016x}"}
    board.fold({"event": event_json("suspect", "n3", 23, evidence=EVIDENCE[1:], **id_)})
    board.fold(
        {"event": event_json("dead", "n3", 20, cause="silent", evidence=EVIDENCE, **id_)},
    )
    return board


def test_list_itself_says_why_a_member_died() -> None:
    row = next(line for line in text_of(board_with_a_death(), 160, 30) if "✗ dead" in line)
    assert "stopped answering: no refutation within 2.5 s; no answer to a ping" in row


def test_where_room_is_short_the_evidence_goes_before_what_the_state_says() -> None:
    row = next(line for line in text_of(board_with_a_death(), 80, 24) if "✗ dead" in line)
    assert "20s no refutation within 2.5 s; no answer to …" in row


def test_page_of_a_dead_member_says_why_with_all_evidence() -> None:
    text = page(board_with_a_death(), "enter")
    assert "[member n3]" in text
    assert "It stopped answering, and no other member got through to it" in text
    for piece in EVIDENCE:
        assert f"· {piece}" in text
    for fact in ("session     7", "incarnation 1", "zone=eu", "class       general"):
        assert fact in text


def test_the_page_of_a_member_that_takes_no_work_says_why() -> None:
    told = {"availability": "unfit", "availability_why": "its health check fails: exit code 3"}
    text = page(board_of([member_json(1), member_json(2) | told]), "down", "enter")
    assert "│ unfit: its health check fails: exit code 3 " in text
    assert (
        "unfit"
        not in page(board_of([member_json(1) | told | {"state": "dead"}]), "enter").splitlines()[6]
    )


def test_own_page_names_the_process() -> None:
    node = dict(view_json([])["node"], pid=4711)  # type: ignore[call-overload]  # a map it is
    board = board_of([member_json(1), member_json(2)], node=node)
    assert "process     4711" in page(board, "enter")
    assert "process" not in page(board, "down", "enter")


def test_evidence_of_the_suspicion_stands_below_that_of_the_death() -> None:
    board = board_of([member_json(3, state="dead", cause="silent")])
    board.fold({"event": event_json("suspect", "n3", 90, evidence=["an old story"])})
    board.fold({"event": event_json("refute", "n3", 80)})
    board.fold({"event": event_json("suspect", "n3", 23, evidence=EVIDENCE[1:])})
    board.fold({"event": event_json("dead", "n3", 20, evidence=["declared dead by n2"])})
    why = page(board, "enter").partition("WHY")[2].partition("WHAT IT IS")[0]
    places = [why.index(piece) for piece in ("declared dead by n2", *EVIDENCE[1:])]
    assert places == sorted(places)
    assert "an old story" not in why


def test_page_tells_only_the_events_of_its_member() -> None:
    board = board_with_a_death()
    board.fold({"event": event_json("join", "n2", 1)})
    text = page(board, "enter", "end")
    assert "WHAT HAPPENED TO IT" in text
    assert "met n2" not in text
    assert "saw n3 dead" in text


def test_death_of_which_no_evidence_is_held_says_so() -> None:
    board = board_of([member_json(3, state="dead", cause="crashed")])
    assert "this node remembers no evidence of its own" in page(board, "enter")
    assert "its process broke off" in page(board)


def test_verdict_of_an_earlier_life_does_not_explain_a_later_state() -> None:
    board = board_with_a_death()
    board.fold({"view": view_json([member_json(3, state="left", since=AT)])})
    assert board.verdict(board.members[0]) is None


def test_page_of_a_living_member_shows_what_runs_there() -> None:
    tasks = [task_json("t1", "leased", owner="n2"), task_json("t2", "leased", owner="n1")]
    board = board_of([member_json(1), member_json(2, used=3)], tasks=tasks)
    text = page(board, "down", "enter", "page_down")
    assert "▸ t1" in text
    assert "t2" not in text
    assert "▲ the busiest" in page(board, "down", "enter")
    assert "▮▮▮▮▮▮▮▮▯▯ 3 of 4 taken" in page(board, "down", "enter")


def test_long_lists_on_a_page_say_that_they_go_on() -> None:
    tasks = [task_json(f"t{n}", "leased", owner="n1") for n in range(23)]
    board = board_of([member_json(1)], tasks=tasks)
    for age_s in range(101):
        board.fold({"event": event_json("update", "n1", age_s)})
    lines = [piece_text(line) for line in member_page(board, board.members[0], 76, UTC)]
    assert "… 3 more" in lines
    assert sum("saw n1 change" in line for line in lines) == 100
    assert lines[-1] == "…"


def piece_text(line: Line) -> str:
    return "".join(piece.text for piece in line)


def test_event_opens_what_it_is_about() -> None:
    board = board_with_a_death()
    text = page(board, "3", "enter")
    assert "n1 saw n3 dead (silent)" in text
    assert "It stopped answering" in text


def test_page_of_a_member_that_was_forgotten_while_it_was_open_says_what_happened_to_it() -> None:
    board = board_with_a_death()
    look = after(board, "enter")
    forgotten = event_json("forget", "n3", 1, member_id=f"{3:016x}", evidence=["asked for at n2"])
    board.fold({"event": forgotten})
    board.fold({"view": view_json([member_json(1), member_json(2, used=4)])})
    text = "\n".join(text_of(board, 80, 24, look))
    assert "[member n3]" in text
    assert "this node does not know this member any more" in text
    assert "forgot n3" in text
    assert "· asked for at n2" in text
    assert f"· {EVIDENCE[0]}" in text


def test_page_of_what_has_gone_says_so() -> None:
    board = board_with_a_death()
    look = after(board, "enter")
    board.fold({"view": view_json([member_json(1)])})
    assert any("does not know this member any more" in x for x in text_of(board, 80, 24, look))


@pytest.mark.parametrize("size", [(36, 8), (80, 24), (200, 60)])
@pytest.mark.parametrize("pane", "1234")
def test_every_page_fits_every_size(size: tuple[int, int], pane: str) -> None:
    wide = "デ" * 60
    board = board_of(
        [member_json(3, name=wide, state="dead", cause="silent", labels={wide: wide})],
        tasks=[failed_task() | {"id": wide, "argv": [wide]}],
    )
    board.fold({"event": event_json("dead", wide, 1, evidence=[wide, wide])})
    for keys in ([pane, "enter"], [pane, "enter", "end"], [pane, "z"], [pane, "/", "x"]):
        look = Look(has_cursor=True)
        for key in keys:
            look = Screen(board, *size, look, UTC).press(key)
        screen = Screen(board, *size, look, UTC)
        assert len(lines_of(screen)) == size[1]

        assert {cell_len(line) for line in lines_of(screen)} == {size[0]}


def test_cursor_stays_on_its_member_when_rows_move() -> None:
    board = board_of([member_json(n) for n in range(1, 17)])
    look = after(board, "down", "down")
    assert cursor_line(board, look).startswith("│ n3 ")
    board.fold({"view": view_json([member_json(n) for n in range(3, 17)])})
    assert cursor_line(board, look).startswith("│ n3 ")
    rows = [member_json(n, load=n / 10) for n in range(1, 17)]
    board.fold({"view": view_json(rows)})
    assert cursor_line(board, after(board, "s", look=look)).startswith("│ n3 ")


def test_scrolled_events_stay_put_when_new_ones_come() -> None:
    board = board_of([member_json(1)])
    for number in range(30):
        board.fold({"event": event_json("join", f"old{number}", 100 - number)})
    look = after(board, "3", *["down"] * 12)
    before = [line for line in text_of(board, 80, 24, look) if "met old" in line]
    for number in range(5):
        board.fold({"event": event_json("join", f"new{number}", 5 - number)})
    assert [line for line in text_of(board, 80, 24, look) if "met old" in line] == before
    assert any("met new4" in line for line in text_of(board, 80, 24, Look()))


def test_pane_takes_the_whole_screen_and_gives_it_back() -> None:
    board = small_board()
    text = page(board, "3", "z")
    assert "[events]" in text
    assert "members" not in text
    assert "members" in page(board, "3", "z", "z")


def test_filter_shows_what_it_leaves_and_what_is_typed() -> None:
    board = board_of([member_json(n, state="dead" if n == 4 else "alive") for n in range(1, 17)])
    text = page(board, "/", *"state:dead")
    assert "filter members /state:dead▏" in text
    assert "─[members]─ /state:dead  1 of 16 ─" in text
    assert "n4 " in text
    assert "n5 " not in text
    assert "no member matches" in page(board, "/", *"nobody")


def test_sorted_column_carries_an_arrow() -> None:
    board = board_of([member_json(n) for n in range(1, 9)])
    look = Look(sortings=(Sorting(order=1), Sorting(), Sorting(), Sorting()))
    assert "LOAD▼" in "".join(text_of(board, 80, 24, look))
    look = Look(sortings=(Sorting(order=4), Sorting(), Sorting(), Sorting()))
    assert "NAME▲" in "".join(text_of(board, 80, 24, look))


def test_footer_says_how_the_list_is_sorted() -> None:
    board = small_board()
    for keys, words in (("", "sorted by state"), ("s", "sorted by load"), ("sS", "load, reversed")):
        look = after(board, *keys)
        assert words in text_of(board, 200, 24, look)[-1]


def test_snapshot_does_not_change_while_the_board_goes_on() -> None:
    board = small_board()
    frozen = board.snapshot()
    before = text_of(frozen, 80, 24)
    board.fold({"event": event_json("dead", "n3", 1, evidence=["another story"])})
    board.fold({"view": view_json([member_json(9)], at=AT + 60)})
    assert text_of(frozen, 80, 24) == before
    assert text_of(board, 80, 24) != before


def test_page_of_a_frozen_picture_offers_to_go_on() -> None:
    board = small_board()
    assert "p pause" in text_of(board, 80, 24, after(board, "enter"))[-1]
    assert "p go on" in text_of(board, 80, 24, after(board, "p", "enter"))[-1]


def test_pause_is_said_on_top() -> None:
    assert "PAUSED" in lines_of(Screen(small_board(), 80, 24, paused="PAUSED at 08:00:00"))[0]


@pytest.mark.parametrize(
    ("health", "words"),
    [(0, "healthy"), (2, "strained 2/8"), (8, "overloaded 8/8"), (None, "load 130%")],
)
def test_own_health_is_said_in_words(health: int | None, words: str) -> None:
    node = dict(view_json([])["node"], health=health)  # type: ignore[call-overload]  # a map it is
    board = board_of([member_json(1), member_json(2, used=4, load=1.3)], node=node)
    assert text_of(board, 80, 24)[1].rstrip().endswith(words)


def test_idle_mesh_has_no_busiest_member() -> None:
    board = board_of([member_json(n, used=0, load=0.0) for n in (1, 2)])
    text = "".join(text_of(board, 80, 24))
    assert "nobody is busy" in text
    assert "▲" not in text


def test_graph_of_a_load_beyond_telling_is_full() -> None:
    board = Board()
    for second in range(30):
        board.fold({"view": view_json([member_json(1, load=2.55)], at=AT + second)})
    high = text_of(board, 200, 60)
    assert "load >255% here  last 28s, full at 255%" in high[2]
    assert "███████" in high[3]


def test_high_screen_has_graphs_and_a_usual_one_sparklines() -> None:
    board = Board()
    for second in range(30):
        sent = {"datagrams": 2 * second}
        node = dict(view_json([])["node"], sent=sent, received=sent)  # type: ignore[call-overload]  # a map it is
        counts = {"done": second}
        rows = [member_json(1, load=0.5)]
        board.fold(
            {"view": view_json(rows, node=node, at=AT + second, task_counts=counts)},
        )
    assert "↑ 2.0 ▃▃▃▃▃▃  ↓ 2.0 packets/s ▃▃▃▃▃▃  ✓ 1.0 tasks/s ██████" in text_of(board, 80, 24)[2]
    high = text_of(board, 200, 60)
    assert "↑ 2.0 packets/s out  last 28s, full at 5 " in high[2]
    assert "load 50% here  last 28s, full at 100%" in high[2]
    assert "█" in high[5]
