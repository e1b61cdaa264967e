"""Who may get work, in step with who is alive; and what proves that a session is over."""

from __future__ import annotations

import pytest

from mesh.core.ids import NodeId
from mesh.core.requests import Outgoing
from mesh.membership.member import Change
from mesh.node.config import Metadata
from mesh.node.node import Node
from mesh.node.roll import News, Roll
from mesh.placement.live_view import LiveView
from mesh.wire.records import Cause, Rank, State, Vitals
from mesh.wire.swim_messages import Ack, Alive, Dead, Suspect
from tests.unit.membership.pump import card, card_bytes, node_id
from tests.unit.node.talk import founder, started, tell

ALIVE = (State.ALIVE, Cause.NONE)
SUSPECT = (State.SUSPECT, Cause.NONE)
SILENT = (State.DEAD, Cause.SILENT)
CRASHED = (State.DEAD, Cause.CRASHED)
ENDED = (State.DEAD, Cause.ENDED)
LEFT = (State.LEFT, Cause.NONE)
FORGOTTEN = (State.FORGOTTEN, Cause.NONE)


@pytest.mark.parametrize(
    ("before", "after", "over"),
    [
        ((1, 0, *ALIVE), (1, 0, *SUSPECT), None),
        ((1, 0, *SUSPECT), (1, 0, *SILENT), None),
        ((1, 0, *ALIVE), (1, 0, *CRASHED), None),
        ((1, 0, *ALIVE), (1, 0, *ENDED), 1),
        ((1, 0, *SILENT), (1, 0, *ENDED), 1),
        ((1, 0, *ALIVE), (1, 0, *LEFT), 1),
        ((1, 0, *SILENT), (1, 1, *ALIVE), None),
        ((1, 0, *SILENT), (3, 0, *ALIVE), 2),
        ((1, 0, *ALIVE), (3, 0, *SILENT), 2),
        (None, (3, 0, *ALIVE), 2),
        # Whoever asks that a member be forgotten vouches for nothing.
        ((1, 0, *ALIVE), (1, 0, *FORGOTTEN), None),
        ((1, 0, *SILENT), (1, 0, *FORGOTTEN), None),
        ((1, 0, *LEFT), (1, 0, *FORGOTTEN), None),
        ((1, 0, *FORGOTTEN), (1, 3, *FORGOTTEN), None),
        ((1, 0, *SILENT), (2, 0, *FORGOTTEN), 1),
    ],
)
def test_only_what_proves_that_a_session_is_over_is_told_to_work_as_that(
    before: Rank | None, after: Rank, over: int | None
) -> None:
    roll = Roll(started()._swim.table, LiveView())
    change = Change(card=card(3), after=after, before=before, is_card_new=False)
    assert roll.apply([change]) == [News(node_id(3), over)]


def live(node: Node) -> dict[str, int]:
    """Return the free slots of whoever may get work."""
    return {member.name: member.free_slots for member in node._live.members()}


def test_suspects_and_the_dead_get_no_work_and_whoever_is_back_gets_some_again() -> None:
    node = started()
    tell(node, 2, *(Alive(card_bytes(n, meta=Metadata(slots=4))) for n in (2, 3, 4)))
    assert live(node) == {"host-1": 2, "host-2": 4, "host-3": 4, "host-4": 4}
    tell(node, 2, Suspect(node_id(3), 1, 0, node_id(2)))
    tell(node, 2, Dead(node_id(4), 1, 0, Cause.SILENT, node_id(2)))
    assert live(node) == {"host-1": 2, "host-2": 4}
    tell(node, 3, Alive(card_bytes(3, incarnation=1, meta=Metadata(slots=4))))
    assert live(node) == {"host-1": 2, "host-2": 4, "host-3": 4}


def test_vitals_say_how_many_slots_are_free() -> None:
    node = started()
    tell(node, 2, Alive(card_bytes(2, meta=Metadata(slots=4))))
    tell(node, 2, Ack(9, NodeId(0), 1, Vitals(1, 30, 20)))
    assert live(node)["host-2"] == 1


def test_proofs_reach_work_when_all_who_are_gone_are_out_of_the_view(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So nothing of one that died is offered to another that died with it."""
    node = founder()
    tell(node, 2, *(Alive(card_bytes(n)) for n in (2, 3, 4)))
    seen: list[list[str]] = []
    hear = node._work.end

    def end(now: float, over: NodeId, boot: int) -> list[Outgoing]:
        seen.append(sorted(live(node)))
        return hear(now, over, boot)

    monkeypatch.setattr(node._work, "end", end)
    tell(node, 4, *(Dead(node_id(n), 1, 0, Cause.ENDED, node_id(4)) for n in (2, 3)))
    assert seen == [["host-1", "host-4"]] * 2
