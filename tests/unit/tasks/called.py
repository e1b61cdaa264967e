"""Nodes that are called to contests, what they hear, and what they say."""

from __future__ import annotations

from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.tasks.body import task_key
from mesh.tasks.effects import Outgoing, Send
from mesh.wire.contest_messages import HISTORY_MAX, Bid, Call, Called, Weighing
from mesh.wire.task_messages import AttemptCause, Offer
from tests.unit.tasks.crew import A, Crew

P, Q, R = NodeId(8), NodeId(9), NodeId(10)
WINDOW_S, PATIENCE_S = 0.1, 0.05
GHOST = NodeId(77)


def crew_of(*slots: int, task_id: str = "t") -> Crew:
    """Return P, Q, R with so many slots, and a task that nobody was told of."""
    crew = Crew(dict(zip((P, Q, R), slots, strict=False)))
    crew.loses = lambda _to, message: isinstance(message, Offer | Call)
    crew.submit(task_id)
    crew.loses = lambda _to, _message: False
    crew.heard.clear()
    return crew


def call_of(
    crew: Crew,
    *called: NodeId | Called,
    task_id: str = "t",
    attempt: int = 1,
    round_number: int = 0,
    window_us: int = round(WINDOW_S * 1e6),
    ballot: Ballot | None = None,
    wants: dict[str, object] | None = None,
    weights: Weighing = (),
) -> Call:
    record = crew.nodes[A].desk.voter.record(task_key(task_id))
    offer = Offer(
        task_id=task_id,
        ballot=ballot or record.ballot,
        seq=record.seq,
        attempt=attempt,
        cause=AttemptCause.FIRST,
        **(wants or {}),  # type: ignore[arg-type]  # the test's own parts
    )
    named = tuple(one if isinstance(one, Called) else told(one) for one in called)
    return Call(offer, round_number, window_us, round(PATIENCE_S * 1e6), named, weights)


def told(
    node_id: NodeId, free: int = 1, load: int = 0, *, history: int = HISTORY_MAX, lag_ms: int = 0
) -> Called:
    """Return what a caller knows of a member that is as near as can be, and told of itself just now."""
    return Called(node_id, free, load, 0, lag_ms, history, 0)


def hear(crew: Crew, own: NodeId, message: object, sender: NodeId = A) -> None:
    """Let a node hear something, and all that follows happen."""
    crew.do(crew.nodes[own], lambda tasks, now: tasks.handle_message(now, sender, message))


def said(outputs: list[Outgoing]) -> list[tuple[NodeId, object]]:
    return [(one.to, each) for one in outputs if isinstance(one, Send) for each in one.messages]


def answers(crew: Crew, own: NodeId, call: Call) -> list[object]:
    """Return what a node says at once to a call."""
    return [one for _, one in said(crew.nodes[own].tasks.handle_message(crew.now, A, call))]


def bids(crew: Crew) -> list[tuple[NodeId, Bid]]:
    return [(to, one) for to, one in crew.heard if isinstance(one, Bid)]


def is_called(crew: Crew, own: NodeId) -> bool:
    """Say whether a node that votes on nothing takes part in a contest."""
    return crew.nodes[own].tasks.heeds_members
