"""Whether enough of those who vote are here, and the words for when they are not.

    voters   a  b  c
    here     ✓  ·  ·     2 of 3 voters are away (b, c): nothing can be stored until one returns
    here     ✓  ✓  ·     enough; but once a or b has left, it is as above

Here is who is in the live view: a suspect is away for the moment. It is this node's view, and decides nothing
but what is said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mesh.core.ids import NodeId
from mesh.placement.live_view import LiveView
from mesh.registers.proposal import majority


def away(voters: Sequence[NodeId], view: LiveView) -> tuple[NodeId, ...]:
    """Return those voters that are not here, in their order."""
    return tuple(voter for voter in voters if view.get(voter) is None)


def standstill(
    voters: Sequence[NodeId], gone: Sequence[NodeId], name_of: Callable[[NodeId], str]
) -> str:
    """Return what it means that these voters are gone; "" while the others are a majority."""
    missing = majority(len(voters)) - (len(voters) - len(gone)) if voters else 0
    if missing <= 0:
        return ""
    if len(voters) == 1:
        return (
            f"the only voter is away ({name_of(gone[0])}): nothing can be stored until it returns"
        )
    names = ", ".join(sorted(map(name_of, gone)))
    until = "one returns" if missing == 1 else f"{missing} return"
    verb = "is" if len(gone) == 1 else "are"
    return f"{len(gone)} of {len(voters)} voters {verb} away ({names}): nothing can be stored until {until}"


def parting(
    voters: Sequence[NodeId],
    gone: Sequence[NodeId],
    own_id: NodeId,
    name_of: Callable[[NodeId], str],
) -> str:
    """Return what it means for the others if this node leaves as well; "" if they go on without it."""
    if own_id not in voters:
        return ""
    text = standstill(voters, (*(one for one in gone if one != own_id), own_id), name_of)
    return f"once this node has left, {text}, and no task starts or ends" if text else ""
