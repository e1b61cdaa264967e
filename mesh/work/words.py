"""Tasks in words and times for people: the screen and the commands say the same.

They read the task's JSON, in which every time is Unix time.
"""

from __future__ import annotations

from typing import Final

ATTEMPT_CAUSES: Final = {
    "first": "first run",
    "crash": "the node before was lost",
    "released": "the node before let it go",
    "lapse": "the node before did not answer for it",
}
"""Why an attempt was started."""


def attempt_reason(cause: str) -> str:
    """Return why an attempt was started; a cause that is not known as it is."""
    return ATTEMPT_CAUSES.get(cause, cause)


def stretch(
    state: str,
    *,
    created: float | None,
    started: float | None,
    ended: float | None,
    lost: float | None,
) -> tuple[float | None, float | None]:
    """Return from when to when a task waits, runs or ran; None for a beginning unknown, or an end to come.

    `started` is the last attempt's, and `lost` is when that one was taken back: since then it waits anew.
    """
    if state == "ready":
        return lost or created, None
    return started or created, None if state == "leased" else ended
