"""Which task is meant by the beginning of an id, and what a waiting one is said to wait for."""

from __future__ import annotations

import time
from typing import Any, cast

import pytest

from mesh.cli.hints import shell_line
from mesh.cli.waiting import waits_for
from mesh.cli.which_task import ask_about
from mesh.client import Client
from mesh.errors import CommandRefused, ConfigError


class Node:
    """Answers as a node does that keeps these tasks."""

    def __init__(self, *ids: str, voters: int = 3, votes: bool = True) -> None:
        self._ids = ids
        self._registers = {"votes": votes, "voters": ["n"] * voters}

    def call(self, name: str, **args: str) -> dict[str, Any]:
        if name == "tasks":
            return {
                "tasks": [{"id": task_id} for task_id in self._ids],
                "local": "as it knows them",
            }
        if name == "status":
            return {"registers": self._registers}
        if args["id"] not in self._ids:
            raise CommandRefused(f"no task {args['id']} is known")
        return {"id": args["id"], "asked": name}


def ask(node: Node, request: str, given: str) -> object:
    return ask_about(cast("Client", node), request, given)


def test_whole_id_is_meant_even_if_another_begins_with_it() -> None:
    assert ask(Node("ab", "abc"), "cancel", "ab") == {"id": "ab", "asked": "cancel"}


def test_beginning_that_fits_one_task_is_enough() -> None:
    assert ask(Node("wr0qve", "8aejpj"), "task", "wr") == {"id": "wr0qve", "asked": "task"}


def test_beginning_that_fits_several_names_them() -> None:
    with pytest.raises(CommandRefused, match=r"several tasks begin with a: a0, a1, .* and 2 more"):
        ask(Node(*(f"a{n}" for n in range(7))), "cancel", "a")


def test_beginning_that_fits_none_is_refused_as_the_node_says() -> None:
    with pytest.raises(CommandRefused, match="is known"):
        ask(Node("a1"), "cancel", "x")


def test_empty_id_means_no_task_not_even_the_only_one() -> None:
    with pytest.raises(ConfigError, match=r"1 to 128 characters, found none, .*; mesh tasks lists"):
        ask(Node("a1"), "cancel", "")


def test_beginning_is_not_looked_for_among_tasks_that_the_node_does_not_vote_on() -> None:
    for node in (Node("a1", voters=4), Node(votes=False)):
        with pytest.raises(CommandRefused, match=r"no task x is known; .* write the whole id"):
            ask(node, "cancel", "x")


def waiting(reason: str, **changes: object) -> dict[str, Any]:
    return {"state": "ready", "waits_for": reason, "not_before": None, "attempt": 0} | changes


def test_what_a_task_waits_for_is_said_unless_it_is_over_in_a_moment() -> None:
    for sentence in (
        "a member that can run it: no member that takes tasks has label gpu=yes",
        "a free slot: n1 is busy",
    ):
        assert waits_for(waiting(sentence)) == sentence
    for sentence in ("an answer", "its turn", ""):
        assert waits_for(waiting(sentence)) == ""


def test_task_that_is_not_due_says_when_it_is() -> None:
    soon = time.time() + 60
    due = waits_for(waiting("", state="scheduled", not_before=soon))
    assert due == f"its time, at {time.strftime('%H:%M:%S', time.localtime(soon))}"
    later = waits_for(waiting("", state="scheduled", not_before=time.time() + 400_000, attempt=2))
    assert later.startswith("its retry, at 20")


def test_shell_line_in_one_word_is_given_to_a_shell() -> None:
    assert shell_line(["echo hi | wc"]) == "a shell line? mesh submit -- sh -c 'echo hi | wc'"
    assert shell_line(["no-such-command", "a b"]) == ""
