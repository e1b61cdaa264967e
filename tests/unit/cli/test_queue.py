"""`mesh queue`: what people write, what they read, and what a node that is not there does to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from mesh.cli import queue
from mesh.cli.main import main
from mesh.contest.fitness import DEFAULT_WEIGHTS
from mesh.queues.settings import Strategy
from mesh.wire.contest_messages import WEIGHED

NOW = 1_800_000_000.0
SHOWN = {
    "queue": "thumbs",
    "strategy": "pull",
    "weights": {"cpu": 0.2, "history": 0.25},
    "default_weights": True,
    "set_at": NOW - 90,
    "set_by": "anna",
}
WEIGHTS = "  weights: cpu 0.2, history 0.25 (the default)\n"


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
    assert capsys.readouterr() == (f"thumbs: pull (set 1m30s ago at anna)\n{WEIGHTS}", "")


def test_weights_are_set_with_a_strategy_or_without(
    node: Node, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = {"cpu": 0.5, "lag": 0.0}
    node.answer = SHOWN | {"outcome": "set", "weights": weights, "default_weights": False}
    words = ["--weight", "cpu=0.5", "--weight", "lag=0"]
    assert main(["queue", "set", "thumbs", *words]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "  weights: cpu 0.5, lag 0"
    assert main(["queue", "set", "thumbs", "--strategy", "contest", *words]) == 0
    assert main(["queue", "set", "thumbs", "--weight", "default"]) == 0
    assert [given for _, given in node.asked] == [
        {"queue": "thumbs", "weights": weights},
        {"queue": "thumbs", "strategy": "contest", "weights": weights},
        {"queue": "thumbs", "weights": {}},
    ]


def test_what_holds_already_is_said_to_do_so(
    node: Node, capsys: pytest.CaptureFixture[str]
) -> None:
    node.answer = SHOWN | {"outcome": "kept"}
    assert main(["queue", "set", "thumbs", "--strategy", "pull"]) == 0
    assert capsys.readouterr().out == f"thumbs: pull (already set 1m30s ago at anna)\n{WEIGHTS}"


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
    assert capsys.readouterr().out == f"thumbs: pull (set 1m30s ago at anna)\n{WEIGHTS}"
    assert main(["queue", "show", "thumbs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == SHOWN
    assert node.asked == [("queue_show", {"queue": "thumbs"})] * 2


def test_what_was_never_set_is_the_default(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    node.answer = SHOWN | {"strategy": "rendezvous", "set_at": None, "set_by": None}
    assert main(["queue", "show", "thumbs"]) == 0
    line = "thumbs: rendezvous (the default: nothing was set)\n"
    assert capsys.readouterr().out == f"{line}{WEIGHTS}"


def test_names_from_elsewhere_move_nobody_s_cursor() -> None:
    line = queue.queue_line(SHOWN | {"queue": "a\x1b[2J", "set_by": "b\n"})
    assert line.isprintable()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["set", "q", "--strategy", "best"], "one of rendezvous, contest, round_robin, pull"),
        (["set", "q"], "--strategy, --weight or both are expected, found neither"),
        (["set", "q", "--weight", "cpu"], "PART=N with a number N, or `default`, is expected"),
        (["set", "q", "--weight", "cpu=much"], "found 'cpu=much'"),
        (
            ["set", "q", "--weight", "cpu=-1"],
            "weight cpu: a number from 0 to 1,000,000 is expected",
        ),
        (["set", "q", "--weight", "cpu=nan"], "weight cpu: a number from 0"),
        (
            ["set", "q", "--weight", "speed=1"],
            "one of cpu, distance, free_slots, history, lag, match; found 'speed'",
        ),
        (["set", "q", "--weight", "warm=1"], "it cannot be set, as members load no apps"),
        (["set", "q", "--weight", "zone=1"], "ask for a label of the member instead"),
        (["set", "q", "--weight", "checkpoint=0"], "tasks have no checkpoints yet"),
        (["set", "q", "--weight", "cpu=1", "--weight", "cpu=2"], "each part once"),
        (["set", "q", "--weight", "default", "--weight", "cpu=2"], "`default` alone"),
        (
            ["set", "q", *(w for one in WEIGHED for w in ("--weight", f"{one}=0"))],
            "at least one above 0 is expected",
        ),
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


def test_the_help_tells_every_strategy_and_what_each_part_counts_by_default(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["queue", "--help"]) == 0
    said = capsys.readouterr().out
    assert all(f"\n  {strategy} " in said for strategy in Strategy)
    weights = {name: getattr(DEFAULT_WEIGHTS, name) for name in WEIGHED}
    assert all(f"\n  {name:<12} {weight:.2f} " in said for name, weight in weights.items())
