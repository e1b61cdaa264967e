"""The filter line finds what it says, and the orders sort by what they say."""

from __future__ import annotations

import pytest

from mesh.tasks.words import state_word
from mesh.tui.board import TASK_STATES
from mesh.tui.filters import MEMBER_FIELDS, MEMBER_WORDS, TASK_FIELDS, TASK_WORDS, matching, slip
from mesh.tui.orders import MEMBER_ORDERS, TASK_ORDERS
from mesh.tui.rows import MemberRow, TaskRow
from mesh.wire.records import State
from mesh.wire.task_messages import TaskState
from tests.unit.tui.boards import AT, member_json, task_json

MEMBERS = [
    MemberRow.read(row)
    for row in (
        member_json(1, load=0.1, used=1, rtt_ms=None),
        member_json(2, load=1.2, used=4, rtt_ms=3.0),
        member_json(3, state="dead", cause="silent", used=None, load=None),
        member_json(10, load=0.1, used=None, rtt_ms=0.2, labels={"zone": "us"}, pool="GPU"),
    )
]


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("", "n1 n2 n3 n10"),
        ("  ", "n1 n2 n3 n10"),
        ("n1", "n1 n10"),
        ("N10", "n10"),
        ("state:dead", "n3"),
        ("!state:dead", "n1 n2 n10"),
        ("zone=us", "n10"),
        ("zone=eu !n1", "n2 n3"),
        ("pool:gpu alive", "n10"),
        (":7948", "n3"),
        ("127.0.0.1:7948", "n3"),
        ("nosuch:thing", ""),
        ("state:", "n1 n2 n3 n10"),
    ],
)
def test_filter_leaves_the_members_that_it_describes(line: str, names: str) -> None:
    assert " ".join(m.name for m in matching(MEMBERS, MEMBER_FIELDS, line)) == names


def test_tasks_are_found_by_node_exit_code_and_command() -> None:
    tasks = [
        TaskRow.read(task_json("a", "done", owner="n7")),
        TaskRow.read(task_json("b", "failed", argv=["rm", "x"], result={"exit_code": 3})),
    ]
    for line, found in [("node:n7", "a"), ("exit:3", "b"), ("command:rm", "b"), ("gzip", "a")]:
        assert [task.id for task in matching(tasks, TASK_FIELDS, line)] == [found]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/foo:bar", ""),  # no word before the colon
        ("x foo:bar", "no field foo: id, state, node, origin, queue, exit, command, note"),
        (
            "!state:waiting",
            "no state waiting: scheduled, ready, running, lost, done, failed, cancelled",
        ),
        ("state:run node:n7 10.0.0.1:80", ""),
        ("state:", ""),
    ],
)
def test_slip_in_a_filter_is_told_with_what_there_is(line: str, said: str) -> None:
    assert slip(line, TASK_FIELDS, TASK_WORDS) == said


def test_words_of_fields_are_those_of_the_mesh() -> None:
    assert MEMBER_WORDS["state"] == tuple(
        state.word for state in State if state is not State.FORGOTTEN
    )
    assert TASK_WORDS["state"] == TASK_STATES
    assert set(TASK_STATES) == {state_word(state.word) for state in TaskState} | {"lost"}


@pytest.mark.parametrize(
    ("order", "names", "backwards"),
    [
        ("state", "n1 n2 n3 n10", "n10 n3 n2 n1"),
        ("load", "n2 n1 n10 n3", "n1 n10 n2 n3"),
        ("slots", "n2 n1 n3 n10", "n1 n2 n3 n10"),
        ("rtt", "n2 n10 n1 n3", "n10 n2 n1 n3"),
        ("name", "n1 n2 n3 n10", "n10 n3 n2 n1"),
    ],
)
def test_members_sort_by_a_column_and_those_without_a_value_stand_last(
    order: str, names: str, backwards: str
) -> None:
    found = next(o for o in MEMBER_ORDERS if o.name == order)
    assert " ".join(m.name for m in found.arrange(MEMBERS, AT, is_reversed=False)) == names
    assert " ".join(m.name for m in found.arrange(MEMBERS, AT, is_reversed=True)) == backwards


def test_tasks_sort_by_the_time_that_they_show_and_by_owner() -> None:
    tasks = [
        TaskRow.read(task_json("short", "done", started=AT - 60, ended=AT - 50, owner="n10")),
        TaskRow.read(task_json("long", "done", started=AT - 60, ended=AT - 5, owner="n2")),
        TaskRow.read(task_json("waits", "ready", created=AT - 20)),
        TaskRow.read(task_json("odd", "ready", created=None)),
    ]
    by_time, by_owner = TASK_ORDERS[1], TASK_ORDERS[2]
    assert [t.id for t in by_time.arrange(tasks, AT, is_reversed=False)] == [
        "long",
        "waits",
        "short",
        "odd",
    ]
    assert [t.id for t in by_time.arrange(tasks, AT, is_reversed=True)] == [
        "short",
        "waits",
        "long",
        "odd",
    ]
    assert [t.id for t in by_owner.arrange(tasks, AT, is_reversed=False)] == [
        "long",
        "short",
        "waits",
        "odd",
    ]


def test_members_that_are_busier_than_can_be_told_sort_by_their_slots() -> None:
    rows = [
        MemberRow.read(member_json(number, load=load, used=used))
        for number, (load, used) in enumerate([(2.55, 1), (0.1, 4), (2.55, 3), (0.1, 0)], 1)
    ]
    found = next(o for o in MEMBER_ORDERS if o.name == "load").arrange(rows, AT, is_reversed=False)
    assert [m.name for m in found] == ["n3", "n1", "n2", "n4"]
