"""Who votes, as a node says it: tests of what a majority must survive wait until there are enough of them."""

from __future__ import annotations

from typing import Any

from mesh.fleet.clearing import wait_until
from mesh.fleet.fleet import Fleet

VOTERS_TIMEOUT_S = 30.0


def wait_voters(fleet: Fleet, count: int) -> None:
    """Wait until every node that runs has installed a roster of so many voters."""

    def rosters() -> list[dict[str, Any]]:
        return [node.call("status")["registers"] for node in fleet.running()]

    def is_so() -> bool | None:
        return all(one["votes"] and len(one["voters"]) == count for one in rosters()) or None

    wait_until(
        is_so,
        VOTERS_TIMEOUT_S,
        lambda: AssertionError(f"{count} voters are expected, found {rosters()}"),
    )
