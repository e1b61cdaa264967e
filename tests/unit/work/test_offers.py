"""A task finds a node: its home first, then whoever has room; and another when that one is lost."""

from __future__ import annotations

from typing import Any

from mesh.core.events import EventKind
from mesh.wire.records import Metadata
from mesh.wire.work_messages import Offer, OfferAnswer, Report
from mesh.work.work import WorkConfig
from tests.unit.work.hosts import job
from tests.unit.work.pump import Pump


def ran_at(pump: Pump) -> dict[str, int]:
    return {host.name: len(host.started) for host in pump.hosts.values()}


def causes(task: dict[str, Any]) -> list[str]:
    return [attempt["cause"] for attempt in task["attempts"]]


def test_the_home_runs_the_task() -> None:
    pump = Pump([1, 1, 1])
    task_id = pump.submit(1, job(1.0))
    home = pump.task(1, task_id)["home"]
    pump.finish((1, task_id))
    task = pump.task(1, task_id)
    assert task["state"] == "done"
    assert task["owner"] == task["attempts"][0]["node"] == home
    assert ran_at(pump)[home] == 1
    assert task["result"]["exit_code"] == 0


def test_the_process_finds_its_task_in_its_environment() -> None:
    pump = Pump([1])
    task_id = pump.submit(1, job(0.1, task_id="mine", env=(("A", "1"), ("MESH_ATTEMPT", "9"))))
    pump.finish((1, task_id))
    assert pump[1].started[0].env == {
        "A": "1",
        "MESH_TASK_ID": "mine",
        "MESH_ATTEMPT": "1",
        "MESH_IDEMPOTENCY_KEY": "mine",
    }


def test_declines_walk_on_to_the_next_candidate_and_leave_no_attempt() -> None:
    pump = Pump([1, 1, 1])
    tasks = [pump.submit(1, job(5.0, key="same")) for _ in range(3)]
    pump.run(1.0)
    assert ran_at(pump) == {"n1": 1, "n2": 1, "n3": 1}
    for task_id in tasks:
        assert len(pump.task(1, task_id)["attempts"]) == 1


def test_tasks_beyond_all_slots_wait_and_say_for_what() -> None:
    pump = Pump([1, 1])
    tasks = [pump.submit(1, job(5.0)) for _ in range(3)]
    pump.run(1.0)
    waiting = [t for t in (pump.task(1, i) for i in tasks) if t["state"] == "ready"]
    assert [t["waits_for"] for t in waiting] == ["a free slot: n1, n2 are all busy"]
    pump.finish(*[(1, t) for t in tasks])


def test_a_task_that_no_member_fits_waits_until_one_joins() -> None:
    pump = Pump([1, 1], metas={2: Metadata(pool="gpu", slots=1)})
    pump[1].view.drop(pump[2].node_id)
    task_id = pump.submit(1, job(0.1, pool="gpu"))
    pump.run(5.0)
    task = pump.task(1, task_id)
    assert (task["state"], task["home"]) == ("ready", None)
    assert task["waits_for"] == "a member that is in pool gpu, has a slot (none now)"
    pump.meet(pump[1], pump[2])
    pump.finish((1, task_id), within_s=1.0)
    assert pump.task(1, task_id)["owner"] == "n2"


def test_tasks_of_one_lane_start_in_the_order_of_submission() -> None:
    pump = Pump([1])
    tasks = [pump.submit(1, job(0.1)) for _ in range(20)]
    pump.finish(*[(1, t) for t in tasks])
    assert [start.env["MESH_TASK_ID"] for start in pump[1].started] == tasks


def test_a_freed_slot_is_used_at_once() -> None:
    pump = Pump([1, 1])
    tasks = [pump.submit(1, job(0.5)) for _ in range(20)]
    began = pump.now
    pump.finish(*[(1, t) for t in tasks])
    assert pump.now - began < 20 / 2 * 0.5 + 0.5


def test_two_keepers_share_one_nodes_slots_fairly() -> None:
    pump = Pump([0, 0, 2])
    mine = [pump.submit(1, job(0.2)) for _ in range(40)]
    theirs = [pump.submit(2, job(0.2)) for _ in range(40)]
    began = pump.now
    pump.run(4.0)
    done = [sum(pump.is_over(n, t) for t in tasks) for n, tasks in ((1, mine), (2, theirs))]
    assert abs(done[0] - done[1]) <= 6, done
    pump.finish(*[(1, t) for t in mine], *[(2, t) for t in theirs])
    assert pump.now - began < 80 * 0.2 / 2 * 1.15


def test_needs_are_counted_and_a_lack_of_them_is_busy_only_for_now() -> None:
    gpu = Metadata(slots=4, offers=(("gpu", 2),))
    pump = Pump([0, 4], metas={2: gpu})
    tasks = [pump.submit(1, job(1.0, needs=(("gpu", 1),))) for _ in range(4)]
    plain = [pump.submit(1, job(1.0)) for _ in range(2)]
    pump.run(0.5)
    assert len(pump[2].started) == 4
    assert pump.messages < 40, pump.carried
    pump.finish(*[(1, t) for t in tasks + plain])


def test_more_than_is_declared_is_never_offered() -> None:
    pump = Pump([1], metas={1: Metadata(slots=1, offers=(("gpu", 1),))})
    task_id = pump.submit(1, job(1.0, needs=(("gpu", 2),)))
    pump.run(5.0)
    assert (
        pump.task(1, task_id)["waits_for"]
        == "a member that offers gpu 2 or more, has a slot (none now)"
    )


def test_a_member_whose_card_promises_more_than_it_has_is_left_alone() -> None:
    pump = Pump([0, 1], metas={2: Metadata(slots=1)})
    liar = pump[2]
    liar.meta = Metadata(slots=1, offers=(("gpu", 9),))
    pump.meet(pump[1], liar)
    pump.submit(1, job(1.0, needs=(("gpu", 9),)))
    pump.run(20.0)
    assert pump.carried["Offer"] == 1


def test_a_mesh_that_is_full_is_not_stormed_with_offers() -> None:
    pump = Pump([1, 1, 1, 1])
    for _ in range(200):
        pump.submit(1, job(1000.0))
    pump.run(1.0)
    settled = pump.carried["Offer"]
    pump.run(30.0)
    assert settled < 20
    assert pump.carried["Offer"] - settled < 70  # one lane asks one member about once a second


def test_the_home_dies_and_the_next_candidate_takes_over() -> None:
    pump = Pump([0, 1, 1])
    task_id = pump.submit(1, job(3.0))
    pump.run(1.0)
    first = int(pump.task(1, task_id)["owner"][1:])
    pump.kill(first)
    pump.finish((1, task_id))
    task = pump.task(1, task_id)
    assert task["state"] == "done"
    assert causes(task) == ["first", "crash"]
    assert task["attempts"][0]["error"] == f"n{first} was declared dead (silent)"
    assert task["attempts"][0]["exit_code"] is None
    lost = [e for e in pump[1].events if e.kind is EventKind.TASK and e.state == "ready"]
    assert [(e.member, e.cause) for e in lost] == [(f"n{first}", "crash")]


def test_an_owner_that_leaves_releases_its_attempts() -> None:
    pump = Pump([0, 1, 1])
    task_id = pump.submit(1, job(3.0))
    pump.run(1.0)
    first = pump[int(pump.task(1, task_id)["owner"][1:])]
    pump.carry(first, first.work.stop(pump.now))
    assert (
        f"stopping 1 task that runs here: {task_id} (kept by n1); a keeper that stays has them run elsewhere"
        in [event.detail for event in first.events]
    )
    pump.run(0.5)
    assert first.work.free_slots == 0
    assert first.work.used == 0
    pump.finish((1, task_id))
    task = pump.task(1, task_id)
    assert causes(task) == ["first", "released"]
    assert task["attempts"][1]["node"] != first.name


def test_an_owner_that_has_left_counts_as_released_too() -> None:
    pump = Pump([0, 1, 1])
    task_id = pump.submit(1, job(3.0))
    pump.run(1.0)
    first = pump[int(pump.task(1, task_id)["owner"][1:])]
    pump.kill(first.number, noticed_after_s=None)
    pump.declare(pump[1], first, 1, "left")
    pump.finish((1, task_id))
    task = pump.task(1, task_id)
    assert causes(task) == ["first", "released"]
    assert task["attempts"][0]["error"] == f"{first.name} left"


def test_a_lost_answer_to_an_offer_is_asked_for_again_and_runs_once() -> None:
    pump = Pump([0, 1])
    lost: list[object] = []

    def lose_first(_a: object, _b: object, message: object) -> bool:
        lost.append(message)
        return isinstance(message, OfferAnswer) and len(lost) == 1

    pump.lose_reply = lose_first
    task_id = pump.submit(1, job(10.0))
    pump.finish((1, task_id))
    task = pump.task(1, task_id)
    assert len(pump[2].started) == 1
    assert causes(task) == ["first"]
    assert task["attempt"] == 1


def test_an_answer_is_asked_for_even_after_the_run_has_ended() -> None:
    pump = Pump([0, 1])
    pump.lose_reply = lambda _a, _b, m: isinstance(m, OfferAnswer) and pump.now < 105
    task_id = pump.submit(1, job(0.5))
    pump.finish((1, task_id))
    assert len(pump[2].started) == 1
    assert pump.task(1, task_id)["state"] == "done"


def test_an_offer_that_is_never_answered_goes_on_under_the_next_number() -> None:
    pump = Pump([0, 1, 1])
    task_id = pump.submit(1, job(0.5))
    deaf = int(pump.task(1, task_id)["home"][1:])
    pump.lose_request = lambda _a, b, _m: b.number == deaf
    pump.finish((1, task_id))
    task = pump.task(1, task_id)
    assert causes(task) == ["first", "lapse"]
    assert [a["number"] for a in task["attempts"]] == [1, 2]
    assert "did not answer" in task["attempts"][0]["error"]


def test_a_member_that_dies_with_an_offer_open_may_have_started_it() -> None:
    pump = Pump([0, 1, 1])
    task_id = pump.submit(1, job(0.5))
    home = int(pump.task(1, task_id)["home"][1:])
    pump.lose_reply = lambda a, _b, _m: a.number == home
    pump.run(0.01)
    pump.kill(home)
    pump.finish((1, task_id))
    assert causes(pump.task(1, task_id)) == ["first", "crash"]


def test_an_unanswered_offer_that_is_then_declined_leaves_no_record_but_a_new_number() -> None:
    pump = Pump([0, 1, 1])
    pump.lose_request = lambda _a, _b, m: isinstance(m, Offer) and pump.now < 102
    task_id = pump.submit(1, job(0.5))
    home = int(pump.task(1, task_id)["home"][1:])
    pump.submit(home, job(30.0, key=pump.task(1, task_id)["id"]))  # its slot is gone meanwhile
    pump.finish((1, task_id))
    task = pump.task(1, task_id)
    assert causes(task) == ["first"]
    assert task["attempt"] == 2
    assert task["owner"] != f"n{home}"


def test_a_result_after_a_false_death_counts_while_nobody_else_was_asked() -> None:
    pump = Pump([0, 1])
    task_id = pump.submit(1, job(3.0))
    pump.run(1.0)
    pump.declare(pump[1], pump[2], 1, "declared dead (silent)")
    assert pump.task(1, task_id)["state"] == "ready"
    pump.finish((1, task_id))
    task = pump.task(1, task_id)
    assert task["state"] == "done"
    assert len(task["attempts"]) == 1


def test_a_result_after_a_false_death_is_stale_once_another_attempt_started() -> None:
    pump = Pump([0, 1, 1])
    task_id = pump.submit(1, job(3.0, 0, "a", "b"))
    pump.run(1.0)
    first = pump[int(pump.task(1, task_id)["owner"][1:])]
    pump.declare(pump[1], first, 1, "declared dead (silent)")
    pump.finish((1, task_id))
    task = pump.task(1, task_id)
    assert causes(task) == ["first", "crash"]
    assert [a["exit_code"] for a in task["attempts"]] == [None, 0]
    assert task["owner"] != first.name


def test_a_stale_run_is_stopped_when_it_writes() -> None:
    pump = Pump([0, 1, 1], config=WorkConfig(output_bytes_max=200, output_retry_s=0.5))
    task_id = pump.submit(1, job(100.0, 0, *["x" * 60] * 400))
    pump.lose_request = lambda _a, _b, m: type(m).__name__ == "OutputPiece" and pump.now > 100.05
    pump.run(1.0)
    first = pump[int(pump.task(1, task_id)["owner"][1:])]
    pump.declare(pump[1], first, 1, "declared dead (silent)")
    pump.run(0.5)
    pump.lose_request = lambda _a, _b, _m: False
    pump.run(5.0)
    assert first.stopped
    assert first.work.used == 0


def test_a_keeper_that_dies_costs_its_owner_nothing_but_a_warning() -> None:
    pump = Pump([0, 1])
    pump.submit(1, job(3.0, 0, "some", "output"))
    pump.run(1.0)
    pump.kill(1)
    pump.run(5.0)
    assert pump[2].work.used == 0
    assert not pump[2].stopped
    warnings = [e for e in pump[2].events if e.kind is EventKind.WARN]
    assert len(warnings) == 1
    assert "nobody takes the report" in warnings[0].detail


def test_a_keeper_that_was_wrongly_believed_dead_still_gets_its_report() -> None:
    pump = Pump([0, 1])
    task_id = pump.submit(1, job(3.0, 0, "some", "output"))
    pump.run(1.0)
    pump.declare(pump[2], pump[1], 1, "declared dead (silent)")
    pump.run(4.0)
    assert pump.task(1, task_id)["state"] == "leased"
    pump.meet(pump[2], pump[1])
    pump.finish((1, task_id))
    assert pump.task(1, task_id)["state"] == "done"


def test_an_owner_that_restarted_unnoticed_is_found_out() -> None:
    pump = Pump([0, 1])
    task_id = pump.submit(1, job(3.0))
    pump.run(1.0)
    pump.kill(2, noticed_after_s=None)
    pump.restart(2, told=False)
    pump.finish((1, task_id))
    task = pump.task(1, task_id)
    assert causes(task) == ["first", "lapse"]
    assert task["attempts"][0]["error"] == "n2 no longer knows this attempt"


def test_an_owner_that_restarts_ends_its_attempts() -> None:
    pump = Pump([0, 1])
    task_id = pump.submit(1, job(3.0))
    pump.run(1.0)
    pump.kill(2, noticed_after_s=None)
    pump.restart(2)
    pump.finish((1, task_id))
    task = pump.task(1, task_id)
    assert causes(task) == ["first", "crash"]
    assert task["attempts"][0]["error"] == "n2 restarted"


def test_reports_are_repeated_until_they_are_answered() -> None:
    pump = Pump([0, 1])
    pump.lose_request = lambda _a, _b, m: isinstance(m, Report) and pump.now < 109
    task_id = pump.submit(1, job(1.0))
    pump.finish((1, task_id))
    assert pump.task(1, task_id)["state"] == "done"
    assert len(pump[2].started) == 1
