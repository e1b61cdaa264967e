"""A node without descriptors hands its tasks on; the others do not see them fail."""

from __future__ import annotations

from mesh.fleet.clearing import MARK, wait_until
from mesh.fleet.fleet import Fleet, NodeProcess

END_TIMEOUT_S = 30.0
FEW_DESCRIPTORS = ("sh", "-c", 'ulimit -n 40; exec "$@"', "sh")


def test_a_host_out_of_descriptors_hands_tasks_on_instead_of_failing_them(fleet: Fleet) -> None:
    well = fleet.start("well", slots=8)
    fleet.nodes["sick"] = NodeProcess("sick", fleet.home, {MARK: fleet.mark}, FEW_DESCRIPTORS)
    fleet.start("sick", slots=40)
    fleet.wait_whole()
    ids = [well.call("submit", key=str(n), argv=["sleep", "1"])["id"] for n in range(24)]

    def ended() -> list[dict[str, object]] | None:
        tasks = [well.call("task", id=task_id) for task_id in ids]
        return tasks if all(task["state"] in {"done", "failed"} for task in tasks) else None

    tasks = wait_until(ended, END_TIMEOUT_S, lambda: AssertionError("tasks do not end"))
    assert {task["state"] for task in tasks} == {"done"}
    with fleet.nodes["sick"].client() as client:
        events = list(client.stream("events", follow=False, last=500))
    assert any("ran short" in event["detail"] for event in events), "there was no shortage"
