"""How attempts ended, as a voter learns it from records: once for each, and only what says something of the member."""

from __future__ import annotations

from collections.abc import Iterable

from mesh.core.ids import NodeId
from mesh.tasks import changes as ch
from mesh.tasks.body import Result
from mesh.tasks.form import of_value
from mesh.wire.register_messages import Owner, Standing, Value
from tests.unit.tasks.made import ANNA, BERT, CARL, NOON, TOKEN, claimed, ended, marked, new
from tests.unit.tasks.stewarded import Stewarded

TASK = "thumbs-1"


class Voter(Stewarded):
    """A voter that hears of every write, and what it has noted of members."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[tuple[str, NodeId, bool]] = []
        histories = self.steward._offers.calling.histories
        note = histories.note

        def noting(now: float, queue: str, node_id: NodeId, *, ok: bool) -> None:
            self.noted.append((queue, node_id, ok))
            note(now, queue, node_id, ok=ok)

        histories.note = noting  # type: ignore[method-assign]  # it looks on

    def see(self, values: Iterable[Value]) -> None:
        """Let the voter accept these, one after the other: a claim under a new ballot, all else under the claim's."""
        ballot = None
        for seq, value in enumerate(values):
            if ballot is None or value.standing is Standing.LEASED:
                ballot = self.hold(TASK, value)
            else:
                self.write(TASK, ballot, seq, value)


def noted(*values: Value) -> list[tuple[NodeId, bool]]:
    voter = Voter()
    voter.see(values)
    assert all(queue == "default" for queue, _, _ in voter.noted)
    return [(node_id, ok) for _, node_id, ok in voter.noted]


def again(found: Value, owner: Owner = BERT) -> Value:
    """Return a task that is to be tried again, as somebody claims it once its time has come."""
    return claimed(found, owner, NOON + 3_600)


def test_a_success_and_a_failure_are_noted_with_whoever_had_the_task() -> None:
    leased = claimed(new())
    assert noted(new(), leased, ended(leased)) == [(ANNA.node_id, True)]
    assert noted(new(), leased, ended(leased, 3)) == [(ANNA.node_id, False)]


def test_each_attempt_is_noted_once_also_one_that_is_tried_again() -> None:
    first = claimed(new(retries=3))
    failed = ended(first, 1)
    second = again(failed)
    done = ended(second, owner=BERT, at=NOON + 3_700)
    told = [(ANNA.node_id, False), (BERT.node_id, True)]
    assert noted(new(retries=3), first, failed, second, done) == told
    assert noted(new(retries=3), first, failed, failed, second, second, done, done) == told


def test_ends_that_this_voter_missed_are_noted_when_it_learns_of_them() -> None:
    first = claimed(new(retries=3))
    second = again(ended(first, 1))
    failed = ended(second, 2, BERT, NOON + 3_700)
    third = claimed(failed, CARL, NOON + 9_000)
    assert noted(new(retries=3), third) == [(ANNA.node_id, False), (BERT.node_id, False)]
    done = ended(third, owner=CARL, at=NOON + 9_001)
    assert noted(new(retries=3), first, done) == [
        (ANNA.node_id, False), (BERT.node_id, False), (CARL.node_id, True)
    ]  # fmt: skip


def test_a_command_that_could_not_be_started_has_failed() -> None:
    leased = claimed(new())
    result = Result(error="no such file")
    failed = ch.Finish(NOON + 5, ANNA, 1, TOKEN, result, 0.0)(leased)
    assert failed is not None
    assert noted(new(), leased, failed) == [(ANNA.node_id, False)]


def test_what_was_cancelled_let_go_or_lost_says_nothing_of_the_member() -> None:
    leased = claimed(new())
    to_cancel = marked(leased)
    cancelled = ended(to_cancel, 143)
    released = ch.Release(NOON + 3, ANNA, 1, TOKEN, "its node is leaving")(leased)
    assert released is not None
    assert noted(new(), leased, to_cancel, cancelled) == []
    assert noted(new(), leased, released) == []
    lost = claimed(leased, BERT, NOON + 60)
    assert of_value(lost).attempts[0].error
    assert noted(new(), leased, lost) == []
    assert noted(new(), leased, lost, ended(lost, owner=BERT, at=NOON + 70)) == [
        (BERT.node_id, True)
    ]


def test_a_task_of_which_this_voter_knew_nothing_says_nothing() -> None:
    leased = claimed(new())
    assert noted(ended(leased, 1)) == []
    assert noted(ended(leased)) == []


def test_what_is_known_still_counts_after_a_change_of_voters() -> None:
    voter, leased = Voter(), claimed(new())
    voter.see([new(), leased])
    voter.steward.adopt(voter.now)
    voter.steward.adopt(voter.now)
    ballot = voter.record(TASK).ballot
    voter.write(TASK, ballot, 2, ended(leased, 1))
    voter.steward.adopt(voter.now)
    assert voter.noted == [("default", ANNA.node_id, False)]
