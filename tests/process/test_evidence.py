"""What a crash is told by, for real: all that a host has to say, or silence alone."""

from __future__ import annotations

import functools

import pytest

from mesh.fleet.clearing import wait_until
from mesh.fleet.fleet import Fleet, NodeProcess

NOTICE_S = 20.0
SAID = "without evidence, as asked: a crash is found by silence alone"


def causes(node: NodeProcess) -> list[str] | None:
    """Return why whoever is dead died; None: nobody is."""
    rows = node.call("members")
    return [row["cause"] for row in rows if row["state"] == "dead"] or None


def lifelines(node: NodeProcess, count: int) -> int | None:
    """Return how many lifelines a node keeps, its own and others', once it is so many; None: not yet."""
    shown = node.call("status")["lifelines"]
    return count if shown == {"kept": count, "of_others": count} else None


@pytest.mark.parametrize(("evidence", "cause"), [("all", "crashed"), ("none", "silent")])
def test_killed_node_is_found_by_what_the_nodes_were_told_to_heed(
    fleet: Fleet, evidence: str, cause: str
) -> None:
    words = ("--evidence", evidence)
    first = fleet.start("first", *words)
    others = [fleet.start(name, *words, fleet.seed) for name in ("second", "third", "gone")]
    fleet.wait_whole()
    for node in (first, *others):
        wait_until(
            functools.partial(lifelines, node, 3 if evidence == "all" else 0),
            NOTICE_S,
            lambda: AssertionError("each of four keeps a lifeline of each other"),
        )
    fleet.nodes["gone"].kill(guardian=True)
    for node in (first, *others[:2]):
        noticed = wait_until(
            functools.partial(causes, node), NOTICE_S, lambda: AssertionError("nobody noticed")
        )
        assert noticed == [cause]
        assert node.log_text().count(SAID) == (evidence == "none")
