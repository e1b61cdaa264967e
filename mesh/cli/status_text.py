"""What `mesh status` says of who keeps the mesh's records: they, who of them is away, and what one more would cost.

    n1, n2, n3 (roster 2; away: n3; with one more away, tasks stand still)

That they do stand still is said in a line of its own, as the node has it.
"""

from __future__ import annotations

from typing import Any


def voters_text(registers: dict[str, Any]) -> str:
    """Return who votes, and what to know of it; of the node's `registers`."""
    voters = registers["voters"]
    if not voters:
        return "none known yet"
    away = registers.get("voters_away", [])  # a node of an earlier version does not say
    notes = [f"roster {registers['epoch']}"]
    if away:
        notes.append(f"away: {', '.join(away)}")
        if len(voters) - len(away) == len(voters) // 2 + 1:
            notes.append("with one more away, tasks stand still")
    if len(voters) == 1:
        notes.append("all tasks are on its disk alone, until three vote")
    if len(voters) == 2:
        notes.append("two need each other: a third member makes any one dispensable")
    if not registers["votes"]:
        notes.append("this node has no vote")
    return f"{', '.join(voters)} ({'; '.join(notes)})"
