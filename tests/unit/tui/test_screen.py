"""The screen as text: what stands where, and that nothing ever stands outside."""

from __future__ import annotations

from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from mesh.tui.board import Board
from mesh.tui.look import Look
from mesh.tui.palette import DIM
from mesh.tui.screen import Screen
from tests.unit.tui.boards import (
    AT,
    after,
    board_of,
    event_json,
    lines_of,
    member_json,
    small_board,
    task_json,
    text_of,
    view_json,
)

SMALL_80X24 = """\
 mesh 3f9a2c1b7d0e4f55  node n1  127.0.0.1:7946                up 2h14m  v0.1.0
 ● 2 alive  ◐ 0 suspect  ✗ 1 dead     ▲ busiest n2 4/4 slots load 130%  healthy
 ↑ 2.1          ↓ 2.8 packets/s          ✓ - tasks/s          load 20%
╭─[members]─ 3 ────────────────────────────────────────────────────────────────╮
│ NAME         STATE            FOR ADDRESS           RTT SLOTS    LOAD        │
│ n3           ✗ dead silent    20s stopped answering: no ack for 3.2 s        │
│ n1 (me)      ● alive        1m00s 127.0.0.1:7946      - ▮▯▯▯ 1/4 ▮▯▯▯▯   20% │
│ n2 ▲ busiest ● alive        2m00s 127.0.0.1:7947 0.50ms ▮▮▮▮ 4/4 ▮▮▮▮▮  130% │
├─ tasks ─ 43 kept here, the latest 3 listed ──────────────────────────────────┤
│ ◌ 1 ready   ▸ 1 running   ✓ 41 done   ✗ 0 failed   ⊘ 0 cancelled   ░▒███████ │
│ ID           STATE       NODE     ATTEMPT   TIME COMMAND                     │
│ k3j5m7p9q0r1 ▸ running   n2             2  1m00s gzip -9 'a file'            │
│ k3j5m7p9q0r2 ◌ ready     -              1  1m30s gzip -9 'a file'  no slot … │
│ k3j5m7p9q0r3 ✓ done      n2             1    45s gzip -9 'a file'            │
│                                                                              │
│                                                                              │
├─ events ─ 4 ─────────────────────────────────────────────────────────────────┤
│ 07:59:40 ✗ n1 saw n3 dead (silent)  no ack for 3.2 s                         │
│ 07:59:36 ◐ n1 suspects n3  no ack for 3.2 s                                  │
│ 07:58:21 + n1 met n3                                                         │
│ 07:58:20 + n1 met n2                                                         │
│                                                                              │
╰──────────────────────────────────────────────────────────────────────────────╯
 q quit  ? help  tab pane  enter open  / find  s sort  z zoom  p pause 08:00:00
"""

SMALL_200X60_TOP = """\
 mesh 3f9a2c1b7d0e4f55  node n1  127.0.0.1:7946                                                                                                                                        up 2h14m  v0.1.0
 ● 2 alive  ◐ 0 suspect  ✗ 1 dead                                                                                                                             ▲ busiest n2 4/4 slots load 130%  healthy
 ↑ 2.1 packets/s out                              ↓ 2.8 packets/s in                               ✓ - tasks/s done                                 load 20% here



╭─[members]─ 3 ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────╮
│ NAME          STATE             FOR  ADDRESS            RTT  SLOTS     LOAD            CLASS      POOL     NODE ID           VERSION  LABELS                                                         │
│ n3            ✗ dead silent     20s  stopped answering: no ack for 3.2 s                                                                                                                             │
│ n1 (me)       ● alive         1m00s  127.0.0.1:7946       -  ▮▯▯▯ 1/4  ▮▮▯▯▯▯▯▯   20%  general    default  0000000000000001  0.1.0    zone=eu                                                        │
│ n2 ▲ busiest  ● alive         2m00s  127.0.0.1:7947  0.50ms  ▮▮▮▮ 4/4  ▮▮▮▮▮▮▮▮  130%  general    default  0000000000000002  0.1.0    zone=eu                                                        │
├─ tasks ─ 43 kept here, the latest 3 listed ────────────────────────────────────────────────────────────────┬─ events ─ 4 ────────────────────────────────────────────────────────────────────────────┤
│ ◌ 1 ready   ▸ 1 running   ✓ 41 done   ✗ 0 failed   ⊘ 0 cancelled   ░▒█████████████████████████████████████ │ 07:59:40 ✗ n1 saw n3 dead (silent)  no ack for 3.2 s                                    │
│ ID            STATE        NODE      ATTEMPT    TIME  EXIT  ORIGIN    COMMAND                              │ 07:59:36 ◐ n1 suspects n3  no ack for 3.2 s                                             │
│ k3j5m7p9q0r1  ▸ running    n2              2   1m00s     -  n1        gzip -9 'a file'                     │ 07:58:21 + n1 met n3                                                                    │
│ k3j5m7p9q0r2  ◌ ready      -               1   1m30s     -  n1        gzip -9 'a file'  no slot is free    │ 07:58:20 + n1 met n2                                                                    │
"""


def test_small_mesh_at_80x24_looks_like_this() -> None:
    assert [line.rstrip() for line in text_of(small_board(), 80, 24)] == SMALL_80X24.splitlines()


def test_small_mesh_at_200x60_stands_side_by_side_with_more_columns() -> None:
    lines = [line.rstrip() for line in text_of(small_board(), 200, 60)]
    assert lines[:16] == SMALL_200X60_TOP.splitlines()
    assert len(lines) == 60


@pytest.mark.parametrize(
    "size", [(80, 24), (200, 60), (139, 18), (140, 17), (36, 8), (20, 5), (1, 1)]
)
@pytest.mark.parametrize("count", [0, 3, 16, 300])
def test_every_line_has_exactly_the_width_of_the_screen(size: tuple[int, int], count: int) -> None:
    width, height = size
    states = ["alive", "suspect", "dead", "left"]
    members = [member_json(n, state=states[n % 4]) for n in range(1, count + 1)]
    tasks = [task_json(f"task{n}", "leased") for n in range(count)]
    lines = text_of(board_of(members, tasks=tasks), width, height)
    assert [cell_len(line) for line in lines] == [width] * height


@given(
    name=st.text(max_size=80),
    width=st.integers(1, 210),
    height=st.integers(1, 60),
)
def test_any_text_from_the_mesh_stays_in_its_place(name: str, width: int, height: int) -> None:
    member = member_json(2, name=name, address=name, pool=name, labels={name: name}, version=name)
    board = board_of([member], tasks=[task_json(name, "ready", argv=[name], waits_for=name)])
    board.fold({"event": {"kind": name, "observer": name, "detail": name, "at_ns": 1}})
    lines = text_of(board, width, height)
    assert [cell_len(line) for line in lines] == [width] * height
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("name", ["東京ノード一号", "n" * 64, "データ" * 21])
def test_wide_and_long_names_are_cut_in_their_middle(name: str) -> None:
    lines = text_of(board_of([member_json(1), member_json(2, name=name + "7")]), 80, 24)
    row = next(line for line in lines if ":7947" in line)
    assert cell_len(row) == 80
    assert "7 " in row.partition("127.")[0]
    assert row.count("│") == 2


def test_values_of_unexpected_types_are_shown_as_empty() -> None:
    member: dict[str, object] = {key: [1] for key in member_json(2)}
    task: dict[str, object] = {"id": None, "argv": "text", "result": 3, "attempt": True}
    lines = text_of(board_of([member], tasks=[task, task], running=[{}]), 80, 24)
    assert lines[5].split() == ["│", "·", "-", "│"]
    assert not any(odd in line for line in lines for odd in ("[1]", "text", "True", "None"))


def test_view_that_is_no_map_shows_an_empty_mesh() -> None:
    board = small_board()
    board.fold({"view": "no map"})
    assert any("no members yet" in line for line in text_of(board, 80, 24))


def test_frame_of_a_long_list_says_which_rows_are_seen() -> None:
    lines = text_of(board_of([member_json(n) for n in range(1, 17)]), 80, 24)
    assert "─[members]─ 1-6 of 16 ─" in lines[3]
    assert lines[10].startswith("│ n6 ")


def test_scrolling_to_the_end_shows_the_last_row_and_no_further() -> None:
    board = board_of([member_json(n) for n in range(1, 17)])
    look = after(board, "end")
    assert after(board, "down", look=look) == look
    lines = text_of(board, 80, 24, look)
    assert "─ 11-16 of 16 ─" in lines[3]
    assert lines[10].startswith("│ n16 ")


def test_shorter_list_pulls_a_scrolled_pane_back() -> None:
    look = after(board_of([member_json(n) for n in range(1, 301)]), "end")
    lines = text_of(board_of([member_json(n) for n in range(1, 4)]), 80, 24, look)
    assert lines[5].startswith("│ n1 (me)")


def test_low_terminal_gives_all_to_the_focused_pane() -> None:
    lines = text_of(small_board(), 80, 12, Look(focus=2))
    assert "─[events]─" in lines[2]
    assert "n1 saw n3 dead (silent)" in lines[3]
    assert not any("members" in line for line in lines)


def test_tiny_terminal_is_told_what_is_needed() -> None:
    assert [line.rstrip() for line in text_of(small_board(), 30, 4)] == [
        "mesh top",
        "needs 36x8, is 30x4",
        "",
        "",
    ]


def test_help_covers_the_panes_until_any_key() -> None:
    look = after(small_board(), "?")
    assert any("scroll by a page" in line for line in text_of(small_board(), 80, 24, look))
    assert after(small_board(), "x", look=look) == Look(has_cursor=True)


def test_help_fits_the_smallest_screen_that_is_usual() -> None:
    lines = text_of(small_board(), 80, 24, Look(is_help=True))
    assert not any("…" in line for line in lines)
    assert any("any key closes it" in line for line in lines)
    assert any("overloaded" in line for line in lines)


def test_help_that_does_not_fit_scrolls_and_any_other_key_closes_it() -> None:
    look = Look(is_help=True)
    seen = []
    for _ in range(40):
        screen = Screen(small_board(), 80, 12, look, UTC)
        seen += lines_of(screen)
        look = screen.press("down")
    assert look.is_help
    for said in ("quit; the node stays", "any key closes it", "overloaded", "line 1-"):
        assert any(said in line for line in seen)
    assert Screen(small_board(), 80, 12, look, UTC).press("x") == Look()
    assert Screen(small_board(), 80, 24, Look(is_help=True), UTC).press("down") == Look()


def test_what_an_event_tells_is_as_wide_as_there_is_room_for() -> None:
    detail = "x" * 300 + " end"
    board = small_board()
    board.fold({"event": event_json("warn", "", 1, detail=detail)})
    look = after(board, "3", "z")
    assert any("x end" in line for line in text_of(board, 400, 24, look))


def test_scheduled_tasks_are_counted_where_there_are_some() -> None:
    tasks = [task_json("later", "scheduled", started=None, not_before=AT + 60, owner=None)]
    board = board_of([], tasks=tasks, task_counts={"scheduled": 1})
    text = "\n".join(text_of(board, 120, 24))
    assert "◇ 1 scheduled   ◌ 0 ready" in text
    assert "◇ scheduled  - " in text
    assert "scheduled" not in "\n".join(text_of(small_board(), 120, 24))


def test_screen_that_is_joined_to_its_node_says_what_ctrl_c_does() -> None:
    board = small_board()
    own = Screen(board, 80, 24, Look(is_help=True), is_joined=True)
    assert any("Ctrl-C      leave the mesh: end the node" in line for line in lines_of(own))
    assert not any("…" in line for line in lines_of(own))
    assert "q close  Ctrl-C leave" in lines_of(own)[-1]
    other = text_of(board, 80, 24, Look(is_help=True))
    assert any("q  Ctrl-C   quit; the node stays" in line for line in other)


def test_gone_node_leaves_its_last_view_greyed_under_a_banner() -> None:
    board = small_board()
    board.mark_gone("it closed the connection")
    lines = Screen(board, 80, 24, gone_s=12.3).render()
    banner = "".join(piece.text for piece in lines[0])
    assert banner.startswith(" node n1 gone, trying again (12s): it closed the connection")
    assert {piece.style for line in lines[3:-1] for piece in line} == {DIM}


def test_a_view_ends_the_banner() -> None:
    board = small_board()
    board.mark_gone("it is silent")
    board.fold({"view": {"at": AT}})
    assert not board.gone


def test_board_without_a_view_says_that_it_waits() -> None:
    assert "waiting for the first view" in text_of(Board(), 80, 24)[0]


def test_seeking_node_says_so_and_has_no_mesh_yet() -> None:
    node = {"name": "n1", "mesh_id": "", "phase": "seeking", "address": "127.0.0.1:1"}
    head = text_of(board_of([], node=node), 80, 24)[0]
    assert "mesh none yet" in head
    assert "seeking" in head


def test_every_state_has_a_word_and_a_symbol_beside_its_colour() -> None:
    members = [
        member_json(n, state=state)
        for n, state in enumerate(["alive", "suspect", "dead", "left"], start=1)
    ]
    text = "\n".join(text_of(board_of(members), 80, 24)[5:9])
    for words in ("● alive", "◐ suspect", "✗ dead", "○ left"):
        assert words in text


def test_load_is_told_in_per_cent_and_as_more_where_a_member_tells_no_more() -> None:
    board = board_of([member_json(1, load=0.5), member_json(2, load=2.55, used=4)])
    text = "\n".join(text_of(board, 80, 24))
    assert "  50%" in text
    assert " >255%" in text
    assert "busiest n2 4/4 slots load >255%" in text
    assert "load 50%" in text


def test_two_voters_that_need_each_other_are_told_of() -> None:
    def first(width: int, *voters: str) -> str:
        board = small_board()
        view = view_json([member_json(1)])
        node = view["node"]
        assert isinstance(node, dict)
        board.fold({"view": view | {"node": node | {"registers": {"voters": list(voters)}}}})
        return text_of(board, width, 24)[0]

    assert "  2 voters  up 2h14m" in first(80, "n1", "n2")
    assert "  2 voters: they need each other  up 2h14m" in first(120, "n1", "n2")
    for others in ((), ("n1",), ("n1", "n2", "n3")):
        assert "voters" not in first(120, *others)
