"""What a node is asked for by whatever runs a hook there: it is answered by exactly one `Answer`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TakeTurn:
    """Take the next turn of a hook, if nobody in the mesh has run it for a cool-down.

    Answer, once a majority holds it: `{"outcome": "granted"}`, and the hook is to be begun within `timeout_s` of when
    this was asked, or not at all under this answer. Else `{"outcome": "waits", "wait_s", "by", "begun_by"}`: by whom it was
    run last, and how long until it may be again.

    `mark` is 64 bits, anew for each run: a turn that was taken and not used is taken again under the same one.
    """

    command_id: int
    hook: str
    cool_down_s: float
    mark: int
    timeout_s: float = 5.0
