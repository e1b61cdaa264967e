"""Members of one mesh that have known each other for long, made so without a packet.

For simulations and tests that are about what comes after the joining: a thousand nodes that join through
one seed tell each other a million things first.
"""

# ruff: noqa: SLF001 - what a welcome and the gossip after it would have done, inside each node

from __future__ import annotations

from collections.abc import Sequence

from mesh.core.ids import NodeId
from mesh.membership.member import Member
from mesh.node.node import Node
from mesh.placement.live_view import LiveMember


def acquaint(nodes: Sequence[tuple[Node, float]]) -> None:
    """Let started members of one mesh, each with its own `now`, know each other; nobody tells anybody.

    Call `handle_timeout` of each afterwards. O(members squared), so what never changes is shared: cards,
    entries of the live views, numbers. A pair costs two microseconds, and some 300 bytes.
    """
    known: list[tuple[Member, LiveMember]] = []
    view_hash = 0
    for node, _ in nodes:
        own = node._swim.table.get(node.identity.node_id)
        entry = node._live.get(node.identity.node_id)
        assert own is not None, "a member knows itself"
        assert entry is not None, "and may get work"
        known.append((own, entry))
        view_hash ^= node._swim.table.view_hash
    places = list(range(len(nodes)))
    for node, now in nodes:
        _introduce(node, now, known, places)
        node._swim.table.view_hash = view_hash


def _introduce(
    node: Node, now: float, known: list[tuple[Member, LiveMember]], places: list[int]
) -> None:
    """Do to one node what the welcome of a mesh at rest, and all news after it, would have done."""
    own_id: NodeId = node.identity.node_id
    swim, live = node._swim, node._live
    table, names = swim.table, swim.rumours.names
    members, living = table._members, table._living
    for told, entry in known:
        card = told.card
        if card.node_id == own_id:
            continue
        member = Member(
            card, told.card_bytes, told.boot, told.incarnation, told.state, told.cause, now
        )
        member.place = places[len(living)]
        members[card.node_id] = member
        living.append(card.node_id)
        names.file(card, is_living=True)
        live.put(entry)
    swim.observers._is_known = False  # they may have been asked for when there was nobody
    swim._news.forget(own_id)
    swim._outbox.take()
