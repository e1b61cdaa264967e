"""Handing in a task, what is refused, and how it ends."""

from __future__ import annotations

import pytest

from mesh.placement.live_view import LiveMember, Wants
from mesh.wire.work_messages import Spec
from mesh.work.commands import Submit
from mesh.work.work import WorkConfig
from tests.unit.work.hosts import job
from tests.unit.work.pump import Pump


@pytest.mark.parametrize(
    ("spec", "code"), [(job(0.1, 3), 3), (Spec(task_id="", argv=("no-such-command",)), 127)]
)
def test_an_exit_code_other_than_zero_fails_the_task(spec: Spec, code: int) -> None:
    pump = Pump([0, 1])
    task_id = pump.submit(1, spec)
    pump.finish((1, task_id))
    task = pump.task(1, task_id)
    assert (task["state"], task["result"]["exit_code"]) == ("failed", code)
    assert bool(task["result"]["error"]) == (code == 127)


def test_an_id_that_is_kept_already_starts_nothing() -> None:
    pump = Pump([1])
    assert pump.submit(1, job(0.1, task_id="twice")) == "twice"
    assert pump.submit(1, job(0.1, task_id="twice")) == "twice"
    pump.finish((1, "twice"))
    again = pump.ask(1, lambda c: Submit(c, job(0.1, task_id="twice")))
    assert again.result == {"id": "twice", "known": True}
    pump.run(1.0)
    assert len(pump[1].started) == 1


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (Spec(task_id="", argv=()), "expected a command"),
        (Spec(task_id="x" * 129, argv=("job",)), "described wrongly"),
        (Spec(task_id="", argv=("job", "\ud800")), "described wrongly"),
        (Spec(task_id="", argv=("job", *["x" * 100_000] * 6)), "in a file"),
    ],
)
def test_a_task_that_cannot_travel_is_refused(spec: Spec, words: str) -> None:
    pump = Pump([1])
    answer = pump.answers[pump.command(1, lambda c: Submit(c, spec))]
    assert answer.error is not None
    assert words in answer.error
    assert not pump[1].work._keeping._table.tasks


def test_a_full_keeper_refuses_and_a_finished_task_makes_room() -> None:
    pump = Pump([1], config=WorkConfig(tasks_max=2))
    first = pump.submit(1, job(1.0))
    pump.submit(1, job(1.0))
    answer = pump.answers[pump.command(1, lambda c: Submit(c, job(1.0)))]
    assert answer.error is not None
    assert "its limit" in answer.error
    pump.finish((1, first))
    pump.submit(1, job(1.0))


def test_the_oldest_finished_tasks_are_forgotten() -> None:
    pump = Pump([1], config=WorkConfig(finished_max=3))
    tasks = [pump.submit(1, job(0.1)) for _ in range(6)]
    pump.run(5.0)
    assert list(pump[1].work._keeping._table.tasks) == tasks[3:]
    assert pump[1].work.view(pump.now).counters["forgotten_tasks"] == 3


def test_a_leaving_node_accepts_nothing_and_says_what_ends_with_it() -> None:
    pump = Pump([1])
    kept = [pump.submit(1, job(5.0)) for _ in range(2)]
    pump.carry(pump[1], pump[1].work.stop(pump.now))
    answer = pump.answers[pump.command(1, lambda c: Submit(c, job(1.0)))]
    assert answer.error is not None
    assert "is leaving" in answer.error
    warning = f"2 unfinished tasks are kept by this node alone, to be forgotten with it: {', '.join(kept)}"
    assert warning in [event.detail for event in pump[1].events]
    pump.run(10.0)
    assert len(pump[1].started) == 1


def test_a_list_ranks_no_more_members_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mesh.work.keeping.show.RANKED_MAX", 9)
    pump = Pump([1, 1])
    for i in range(10):
        pump.submit(1, job(1000.0, task_id=f"t{i}"))
    shown = pump[1].work.view(pump.now).tasks
    assert [task["home"] is None for task in shown] == [False] * 4 + [True] * 6
    shown = pump[1].work.view(pump.now).tasks
    assert [task["home"] is None for task in shown] == [False] * 8 + [True] * 2
    assert pump.task(1, "t0")["home"] is not None


def test_ten_thousand_tasks_cost_no_scan_each(monkeypatch: pytest.MonkeyPatch) -> None:
    pump = Pump([1, 1])
    work = pump[1].work
    looked: list[int] = []
    candidates = pump[1].view.candidates

    def count(wants: Wants) -> list[LiveMember]:
        looked.append(1)
        return candidates(wants)

    monkeypatch.setattr(pump[1].view, "candidates", count)
    for i in range(10_000):
        pump.submit(1, job(1000.0, task_id=f"t{i}"))
    pump.run(0.2)
    assert work._keeping._table.unfinished == 10_000
    assert len(looked) < 50
