"""How tasks of each queue fared on each member: each pair by itself, and no more of them than may be."""

from __future__ import annotations

from mesh.contest.histories import Histories
from mesh.core.ids import NodeId

ANNA, BERT = NodeId(1), NodeId(2)


def test_each_pair_of_a_queue_and_a_member_is_remembered_by_itself() -> None:
    histories = Histories()
    for _ in range(10):
        histories.note(5.0, "video", ANNA, ok=False)
        histories.note(5.0, "audio", ANNA, ok=True)
    assert histories.share(5.0, "video", ANNA) < 0.2
    assert histories.share(5.0, "audio", ANNA) == 1
    assert histories.share(5.0, "video", BERT) == histories.share(5.0, "other", ANNA) == 1
    assert len(histories) == 2


def test_of_too_many_pairs_the_one_noted_longest_ago_is_forgotten() -> None:
    histories = Histories(pairs_max=2)
    for now, queue in enumerate("abac"):
        histories.note(float(now), queue, ANNA, ok=False)
        histories.check_invariants()
    assert len(histories) == 2
    assert [histories.share(4.0, queue, ANNA) < 1 for queue in "abc"] == [True, False, True]
