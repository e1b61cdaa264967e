"""Which task is meant: its id, or the beginning of one that fits no other that the local node knows of."""

from __future__ import annotations

from typing import Any

from mesh.client import Client
from mesh.errors import CommandRefused

SHOWN_MAX = 5


def ask_about(client: Client, request: str, given: str) -> Any:  # noqa: ANN401 - JSON comes back
    """Send `request` about the task whose id is `given`, or begins with it.

    Raises:
        CommandRefused: no task fits of those that the node votes on, or several.
    """
    try:
        return client.call(request, id=given)
    except CommandRefused as error:
        if not given:
            raise
        refused = error
    found = client.call("tasks")
    fitting = [task["id"] for task in found["tasks"] if task["id"].startswith(given)]
    if given in fitting or not fitting:
        raise refused
    if len(fitting) > 1:
        more = f" and {len(fitting) - SHOWN_MAX} more" if len(fitting) > SHOWN_MAX else ""
        raise CommandRefused(
            f"several tasks begin with {given}: {', '.join(fitting[:SHOWN_MAX])}{more}; write more of the id"
        )
    return client.call(request, id=fitting[0])
