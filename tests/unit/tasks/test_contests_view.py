"""What is seen of a voter's contests: names for ids, milliseconds, newest first, and no more than is shown."""

from __future__ import annotations

import json
from typing import Any

from mesh.contest.caller import Candidate
from mesh.contest.known import unknown
from mesh.contest.weighing import shown
from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.placement.live_view import LiveView
from mesh.tasks.calling import Calling
from mesh.tasks.config import TasksConfig
from mesh.tasks.contests_view import LATEST_MAX, contests_view, no_contests
from mesh.wire.contest_messages import SCORE_MAX, Bid, Called
from mesh.wire.task_messages import AttemptCause, Decline, Offer

UNIX_S = 1_800_000_000.0


def opened(calling: Calling, at: float, task_id: str) -> bytes:
    """Begin a contest among two."""
    key = task_id.encode()
    offer = Offer(
        task_id=task_id,
        ballot=Ballot(0, 1, 0, NodeId(9)),
        seq=0,
        attempt=1,
        cause=AttemptCause.FIRST,
    )
    called = [Candidate(Called(NodeId(n), 1, 10, 0), 1 - n / 10) for n in (1, 2)]
    calling.caller.open(at, key, offer, called, window_s=0.002)
    return key


def seen(calling: Calling) -> dict[str, Any]:
    return contests_view(calling, NodeId(9), lambda node_id: f"node-{node_id}")


def test_without_contests_there_is_nothing_to_see() -> None:
    calling = Calling(LiveView(), unknown, TasksConfig(), UNIX_S)
    assert seen(calling) == no_contests()


def test_a_contest_is_told_from_its_call_to_its_winner() -> None:
    calling = Calling(LiveView(), unknown, TasksConfig(), UNIX_S)
    key = opened(calling, 10.0, "t")
    calling.handle_answer(10.001, key, NodeId(1), Decline.BUSY)
    bid = Bid("t", 1, 0, round(0.8 * SCORE_MAX), (("cpu", 51),))
    calling.handle_bid(10.002, key, NodeId(2), bid)
    (story,) = seen(calling)["latest"]
    assert (story["under_way"], story["winner"], story["after_ms"]) == (True, None, None)
    calling.close(10.005, key, NodeId(2))
    found = seen(calling)
    assert (found["held"], found["won"], found["window_ms"]) == (1, 1, 2.0)
    (story,) = found["latest"]
    assert story == {
        "task_id": "t",
        "attempt": 1,
        "at": UNIX_S + 10,
        "caller": "node-9",
        "under_way": False,
        "window_ms": 2.0,
        "called": [
            {"member": "node-1", "expected": 0.9},
            {"member": "node-2", "expected": 0.8},
        ],
        "said": [
            {"after_ms": 1.0, "member": "node-1", "score": None, "parts": {}, "declined": "busy"},
            {
                "after_ms": 2.0,
                "member": "node-2",
                "score": 0.8,
                "parts": {"cpu": 0.2},
                "declined": None,
            },
        ],
        "winner": "node-2",
        "after_ms": 5.0,
        "rounds": 1,
        "weights": shown(()),
        "default_weights": True,
        "first_window": True,
    }
    assert json.loads(json.dumps(found)) == found


def test_the_newest_come_first_those_under_way_before_them_and_no_more_than_are_shown() -> None:
    calling = Calling(LiveView(), unknown, TasksConfig(), UNIX_S)
    for number in range(LATEST_MAX + 5):
        calling.close(number + 0.5, opened(calling, number, f"over{number}"), NodeId(1))
    opened(calling, 100.0, "first")
    opened(calling, 101.0, "second")
    found = seen(calling)
    shown = [one["task_id"] for one in found["latest"]]
    assert shown[:4] == ["second", "first", f"over{LATEST_MAX + 4}", f"over{LATEST_MAX + 3}"]
    assert len(shown) == LATEST_MAX
    assert (found["held"], found["won"]) == (LATEST_MAX + 7, LATEST_MAX + 5)


def test_what_nobody_had_is_held_and_not_won() -> None:
    calling = Calling(LiveView(), unknown, TasksConfig(), UNIX_S)
    calling.close(1.0, opened(calling, 0.0, "t"), None)
    found = seen(calling)
    assert (found["held"], found["won"], found["bids_mean"]) == (1, 0, None)
