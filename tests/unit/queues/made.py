"""Settings for tests."""

from __future__ import annotations

from typing import Any

from mesh.queues.settings import QueueSettings, Strategy

NOON = 1_700_000_000.0


def setting(queue: str = "thumbs", **parts: Any) -> QueueSettings:  # noqa: ANN401 - handed on
    given: dict[str, Any] = {
        "strategy": Strategy.PULL,
        "count": 3,
        "set_at": NOON,
        "set_by": "anna",
        "marks": (7,),
    }
    return QueueSettings(queue=queue, **(given | parts))
