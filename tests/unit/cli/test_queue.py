"""`mesh queue`: what people write, what they read, and what a node that is not there does to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from mesh.cli import queue
from mesh.cli.main import main
from mesh.queues.settings import Strategy

NOW = 1_800_000_000.0
SHOWN = {"queue": "thumbs", "strategy": "pull", "set_at": NOW - 90, "set_by": "anna"}


class Node:
    """Answers as it is told, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.answer: dict[str, Any] = {}

    def call(self, name: str, **given: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON comes back
        self.asked.append((name, given))
        return self.answer


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Node:
    found = Node()

    @contextmanager
    def answering(_options: object, _timeout_s: float) -> Iterator[Node]:
        yield found

    monkeypatch.setattr(queue, "answering_node", answering)
    monkeypatch.setattr("time.time", lambda: NOW)
    return found


def test_a_queue_is_set(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    node.answer = SHOWN | {"outcome": "set"}
    assert main(["queue", "set", "thumbs", "--strategy", "pull"]) == 0
    assert node.asked == [("queue_set", {"queue": "thumbs", "strategy": "pull"})]
    assert capsys.readouterr() == ("thumbs: pull (set 1m30s ago at anna)\n", "")


def test_what_holds_already_is_said_to_do_so(
    node: Node, capsys: pytest.CaptureFixture[str]
) -> None:
    node.answer = SHOWN | {"outcome": "kept"}
    assert main(["queue", "set", "thumbs", "--strategy", "pull"]) == 0
    assert capsys.readouterr().out == "thumbs: pull (already set 1m30s ago at anna)\n"


def test_who_was_overtaken_is_told_what_holds(
    node: Node, capsys: pytest.CaptureFixture[str]
) -> None:
    node.answer = SHOWN | {"outcome": "overtaken"}
    assert main(["queue", "set", "thumbs", "--strategy", "contest", "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == node.answer
    assert "thumbs was set to contest, and by somebody else at the same time" in said.err


def test_a_queue_is_shown(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    node.answer = SHOWN
    assert main(["queue", "show", "thumbs"]) == 0
    assert capsys.readouterr().out == "thumbs: pull (set 1m30s ago at anna)\n"
    assert main(["queue", "show", "thumbs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == SHOWN
    assert node.asked == [("queue_show", {"queue": "thumbs"})] * 2


def test_what_was_never_set_is_the_default(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    node.answer = SHOWN | {"strategy": "rendezvous", "set_at": None, "set_by": None}
    assert main(["queue", "show", "thumbs"]) == 0
    assert capsys.readouterr().out == "thumbs: rendezvous (the default: nothing was set)\n"


def test_names_from_elsewhere_move_nobody_s_cursor() -> None:
    line = queue.queue_line(SHOWN | {"queue": "a\x1b[2J", "set_by": "b\n"})
    assert line.isprintable()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["set", "q", "--strategy", "best"], "one of rendezvous, contest, round_robin, pull"),
        (["set", "q"], "--strategy"),
        (["set", "--strategy", "pull"], "NAME"),
        (["set", "", "--strategy", "pull"], "1 to 128 characters is expected, found 0"),
        (["show", "q" * 129], "found 129"),
        (["show"], "NAME"),
        (["lst"], "'set', 'show', 'list'"),
        ([], "ACTION"),
    ],
)
def test_what_is_written_wrongly_is_wrong_usage(
    words: list[str], expected: str, node: Node, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["queue", *words]) == 2
    assert expected in capsys.readouterr().err
    assert node.asked == []


def test_the_help_tells_every_strategy(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["queue", "--help"]) == 0
    said = capsys.readouterr().out
    assert all(f"\n  {strategy} " in said for strategy in Strategy)
