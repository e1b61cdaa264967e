"""Contests on the screen: how they go on the whole, each of them in a row, and its page in words."""

from __future__ import annotations

import re
from datetime import UTC

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style

from mesh.tui.board import Board
from mesh.tui.contest_rows import LATEST_MAX, ContestRow, Contests
from mesh.tui.contests_pane import head_line
from mesh.tui.filters import CONTEST_FIELDS, CONTEST_WORDS, matching, slip
from mesh.tui.look import CONTESTS, Look
from mesh.tui.orders import CONTEST_ORDERS
from mesh.tui.painter import Painter
from mesh.tui.palette import CONTEST_MARKS, DIM, GREEN, YELLOW
from mesh.tui.screen import Screen
from tests.unit.tui.boards import (
    AT,
    after,
    board_of,
    contest_json,
    contests_json,
    cursor_line,
    lines_of,
    member_json,
    page,
    small_board,
    task_json,
    text_of,
    view_json,
)

ADVICE = (
    "76% of contests end in a grant within their first window, 85 to 95 % are expected, with 1.2 bids in each: "
    "bids or grants are lost or late, so look for packet loss and for hosts that are overloaded"
)


def bid(member: str, score: float, after_ms: float) -> dict[str, object]:
    return {
        "after_ms": after_ms,
        "member": member,
        "score": score,
        "parts": {"cpu": score, "free_slots": 0.5},
        "declined": None,
    }


LATEST = [
    contest_json(1, under_way=True, winner=None, after_ms=None, said=[]),
    contest_json(2),
    contest_json(3, said=[bid("n2", 0.81, 1.5), bid("n3", 0.77, 1.9), bid("n1", 0.6, 2.2)]),
    contest_json(4, rounds=2, first_window=False, after_ms=3_110.5),
    contest_json(5, rounds=3, first_window=False, winner=None, after_ms=None, said=[], attempt=2),
]


def board_with(latest: list[dict[str, object]] | None = None, **changes: object) -> Board:
    members = [member_json(number) for number in (1, 2, 3)]
    told = contests_json(LATEST if latest is None else latest, **changes)
    return board_of(members, contests=told)


def none_held() -> dict[str, object]:
    nothing = {"bids_mean": None, "success": None, "window_ms": None}
    return contests_json([], held=0, won=0, **nothing)


PANE_80X24 = """\
├─[contests]─ 5 held here ───────────────────────────────────── key 3: events ─┤
│ 1.18 bids/contest ▁▂▆▂  91% in first window  window 4.2ms  118 of 120 won    │
│ WHEN     TASK, ATTEMPT  CALLED    BIDS, DECLINES         WINNER        AFTER │
│ 07:59:59 k3j5m7p9q0r1 1 3: n1 n2… -                      ▸ open            - │
│ 07:59:58 k3j5m7p9q0r2 1 3: n1 n2… n1 busy, n2 0.81       ✓ n2          5.3ms │
│ 07:59:57 k3j5m7p9q0r3 1 3: n1 n2… n2 0.81, n3 0.77, n1 … ✓ n2          5.3ms │
│ 07:59:56 k3j5m7p9q0r4 1 3: n1 n2… n1 busy, n2 0.81       ◐ n2 round 2   3.1s │
│ 07:59:55 k3j5m7p9q0r5 2 3: n1 n2… -                      ✗ nobody          - │
│                                                                              │
╰──────────────────────────────────────────────────────────────────────────────╯
"""

PANE_200X60 = """\
│ 1.18 bids/contest ▁▂▆▂  91% in first window  window 4.2ms  118 of 120 won  window factor 2.31
│ WHEN      TASK, ATTEMPT   CALLED       BIDS, DECLINES             WINNER         AFTER  WINDOW  GROUNDS OF THE WINNER'S BID
│ 07:59:59  k3j5m7p9q0r1 1  3: n1 n2 n3  -                          ▸ open             -   4.2ms
│ 07:59:58  k3j5m7p9q0r2 1  3: n1 n2 n3  n1 busy, n2 0.81           ✓ n2           5.3ms   4.2ms  processors idle now 0.75, free slots 1.00
│ 07:59:57  k3j5m7p9q0r3 1  3: n1 n2 n3  n2 0.81, n3 0.77, n1 0.60  ✓ n2           5.3ms   4.2ms  processors idle now 0.81, free slots 0.50
│ 07:59:56  k3j5m7p9q0r4 1  3: n1 n2 n3  n1 busy, n2 0.81           ◐ n2 round 2    3.1s   4.2ms  processors idle now 0.75, free slots 1.00
│ 07:59:55  k3j5m7p9q0r5 2  3: n1 n2 n3  -                          ✗ nobody           -   4.2ms
"""


def test_contests_at_80x24_take_the_place_of_the_events_that_they_share() -> None:
    board = board_with()
    lines = text_of(board, 80, 24, after(board, "4"))
    assert lines[13:23] == PANE_80X24.splitlines()
    assert "─ members ─" in lines[3]
    assert any("─ tasks " in line for line in lines)


def test_contests_at_200x60_have_their_own_place_and_more_columns() -> None:
    lines = [line.rstrip("│ ") for line in text_of(board_with(), 200, 60)]
    assert lines[-2 - 7 : -2] == PANE_200X60.splitlines()
    title = lines[-2 - 8]
    assert "├─ contests ─ 5 held here ─" in title
    assert title[200 * 11 // 20 - 1] == "┴"
    assert any("─ events ─" in line for line in lines)
    assert not any("key 4" in line for line in lines)


def test_panes_keep_their_heights_while_a_filter_is_typed() -> None:
    board = board_with()
    look = after(board, "4")
    before = [line[0] for line in text_of(board, 200, 60, look)]
    assert [
        line[0] for line in text_of(board, 200, 60, after(board, "/", "x", look=look))
    ] == before


def test_frame_of_the_events_says_which_key_shows_the_contests() -> None:
    board = board_with()
    text = "\n".join(text_of(board, 80, 24))
    assert "─ key 4: contests ─┤" in text.replace(" key", "─ key").replace("──", "─")
    assert "bids/contest" not in text
    assert "key 4" not in "\n".join(text_of(small_board(), 80, 24))


@pytest.mark.parametrize("size", [(36, 8), (80, 24), (139, 17), (140, 18), (140, 44), (200, 60)])
@pytest.mark.parametrize("keys", ["4", "4z", "4G", "4\r", "1", "4s", "4/x", "?"])
def test_pane_and_page_fit_every_size(size: tuple[int, int], keys: str) -> None:
    wide = "デ" * 60
    odd = contest_json(6, task_id=wide, winner=wide, called=[{"member": wide, "expected": 9e18}])
    for board in (board_with([*LATEST, odd], advice=ADVICE), board_of([], contests=none_held())):
        look = Look(has_cursor=True)
        for key in keys:
            look = Screen(board, *size, look, UTC).press("enter" if key == "\r" else key)
        lines = lines_of(Screen(board, *size, look, UTC))
        assert [cell_len(line) for line in lines] == [size[0]] * size[1]


def test_node_that_held_none_says_so_and_what_makes_them() -> None:
    board = board_of([], contests=none_held())
    said = "no contest held here yet; mesh queue set NAME --strategy contest makes them"
    narrow = text_of(board, 80, 24, Look(focus=CONTESTS))
    assert sum(said in line for line in narrow) == 1
    assert "bids/contest" not in "".join(narrow)
    assert f"{said}, and so does any task whose home" in "".join(text_of(board, 200, 60))


def test_node_of_an_earlier_version_is_not_taken_for_one_without_contests() -> None:
    board = board_of([member_json(1)])
    assert not board.contests.is_told
    text = "".join(text_of(board, 80, 24, Look(focus=CONTESTS)))
    assert "this node does not tell of contests: its version is older" in text
    assert "contests" not in "".join(text_of(board, 200, 60))


def test_advice_stands_in_full_above_the_rows() -> None:
    lines = text_of(board_with(advice=ADVICE), 80, 24, Look(focus=CONTESTS))
    first = next(number for number, line in enumerate(lines) if "76% of" in line)
    said = " ".join(line.strip("│ ") for line in lines[first : first + 3])
    assert said == ADVICE
    assert "WHEN" in lines[first + 3]
    assert "07:59:59" in lines[first + 4]


@pytest.mark.parametrize(
    ("bids_mean", "success", "said", "style"),
    [
        (1.1, 0.85, "1.10 bids/contest 85% in first window", GREEN),
        (1.3, 0.95, "1.30 bids/contest 95% in first window", GREEN),
        (1.31, 0.96, "1.31▲ bids/contest 96%▲ in first window", YELLOW),
        (1.09, 0.84, "1.09▼ bids/contest 84%▼ in first window", YELLOW),
        (None, None, "- bids/contest - in first window", DIM),
    ],
)
def test_figure_is_green_where_it_should_be_and_marked_where_it_is_not(
    bids_mean: float | None, success: float | None, said: str, style: Style
) -> None:
    told = contests_json([], bids_mean=bids_mean, success=success)
    line = head_line(Contests.read(told), 80)
    text = " ".join("".join(piece.text for piece in line).split())
    assert text.startswith(said)
    words = said.split()
    figures = {words[0], words[2]}
    assert {piece.style for piece in line if piece.text in figures} == {style}


def test_head_gives_up_what_does_not_fit_from_its_end() -> None:
    contests = Contests.read(contests_json(LATEST))
    texts = ["".join(piece.text for piece in head_line(contests, width)) for width in (40, 60, 80)]
    assert texts[0] == "1.18 bids/contest  91% in first window"
    assert "window 4.2ms" in texts[1]
    assert "won" not in texts[1]
    assert "118 of 120 won" in texts[2]
    assert all(len(text) <= width for text, width in zip(texts, (40, 60, 80), strict=True))


def test_nobody_and_a_second_round_are_told_by_colour_sign_and_word() -> None:
    board = board_with()
    lines = Screen(board, 80, 24, Look(focus=CONTESTS), UTC).render()
    for task, outcome, said in (("r4", "late", "◐ n2 round 2"), ("r5", "nobody", "✗ nobody")):
        line = next(x for x in lines if any(task in piece.text for piece in x))
        style = CONTEST_MARKS[outcome].style
        assert next(piece.style for piece in line if task in piece.text) == style
        assert said in "".join(piece.text for piece in line)
    usual = next(x for x in lines if any("q0r2" in piece.text for piece in x))
    assert next(piece.style for piece in usual if "q0r2" in piece.text) != YELLOW


def test_without_colours_and_without_unicode_the_pane_says_the_same() -> None:
    lines = Screen(board_with(success=0.7), 80, 24, Look(focus=CONTESTS), UTC).render()
    drawn = Painter("ascii", is_colorful=False).paint(lines).decode("ascii")
    assert "70%v\x1b[2m in first window" in drawn
    assert "x nobody" in drawn
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", drawn)  # no colour


def test_enter_opens_the_page_with_every_score_in_words() -> None:
    board = board_with()
    text = page(board, "4", "down", "enter")
    for said in (
        "─[contest for k3j5m7p9q0r2]─",
        "k3j5m7p9q0r2  ✓ n2  attempt 1  granted after 5.3ms",
        "n1 called for attempt 1: n1 (0.92), n2 (0.80), n3 (0.50)",
        "· n1 declined after 0.4 ms: no slot was free any more",
        "· n2 bid 0.81 after 1.5 ms (processors idle now 0.75, free slots 1.00)",
        "· n3 said nothing: a fitter one was heard first, or its word was lost",
        "· granted to n2, seen 5.3 ms after the call",
        "n1      ▮▮▮▮▮▮▮▮▮▯ 0.92  declined: busy   after 0.40ms",
        "n2      ▮▮▮▮▮▮▮▮▯▯ 0.80  ▮▮▮▮▮▮▮▮▯▯ 0.81  after 1.5ms",
        "n3      ▮▮▮▮▮▯▯▯▯▯ 0.50  silent",
    ):
        assert said in text
    assert "round 2" in page(board, "4", *["down"] * 3, "enter")
    assert "nobody took it" in page(board, "4", *["down"] * 4, "enter")
    assert "· it is under way" in page(board, "4", "enter")
    assert "[contest for k3j5m7p9q0r3]" in page(board, "4", "down", "enter", "right")


def test_page_says_how_the_task_is_now_where_this_node_knows_it() -> None:
    board = board_of([], tasks=[task_json("k3j5m7p9q0r2", "done")], contests=contests_json(LATEST))
    text = page(board, "4", "down", "enter", "end")
    assert "task now    ✓ done" in text
    assert "command     gzip -9 'a file'" in text
    assert "task now    -" in page(board, "4", "down", "down", "enter", "end")


def test_page_of_a_contest_that_is_not_told_any_more_says_so() -> None:
    board = board_with()
    look = after(board, "4", "down", "enter")
    board.fold({"view": view_json([], contests=none_held())})
    assert "does not know this contest any more" in "".join(text_of(board, 80, 24, look))


def test_page_of_a_task_tells_its_latest_contest() -> None:
    latest = [contest_json(1, task_id="t1", at=AT - 7, attempt=2), contest_json(2, task_id="t1")]
    tasks = [task_json("t1", "leased"), task_json("t2", "leased", started=AT - 80)]
    board = board_of([], tasks=tasks, contests=contests_json(latest))
    text = page(board, "2", "enter", "page_down")
    assert "ITS LATEST CONTEST, AT 07:59:53" in text
    assert "n1 called for attempt 2: n1 (0.92)" in text
    assert "called for attempt 1" not in text
    assert "CONTEST" not in page(board, "2", "down", "enter", "page_down")


def test_scrolled_contests_stand_still_when_new_ones_come() -> None:
    board = board_with([contest_json(number) for number in range(20, 50)])
    look = after(board, "4", *["down"] * 12)
    marked = cursor_line(board, look)
    assert "k3j5m7p9q0r32" in marked
    newer = [contest_json(number) for number in range(10, 50)]
    board.fold({"view": view_json([], contests=contests_json(newer))})
    assert cursor_line(board, look) == marked
    assert "k3j5m7p9q0r10" in "".join(text_of(board, 80, 24, after(board, "g", look=look)))


def test_picture_that_is_frozen_keeps_its_contests() -> None:
    board = board_with()
    frozen = board.snapshot()
    before = text_of(frozen, 80, 24, Look(focus=CONTESTS))
    board.fold({"view": view_json([], contests=none_held())})
    assert text_of(frozen, 80, 24, Look(focus=CONTESTS)) == before


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("state:late", "4"),
        ("state:nobody", "5"),
        ("state:open", "1"),
        ("state:granted", "2 3"),
        ("bid:n3", "3"),
        ("declined:busy", "2 4"),
        ("declined:n1 !state:late", "2"),
        ("winner:n2", "2 3 4"),
        ("task:q0r5", "5"),
        ("attempt:2", "5"),
        ("round:3", "5"),
        ("called:n9", ""),
    ],
)
def test_filter_leaves_the_contests_that_it_describes(line: str, found: str) -> None:
    rows = matching(Contests.read(contests_json(LATEST)).rows, CONTEST_FIELDS, line)
    assert " ".join(row.task_id[-1] for row in rows) == found


def test_slip_in_the_filter_of_contests_is_told() -> None:
    assert "open, granted, late, nobody" in slip("state:won", CONTEST_FIELDS, CONTEST_WORDS)
    assert "no contest matches" in page(board_with(), "4", "/", *"zzz")
    assert "filter contests /zzz" in page(board_with(), "4", "/", *"zzz")


@pytest.mark.parametrize(
    ("order", "found", "backwards"),
    [
        ("time", "1 2 3 4 5", "5 4 3 2 1"),
        ("bids", "3 2 4 1 5", "1 5 2 4 3"),
        ("time to grant", "4 2 3 1 5", "2 3 4 1 5"),
        ("winner", "2 3 4 1 5", "2 3 4 1 5"),
    ],
)
def test_contests_sort_by_a_column(order: str, found: str, backwards: str) -> None:
    rows = Contests.read(contests_json(LATEST)).rows
    chosen = next(one for one in CONTEST_ORDERS if one.name == order)
    for is_reversed, wanted in ((False, found), (True, backwards)):
        arranged = chosen.arrange(rows, AT, is_reversed=is_reversed)
        assert " ".join(row.task_id[-1] for row in arranged) == wanted


def test_sorting_is_seen_and_the_footer_names_it() -> None:
    board = board_with()
    lines = text_of(board, 200, 60, after(board, "4", "s", "s"))
    assert any("AFTER▼" in line for line in lines)
    assert "sorted by time to grant" in lines[-1]
    assert "reversed" in text_of(board, 200, 60, after(board, "4", "S"))[-1]


def test_contests_are_bounded_and_kept_where_they_did_not_change() -> None:
    latest = [contest_json(number) for number in range(LATEST_MAX + 9)]
    first = Contests.read(contests_json(latest))
    assert len(first.rows) == LATEST_MAX
    changed = [contest_json(0, winner="n3"), *latest[1:]]
    second = Contests.read(contests_json(changed), first.rows)
    assert second.rows[0].winner == "n3"
    assert all(a is b for a, b in zip(first.rows[1:], second.rows[1:], strict=True))


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.just("\x1b[31m"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*contests_json([]), *contest_json(1), *bid("", 0, 0), "expected"]),
            inner,
            max_size=8,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=60)
@given(told=_json, one=_json, word=_json, key=st.sampled_from(["4", "4z", "4\r", "4\rG"]))
def test_whatever_a_node_tells_of_contests_is_drawn_in_its_place(
    told: object, one: object, word: object, key: str
) -> None:
    odd = contest_json(3, said=[word, bid("n1", 0.1, 1.0)], called=[word])
    for contests in (told, contests_json([contest_json(1) | {"said": one}, odd]), {"latest": one}):
        board = board_of([member_json(1)], contests=contests)
        look = Look(has_cursor=True)
        for press in key:
            look = Screen(board, 80, 24, look, UTC).press("enter" if press == "\r" else press)
        lines = text_of(board, 80, 24, look)
        assert [cell_len(line) for line in lines] == [80] * 24
        assert all(line.isprintable() for line in lines)


def test_names_and_parts_of_a_contest_are_cleaned_and_who_has_none_is_left_out() -> None:
    said = [bid("n\x1b1", 0.5, 1.0) | {"parts": {"\x1b[2J": 0.5, "odd": "x"}}, bid("", 1.0, 2.0)]
    row = ContestRow.read(contest_json(1, said=said, called=[{"member": 3}, {}, 7]))
    assert row.called == ()
    (word,) = row.said
    assert word.member == "n\\x1b1"
    assert word.parts == (("\\x1b[2J", 0.5),)
