"""What is seen of the contests that a node holds as a voter: how they go, and the stories of the latest, JSON-ready.

    Caller's stories ──names for ids, Unix time for the session's──► latest, newest first
    Window ──► bids_mean, success, factor, advice

The keys are part of the contract that programs rely on; more may be added, none goes away.

Source: our own.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any, Final

from mesh.core.ids import NodeId
from mesh.tasks.calling import Calling
from mesh.tasks.contest_json import contest_json, told

LATEST_MAX: Final = 50
"""So many stories are shown."""

TOLD_MIN: Final = 10
"""Before so many contests their averages are mostly what they began with."""


def no_contests() -> dict[str, Any]:
    """Return what is seen of a node that holds none."""
    return {
        "held": 0,
        "won": 0,
        "bids_mean": None,
        "success": None,
        "window_ms": None,
        "factor": 1.0,
        "advice": "",
        "latest": [],
    }


def contests_view(
    calling: Calling, own_id: NodeId, name_of: Callable[[NodeId], str]
) -> dict[str, Any]:
    """Return what is seen of the contests that `own_id` holds. O(stories shown and contests under way).

    Keys: `held` and `won`, since the session began; `bids_mean` and `success` (0 to 1), weighted over the latest,
    null before the first ten: they begin with what is aimed at; `window_ms`, c of the latest; `factor` on c; `advice`, a sentence or ""; `latest`, at most
    `LATEST_MAX` contests as `contest_json` has them, newest first, those under way (`under_way`) before those that
    are over. Of one that is over `winner` is null where nobody had the task, or its end was no claim.
    """
    caller, window, offset_s = calling.caller, calling.window, calling.unix_offset_s
    latest = [
        *((story, True) for story in reversed(caller.under_way())),
        *((story, False) for story in islice(reversed(caller.stories), LATEST_MAX)),
    ][:LATEST_MAX]
    is_known = window.contests >= TOLD_MIN
    return no_contests() | {
        "held": caller.held,
        "won": caller.won,
        "bids_mean": round(window.bids_mean, 3) if is_known else None,
        "success": round(window.success, 3) if is_known else None,
        "window_ms": round(latest[0][0].window_s * 1000, 3) if latest else None,
        "factor": round(window.factor, 3),
        "advice": window.advice(),
        "latest": [
            contest_json(story.task_id, name_of(own_id), told(story, offset_s), name_of)
            | {"at": story.at + offset_s, "under_way": is_under_way}
            for story, is_under_way in latest
        ],
    }
