"""Which task is meant by the beginning of an id, and what a waiting one is said to wait for."""

from __future__ import annotations

from typing import Any, cast

import pytest

from mesh.cli.hints import shell_line
from mesh.cli.waiting import waits_for
from mesh.cli.which_task import ask_about
from mesh.client import Client
from mesh.errors import CommandRefused


class Node:
    """Answers as a node does that keeps these tasks."""

    def __init__(self, *ids: str, silent: tuple[str, ...] = ()) -> None:
        self._ids = ids
        self._silent = silent

    def call(self, name: str, **args: str) -> dict[str, Any]:
        if name == "tasks":
            return {"tasks": [{"id": task_id} for task_id in self._ids], "silent": self._silent}
        if args["id"] not in self._ids:
            raise CommandRefused(f"no task {args['id']} is kept by any living member")
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
    for given in ("x", ""):
        with pytest.raises(CommandRefused, match="is kept by any living member"):
            ask(Node("a1"), "cancel", given)


def test_beginning_is_not_enough_while_somebody_does_not_answer() -> None:
    with pytest.raises(CommandRefused, match=r"n2 did not answer .*: write the whole id"):
        ask(Node("a1", silent=("n2",)), "cancel", "a")


def test_what_a_task_waits_for_is_said_unless_somebody_is_being_asked() -> None:
    for sentence in ("a member that has label gpu=yes (none now)", "a free slot: n1 is busy"):
        assert waits_for(sentence) == sentence
    assert waits_for("an answer from n1") == ""


def test_shell_line_in_one_word_is_given_to_a_shell() -> None:
    assert shell_line(["echo hi | wc"]) == "a shell line? mesh submit -- sh -c 'echo hi | wc'"
    assert shell_line(["no-such-command", "a b"]) == ""
