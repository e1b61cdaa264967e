"""Tasks on the screen: whose they are, how each one went, and where its output is."""

from __future__ import annotations

import pytest

from tests.unit.tui.boards import AT, board_of, failed_task, member_json, page, task_json, text_of


def test_page_of_a_task_shows_every_try_and_the_last_of_its_output() -> None:
    board = board_of([], tasks=[failed_task()])
    text = page(board, "2", "enter")
    assert "1  n3    07:59:00     30s  cut off       first run  n3 died" in text
    assert "2  n2    07:59:31     20s  exit 3        the node before was lost" in text
    text += page(board, "2", "enter", "page_down")
    assert "│ two \\x1b[31m" in text
    assert "│ no such file" in text
    assert "5000 bytes in all; mesh task k3j5 --output shows more" in text


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (
            {
                "state": "done",
                "result": {"output_bytes": 6, "stdout_tail": "one\n", "stderr_tail": "é"},
            },
            "6 bytes, all shown",
        ),
        (
            {"state": "done", "result": {"output_bytes": 7, "stdout_tail": "\ufffdne\n"}},
            "7 bytes in all; mesh task t1 --output shows more",
        ),
        ({"state": "leased"}, "mesh task t1 --output follows what it writes"),
    ],
)
def test_page_says_where_the_rest_of_the_output_is(task: dict[str, object], said: str) -> None:
    board = board_of([], tasks=[task_json("t1", "done") | task])
    assert f"│ {said} " in page(board, "2", "enter")


def test_task_that_only_others_keep_says_who_knows_more_and_whether_it_is_frozen() -> None:
    board = board_of([member_json(1)], running=[guest("b"), guest("c", is_frozen=True)])
    first = page(board, "2", "enter")
    assert "mesh task b --output follows what it writes" in first
    assert "its voters know them: mesh task b" in first
    assert "frozen" not in first
    assert "frozen: whether its lease lives is in doubt" in page(board, "2", "down", "enter")


def test_attempt_that_was_let_go_is_told_from_one_that_was_cut_off() -> None:
    attempts = [
        {"number": 1, "node": "n3", "cause": "first", "started": AT - 60, "ended": AT - 30, "end": "released"},
        {"number": 2, "node": "n2", "cause": "released", "started": AT - 29, "ended": AT - 9, "end": "lost",
         "placed": {"by": "rank", "home": "n2", "passed": None}},
    ]  # fmt: skip
    text = page(board_of([], tasks=[task_json("t1", "ready", attempts=attempts)]), "2", "enter")
    assert "let go        first run" in text
    assert "cut off       the node before let it go" in text
    assert "│          n2 is its home" in text


def test_task_that_was_taken_back_waits_since_then() -> None:
    lost = {"number": 1, "node": "n3", "started": AT - 80, "ended": AT - 15, "error": "n3 died"}
    task = task_json("t1", "ready", started=AT - 80, attempts=[lost])
    board = board_of([], tasks=[task])
    assert "waits for 15s" in page(board, "2", "enter")
    assert "  15s " in next(line for line in text_of(board, 80, 24) if "t1" in line)


def test_run_that_was_lost_is_not_shown_as_one_that_runs() -> None:
    running = {"number": 1, "node": "n2", "cause": "first", "started": AT - 60}
    lost = task_json("gone", "leased", attempts=[running], waits_for="its turn",
                     lost=True, lost_cause="crash", lost_since=AT - 7)  # fmt: skip
    board = board_of(
        [member_json(2)], tasks=[lost, task_json("runs", "leased")], task_counts={"leased": 2}
    )
    text = "\n".join(text_of(board, 120, 24))
    assert "▸ 1 running" in text
    assert "1 lost" in text
    assert [task.id for task in board.tasks] == ["runs", "gone"]
    text = page(board, "2", "down", "enter")
    assert "lost  waits for 7.0s" in text
    assert "its turn" in text
    assert "  lost          first run" in text
    assert "53s  lost" in text  # what was lost counts no further
    assert "follows what it writes" not in text


def test_task_that_is_kept_here_says_that_its_run_here_is_frozen() -> None:
    board = board_of([], tasks=[task_json("t1", "leased", frozen=True)])
    assert "frozen: whether its lease lives is in doubt" in page(board, "2", "enter")


def test_page_says_what_a_task_asks_of_a_member() -> None:
    picky = task_json("t1", "ready", labels={"gpu": "yes"}, needs={"ram": 4})
    text = page(board_of([], tasks=[picky]), "2", "enter", "page_down")
    assert "label gpu=yes, ram 4" in text


def guest(name: str, **changes: object) -> dict[str, object]:
    return {
        "id": name,
        "attempt": 1,
        "is_frozen": False,
        "since": AT - 3,
        "argv": ["true"],
    } | changes


@pytest.mark.parametrize(
    ("tasks", "running", "said"),
    [
        ([task_json("a", "done")], [], "─ tasks ─ 1 kept here ─"),
        ([], [guest("b"), guest("c")], "─ tasks ─ 2 run here, kept by others ─"),
        (
            [task_json("a", "done")],
            [guest("b"), guest("c")],
            "─ tasks ─ 1 kept here, 2 run here ─",
        ),
        ([], [], "none kept or run here: mesh tasks lists all, mesh submit -- CMD adds one"),
    ],
)
def test_tasks_of_a_node_are_not_taken_for_those_of_the_mesh(
    tasks: list[dict[str, object]], running: list[dict[str, object]], said: str
) -> None:
    counts = {"done": len(tasks)}
    rows = [member_json(1), member_json(2)]
    board = board_of(rows, tasks=tasks, running=running, task_counts=counts)
    assert said in "\n".join(text_of(board, 80, 24))


def test_more_tasks_than_are_listed_are_said() -> None:
    rows = [member_json(1), member_json(2)]
    tasks = [task_json(f"t{n}", "done") for n in range(20)]
    board = board_of(rows, tasks=tasks, task_counts={"done": 700})
    text = "\n".join(text_of(board, 80, 24))
    assert "of 20: 700 kept here, the latest 20 listed ─" in text
    board = board_of(rows, tasks=tasks, task_counts={"done": 20})
    assert "of 20 kept here ─" in "\n".join(text_of(board, 80, 24))
