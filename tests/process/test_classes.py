"""A dedicated node is for its queues: it takes their tasks before others do, and no others."""

from __future__ import annotations

from mesh.fleet.clearing import wait_until
from mesh.fleet.fleet import Fleet, NodeProcess

END_TIMEOUT_S = 20.0


def where(node: NodeProcess, queue: str, count: int, seconds: float) -> list[str]:
    """Run some tasks of a queue at once; return who ran them, in the order of their ends."""
    task = {"argv": ["sleep", str(seconds)], "queue": queue}
    ids = [one["id"] for one in node.call("submit_many", tasks=[task] * count)["tasks"]]

    def ended() -> list[dict[str, object]] | None:
        tasks = [node.call("task", id=task_id) for task_id in ids]
        return tasks if all(task["state"] == "done" for task in tasks) else None

    tasks = wait_until(ended, END_TIMEOUT_S, lambda: AssertionError("tasks do not end"))
    return [str(task["owner"]) for task in tasks]


def test_a_dedicated_node_takes_its_queue_first_and_nothing_else(fleet: Fleet) -> None:
    other = fleet.start("other")
    fleet.start("kept", fleet.seed, "--class", "dedicated", "--queue", "video")
    fleet.wait_whole()
    assert where(other, "video", 1, 0.0) == ["kept"]
    assert sorted(where(other, "video", 2, 0.5)) == ["kept", "other"], "when it is full"
    assert where(other, "default", 4, 0.1) == ["other"] * 4
