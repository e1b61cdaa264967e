"""Which sessions are known to be over, and of how many nodes."""

from __future__ import annotations

import pytest

from mesh.core.ids import NodeId
from mesh.registers import ended
from mesh.registers.ended import EndedSessions
from mesh.wire.register_messages import Owner

A, B, C = NodeId(1), NodeId(2), NodeId(3)


def test_a_proof_is_of_a_session_and_all_before_it() -> None:
    known = EndedSessions()
    assert not known.has(Owner(A, 1))
    known.note(A, 5)
    known.note(A, 3)  # heard late
    assert [known.has(Owner(A, boot)) for boot in (3, 5, 6)] == [True, True, False]
    assert not known.has(Owner(B, 1))


def test_whose_was_proved_over_longest_ago_is_forgotten_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ended, "NODES_MAX", 2)
    known = EndedSessions()
    for node_id in (A, B, A, C):
        known.note(node_id, 1)
    assert [known.has(Owner(one, 1)) for one in (A, B, C)] == [True, False, True]
    assert len(known) == 2
