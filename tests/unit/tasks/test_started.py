"""When an attempt was claimed, and when its process was started: the same as a rule, and not after a standstill."""

from __future__ import annotations

from typing import Any

import pytest

from mesh.core.ids import NodeId
from mesh.tasks import changes as ch
from mesh.tasks.body import Result
from mesh.tasks.commands import GetTask
from mesh.tasks.form import of_value
from mesh.tasks.show import Seen, task_json
from mesh.wire.register_messages import Value
from mesh.wire.task_messages import CancelRun, Offer
from tests.unit.tasks.crew import CONFIG, A, B, C, Crew
from tests.unit.tasks.made import ANNA, NOON, TOKEN, claimed, ended, new

P = NodeId(8)


def shown(value: Value | None, since: float | None = None) -> tuple[float | None, float | None]:
    """Return when the latest attempt was claimed and started, as its JSON has it."""
    assert value is not None
    found = task_json(of_value(value), Seen(since=since))
    attempt = found["attempts"][-1]
    assert found["started"] == attempt["started"]
    return attempt["claimed"], attempt["started"]


def test_a_run_whose_start_nobody_has_said_is_shown_from_its_claim_on() -> None:
    leased = claimed(new())
    assert shown(leased) == (NOON + 1, NOON + 1)
    assert shown(leased, NOON + 3) == (NOON + 1, NOON + 3)  # by the node that runs it
    lost = ch.Claim(NOON + 60, ANNA, "anna")(leased)
    assert lost is not None
    assert task_json(of_value(lost))["attempts"][0]["started"] == NOON + 1


@pytest.mark.parametrize(
    "change",
    [
        ch.Finish(NOON + 5, ANNA, 1, TOKEN, Result(exit_code=0), 0.0, started=NOON + 3),
        ch.Release(NOON + 5, ANNA, 1, TOKEN, "it leaves", started=NOON + 3),
        ch.MarkCancelled(NOON + 5, ANNA, 1, TOKEN, started=NOON + 3),
    ],
)
def test_what_its_owner_writes_says_when_it_was_started(change: ch.Change) -> None:
    assert shown(change(claimed(new()))) == (NOON + 1, NOON + 3)


def test_a_start_that_is_on_record_stays_there() -> None:
    marked = ch.MarkCancelled(NOON + 4, ANNA, 1, TOKEN, started=NOON + 3)(claimed(new()))
    assert marked is not None
    assert shown(ended(marked)) == (NOON + 1, NOON + 3)


def test_an_attempt_whose_owner_says_that_it_started_nothing_has_no_start() -> None:
    assert shown(ended(claimed(new()))) == (NOON + 1, None)
    let_go = ch.Release(NOON + 5, ANNA, 1, TOKEN, "no slot")(claimed(new()))
    assert shown(let_go) == (NOON + 1, None)


def told(crew: Crew, own: NodeId) -> dict[str, Any]:
    answer = crew.give(own, lambda number: GetTask(number, "t"))
    assert answer is not None
    found: dict[str, Any] = answer.result["attempts"][0]
    return found


def test_a_claim_that_was_granted_late_has_its_start_when_its_process_has() -> None:
    crew = Crew({P: 1})
    crew.away = {P}
    crew.submit("t")
    crew.away = set()
    crew.loses = lambda to, message: to == P and not isinstance(message, Offer)
    crew.wait(CONFIG.offer_timeout_s + CONFIG.offer_retry_s * 2 + 0.5)
    crew.loses = lambda _to, _message: False
    claimed_at = crew.now
    while not (starts := crew.nodes[P].starts()):
        crew.wait(0.05)
    began = NOON - 100 + crew.now
    assert crew.now - claimed_at > 0.1
    assert told(crew, P)["started"] == pytest.approx(began, abs=0.06)
    assert told(crew, A)["started"] == told(crew, A)["claimed"]
    crew.wait(2)
    crew.exit(P, starts[0].run_id)
    for own in (P, A):
        found = told(crew, own)
        assert found["claimed"] < found["started"] == pytest.approx(began, abs=0.06)
        assert found["ended"] == pytest.approx(began + 2, abs=0.06)


def test_a_run_that_is_being_cancelled_has_its_start_on_record() -> None:
    crew = Crew({P: 1})
    crew.submit("t")
    assert crew.nodes[P].starts()
    crew.wait(1)
    node = crew.nodes[P]
    crew.do(node, lambda tasks, now: tasks.handle_message(now, B, CancelRun("t", 1)))
    assert crew.body("t").attempts[0].started == pytest.approx(NOON, abs=0.01)
    assert told(crew, C)["started"] == pytest.approx(NOON, abs=0.01)
