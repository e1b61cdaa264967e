"""What `mesh status` says of the voters: who they are, who is away, and what one more would cost."""

from __future__ import annotations

from typing import Any

import pytest

from mesh.cli.status_text import voters_text


def registers(voters: str, away: str = "", **changes: object) -> dict[str, Any]:
    return {
        "epoch": 2,
        "voters": voters.split(),
        "voters_away": away.split(),
        "votes": True,
    } | changes


@pytest.mark.parametrize(
    ("voters", "away", "said"),
    [
        ("n1 n2 n3", "", "n1, n2, n3 (roster 2)"),
        (
            "n1 n2 n3",
            "n3",
            "n1, n2, n3 (roster 2; away: n3; with one more away, tasks stand still)",
        ),
        ("n1 n2 n3", "n2 n3", "n1, n2, n3 (roster 2; away: n2, n3)"),  # that they do is said beside it
        ("n1 n2 n3 n4 n5", "n5", "n1, n2, n3, n4, n5 (roster 2; away: n5)"),
        ("n1", "", "n1 (roster 2; all tasks are on its disk alone, until three vote)"),
        ("n1 n2", "", "n1, n2 (roster 2; two need each other: a third member makes any one dispensable)"),
        ("", "", "none known yet"),
    ],
)  # fmt: skip
def test_voters_are_named_with_who_is_away_and_what_one_more_would_cost(
    voters: str, away: str, said: str
) -> None:
    assert voters_text(registers(voters, away)) == said


def test_node_without_a_vote_says_so_and_one_of_an_earlier_version_says_less() -> None:
    found = registers("n1 n2 n3", votes=False)
    del found["voters_away"]
    assert voters_text(found) == "n1, n2, n3 (roster 2; this node has no vote)"
