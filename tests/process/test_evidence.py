"""What a crash is told by, for real: all that a host has to say, or silence alone."""

from __future__ import annotations

import functools
import time

import pytest

from mesh.fleet.clearing import wait_until
from mesh.fleet.fleet import Fleet, NodeProcess
from mesh.membership.lifelines import LOOK_S

NOTICE_S = 20.0
LIVED_S = 10 * LOOK_S
"""A member that has lived for so long has chosen its observers, and opened its lifelines."""

SAID = "without evidence, as asked: a crash is found by silence alone"


def causes(node: NodeProcess) -> list[str] | None:
    """Return why whoever is dead died; None: nobody is."""
    rows = node.call("members")
    return [row["cause"] for row in rows if row["state"] == "dead"] or None


@pytest.mark.parametrize(("evidence", "cause"), [("all", "crashed"), ("none", "silent")])
def test_killed_node_is_found_by_what_the_nodes_were_told_to_heed(
    fleet: Fleet, evidence: str, cause: str
) -> None:
    words = ("--evidence", evidence)
    first = fleet.start("first", *words)
    others = [fleet.start(name, *words, fleet.seed) for name in ("second", "third", "gone")]
    fleet.wait_whole()
    time.sleep(LIVED_S)
    fleet.nodes["gone"].kill()
    for node in (first, *others[:2]):
        noticed = wait_until(
            functools.partial(causes, node), NOTICE_S, lambda: AssertionError("nobody noticed")
        )
        assert noticed == [cause]
        assert node.log_text().count(SAID) == (evidence == "none")
