"""Which task is meant: its id, or the beginning of one that fits no other that the local node knows of."""

from __future__ import annotations

from typing import Any

from mesh.client import Client
from mesh.core.ids import TASK_ID_CHARS_MAX
from mesh.errors import CommandRefused, ConfigError

SHOWN_MAX = 5
VOTERS_OF_ONE = 3
"""So many voters has one task, if there are so many."""


def ask_about(client: Client, request: str, given: str) -> Any:  # noqa: ANN401 - JSON comes back
    """Send `request` about the task whose id is `given`, or begins with it.

    Raises:
        ConfigError: nothing is given.
        CommandRefused: no task fits of those that the node votes on, or several.
    """
    if not given:
        raise ConfigError(
            f"a task's id is expected, or its beginning: 1 to {TASK_ID_CHARS_MAX} characters, found none, as from "
            "a variable that is not set; mesh tasks lists what there is"
        )
    try:
        return client.call(request, id=given)
    except CommandRefused as error:
        refused = error
    found = client.call("tasks")
    fitting = [task["id"] for task in found["tasks"] if task["id"].startswith(given)]
    if given in fitting or (not fitting and _knows_all(client)):
        raise refused
    if not fitting:
        raise CommandRefused(
            f"{refused}; this node votes on few tasks or none, and knows no others by their beginning: write the whole id"
        )
    if len(fitting) > 1:
        more = f" and {len(fitting) - SHOWN_MAX} more" if len(fitting) > SHOWN_MAX else ""
        raise CommandRefused(
            f"several tasks begin with {given}: {', '.join(fitting[:SHOWN_MAX])}{more}; write more of the id"
        )
    return client.call(request, id=fitting[0])


def _knows_all(client: Client) -> bool:
    """Say whether the node votes on every task of its mesh: while three or fewer vote, each of them does."""
    registers = client.call("status")["registers"]
    return bool(registers["votes"]) and len(registers["voters"]) <= VOTERS_OF_ONE
