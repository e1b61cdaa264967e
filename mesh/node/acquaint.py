"""Members of one mesh that have known each other for long, made so without a packet.

For simulations and tests that are about what comes after the joining: a thousand nodes that join through
one seed tell each other a million things first.
"""

# ruff: noqa: SLF001 - what a welcome and the gossip after it would have done, inside each node

from __future__ import annotations

from collections.abc import Sequence

from mesh.node.node import Node


def acquaint(nodes: Sequence[tuple[Node, float]]) -> None:
    """Let started members of one mesh, each with its own `now`, know each other; nobody tells anybody.

    Call `handle_timeout` of each afterwards. O(members squared).
    """
    standings = []
    for node, now in nodes:
        own = node._swim.table.get(node.identity.node_id)
        assert own is not None, "a member knows itself"
        standings.append(own.standing(now))
    everybody = tuple(standings)
    for node, now in nodes:
        swim = node._swim
        swim.rumours.welcome(now, everybody)
        swim._news.forget(node.identity.node_id)
        swim._outbox.take()
        changes, _ = swim.take_changes()
        node._roll.apply(changes, swim.phase)
