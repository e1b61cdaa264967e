"""`queue list`: the queues that something is set for, as this host's node knows them."""

from __future__ import annotations

import argparse
from typing import Any

from mesh.cli.local_node import MAJORITY_S, answering_node


def list_queues(options: argparse.Namespace) -> int:
    """Print every queue that the node knows a setting of, and how far that goes."""
    from mesh.cli.text import print_json

    with answering_node(options, MAJORITY_S) as client:
        found = client.call("queue_list")
    if options.json:
        print_json(found)
    else:
        print(as_text(found))
    return 0


def as_text(found: dict[str, Any]) -> str:
    """Return the table of queues, and what it does not show."""
    from mesh.cli.text import printable, since, table

    rows = [
        (
            one["queue"],
            one["strategy"],
            "default" if one["default_weights"] else weights_words(one["weights"]),
            f"{since(one['set_at'])} ago",
            one["set_by"],
        )
        for one in found["queues"]
    ]
    lines = [
        table(("QUEUE", "STRATEGY", "WEIGHTS", "SET", "AT"), rows) if rows else "none is known"
    ]
    if found["left_out"]:
        lines.append(f"not shown: {found['left_out']} more")
    if found["unread"]:
        lines.append(
            f"not shown: {found['unread']} that a later version of Mesh has set: upgrade this node"
        )
    lines += ["", printable(found["local"])]
    return "\n".join(lines)


def weights_words(weights: dict[str, float]) -> str:
    """Return what each part of a fitness counts, such as `free_slots 0.25, cpu 1`."""
    from mesh.cli.text import printable

    return ", ".join(f"{printable(name)} {weight:g}" for name, weight in weights.items())
