"""What a status costs: it is asked often, and tells of no single task."""

from __future__ import annotations

from typing import Any

import pytest

from mesh.node.view import View
from mesh.runtime.status import Status


class AskedError(Exception):
    """The tasks were asked for."""


def no_tasks() -> list[dict[str, Any]]:
    raise AskedError


def test_status_and_members_make_no_list_of_tasks_and_a_view_for_a_screen_does() -> None:
    view = View({"name": "n1", "counters": {}}, [{"name": "n1"}], no_tasks, {"done": 3}, [])
    status = Status(lambda _: view, lambda: 1.0, [], {"profile": "local"})
    assert status.node()["name"] == "n1"
    assert status.members() == [{"name": "n1"}]
    with pytest.raises(AskedError):
        status.view_json({})


def test_view_for_a_screen_tells_the_contests_and_a_status_makes_none() -> None:
    def contests() -> dict[str, Any]:
        raise AskedError

    view = View({"name": "n1", "counters": {}}, [], list, {}, [], contests)
    status = Status(lambda _: view, lambda: 1.0, [], {})
    assert status.node()["name"] == "n1"
    with pytest.raises(AskedError):
        status.view_json({})
    held = View(view.node, [], list, {}, [], lambda: {"held": 3})
    assert Status(lambda _: held, lambda: 1.0, [], {}).view_json({})["contests"] == {"held": 3}
