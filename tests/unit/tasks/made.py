"""Tasks for tests: one of each state, and any task at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.tasks import changes as ch
from mesh.tasks.body import Attempt, Body, End, Result, Terms
from mesh.tasks.form import of_value, to_value
from mesh.wire.register_messages import Owner, Value
from mesh.wire.task_messages import AttemptCause, Decline, PlacedBy, Placement, TaskState
from mesh.wire.work_messages import Spec
from tests.unit.wire.strategies import ids, specs, texts, uints, words

NOON = 1_700_000_000.0
ANNA, BERT, CARL = Owner(NodeId(1), 11), Owner(NodeId(2), 22), Owner(NodeId(3), 33)
TOKEN = Ballot(0, 1, 7, NodeId(1))
SPEC = Spec(task_id="thumbs-1", argv=("convert", "a.png"), needs=(("gpu", 1),), pool="image")


def new(retries: int = 0, *, not_before: float = 0.0, task_id: str = "thumbs-1") -> Value:
    spec = replace(SPEC, task_id=task_id)
    terms = Terms(retries=retries, retry_delay_s=10.0, retry_delay_s_max=60.0)
    return to_value(ch.created(spec, terms, NOON, not_before=not_before, origin="anna"))


def claimed(found: Value, owner: Owner = ANNA, at: float = NOON + 1) -> Value:
    value = ch.Claim(at, owner, f"node-{owner.node_id}")(found)
    assert value is not None
    return value


def ended(found: Value, code: int = 0, owner: Owner = ANNA, at: float = NOON + 5) -> Value:
    attempt = of_value(found).attempt
    value = ch.Finish(at, owner, attempt, TOKEN, Result(exit_code=code), 0.0)(found)
    assert value is not None
    return value


def marked(found: Value, owner: Owner = ANNA) -> Value:
    value = ch.MarkCancelled(NOON + 2, owner, of_value(found).attempt, TOKEN)(found)
    assert value is not None
    return value


def every_state() -> dict[str, Value]:
    """A task in each state, and in each way of being there."""
    ready, leased = new(), claimed(new())
    cancelled = ch.Cancel(NOON + 3)(new())
    released = ch.Release(NOON + 3, ANNA, 1, TOKEN, "it is leaving")(leased)
    assert cancelled is not None
    assert released is not None
    return {
        "ready": ready,
        "ready again": released,
        "scheduled": new(not_before=NOON + 60),
        "scheduled for a retry": ended(claimed(new(retries=1)), 1),
        "leased": leased,
        "leased, to be cancelled": marked(leased),
        "done": ended(leased),
        "failed": ended(leased, 1),
        "cancelled": cancelled,
    }


times = st.floats(0, 4e9)
durations = st.floats(0, 1e8)
ballots = st.builds(Ballot, uints(32), uints(32), uints(48), uints(64).map(NodeId))
terms = st.builds(
    Terms,
    retries=uints(16),
    retry_delay_s=durations,
    retry_delay_s_max=durations,
    retain_s=durations,
)
results = st.builds(
    Result,
    exit_code=st.none() | uints(8),
    error=texts(1_000),
    output_bytes=uints(48),
    output_dropped_bytes=uints(48),
    stdout_tail=st.binary(max_size=40),
    stderr_tail=st.binary(max_size=40),
)
placements = st.builds(
    Placement, st.sampled_from(PlacedBy), st.none() | ids, st.sampled_from(Decline)
)
_ended_attempts = st.builds(
    Attempt,
    number=st.just(1),
    node_id=ids,
    boot=uints(48),
    name=words(chars_min=0),
    cause=st.sampled_from(AttemptCause),
    token=st.none() | ballots,
    claimed=times,
    started=st.none() | times,
    placement=st.none() | placements,
    ended=times,
    end=st.sampled_from([End.VERDICT, End.LOST, End.RELEASED]),
    exit_code=st.none() | uints(8),
    error=texts(1_000),
)


@st.composite
def bodies(draw: st.DrawFn) -> Body:
    """Any task that is consistent in itself."""
    state = draw(st.sampled_from(TaskState))
    is_leased = state is TaskState.LEASED
    past = draw(st.lists(_ended_attempts, min_size=int(is_leased), max_size=4))
    numbers = sorted(
        draw(st.sets(st.integers(1, 2**32 - 1), min_size=len(past), max_size=len(past)))
    )
    attempts = [replace(one, number=n) for one, n in zip(past, numbers, strict=True)]
    cause = draw(st.sampled_from(AttemptCause))
    if is_leased:
        attempts[-1] = replace(attempts[-1], ended=None, end=End.OPEN, cause=cause)
    may_be_marked = is_leased or state.is_terminal
    agreed = draw(terms)
    parts: dict[str, Any] = {
        "is_cancel_requested": may_be_marked and draw(st.booleans()),
        "not_before": draw(st.floats(1, 4e9)) if state is TaskState.SCHEDULED else 0.0,
        "ended": draw(times) if state.is_terminal else None,
        "result": draw(results) if state.is_terminal else None,
        "retries_left": draw(st.integers(0, agreed.retries)),
    }
    return Body(
        spec=draw(specs),
        terms=agreed,
        state=state,
        created=draw(times),
        origin=draw(words(chars_min=0)),
        retry_of=draw(texts(128)),
        attempt=attempts[-1].number if attempts else 0,
        cause=cause,
        attempts=tuple(attempts),
        **parts,
    )
