"""How long a suspect has, given who shares the suspicion."""

import math
from dataclasses import replace

import pytest

from mesh.membership.lifeguard import LifeguardConfig, plain_swim
from mesh.membership.profile import REFUTATION_ROUNDS, lan
from mesh.membership.suspicion import Suspected, Suspicions
from mesh.wire.records import Cause
from mesh.wire.swim_messages import Dead
from tests.unit.membership.pump import node_id


def suspected(number: int, due: float, incarnation: int = 0, *, enough: int = 0) -> Suspected:
    return Suspected(
        node_id=node_id(number),
        boot=1,
        incarnation=incarnation,
        opened_at=0.0,
        shortest_s=due,
        longest_s=6 * due,
        enough=enough,
        accusers={node_id(9): None},
    )


def test_without_observers_the_timeout_grows_with_the_logarithm_of_the_mesh() -> None:
    swim = replace(lan(), suspicion_multiplier=4.0, lifeguard=plain_swim())
    assert swim.suspicion_s(1) == swim.suspicion_s(10) == 4.0
    assert swim.suspicion_s(1000) == 12.0


def test_with_observers_a_refutation_has_rounds_of_gossip_to_get_round() -> None:
    assert lan().suspicion_s(1) == lan().suspicion_s(1000) == lan().pause_tolerance_s
    assert lan().suspicion_s(100_000) == pytest.approx(5 * REFUTATION_ROUNDS * 0.1)


@pytest.mark.parametrize("lifeguard", [plain_swim(), LifeguardConfig()])
def test_timeout_is_never_below_the_pause_tolerance(lifeguard: LifeguardConfig) -> None:
    swim = replace(lan(), suspicion_multiplier=0.5, lifeguard=lifeguard)
    assert swim.suspicion_s(5) == lan().pause_tolerance_s


def test_suspicion_runs_out_once() -> None:
    suspicions = Suspicions()
    suspicions.open(suspected(2, 5.0))
    assert suspicions.take_due(4.9) == []
    assert suspicions.take_due(5.0) == [suspected(2, 5.0)]
    assert suspicions.take_due(6.0) == []
    suspicions.close(node_id(2))
    assert len(suspicions) == 0


def test_closed_suspicion_never_runs_out() -> None:
    suspicions = Suspicions()
    suspicions.open(suspected(2, 5.0))
    suspicions.close(node_id(2))
    assert suspicions.next_deadline() is None
    assert suspicions.take_due(9.0) == []


def test_suspicion_of_a_newer_incarnation_has_its_own_time() -> None:
    suspicions = Suspicions()
    suspicions.open(suspected(2, 5.0))
    suspicions.open(suspected(2, 8.0, incarnation=1))
    assert suspicions.take_due(5.0) == []
    assert suspicions.take_due(8.0) == [suspected(2, 8.0, incarnation=1)]


def test_each_independent_accuser_shortens_the_time_by_less_than_the_one_before() -> None:
    suspicions = Suspicions()
    suspicions.open(suspected(2, 3.0, enough=3))
    dues = [suspicions.next_deadline()]
    for accuser in (11, 12, 13):
        assert suspicions.confirm(node_id(2), node_id(accuser))
        dues.append(suspicions.next_deadline())
    assert dues == pytest.approx([18.0, 10.5, 18 - 15 * math.log(3) / math.log(4), 3.0])


def test_the_same_accuser_counts_once_and_more_than_enough_count_no_more() -> None:
    suspicions = Suspicions()
    suspicions.open(suspected(2, 3.0, enough=2))
    assert not suspicions.confirm(node_id(2), node_id(9))
    assert suspicions.confirm(node_id(2), node_id(11))
    assert not suspicions.confirm(node_id(2), node_id(11))
    assert suspicions.confirm(node_id(2), node_id(12))
    assert not suspicions.confirm(node_id(2), node_id(13))


def test_where_nobody_could_share_it_a_suspicion_runs_out_soonest() -> None:
    suspicions = Suspicions()
    suspicions.open(suspected(2, 3.0, enough=0))
    assert suspicions.next_deadline() == 3.0


def test_time_that_this_node_slept_is_given_to_the_suspect() -> None:
    suspicions = Suspicions()
    suspicions.open(suspected(2, 3.0))
    suspicions.sleep(10.0)
    assert suspicions.take_due(12.9) == []
    assert [s.node_id for s in suspicions.take_due(13.0)] == [node_id(2)]


def test_only_what_this_node_alone_accuses_counts_as_alone() -> None:
    suspicions = Suspicions()
    for number in (2, 3, 4):
        suspicions.open(suspected(number, 3.0, enough=2))
    suspicions.confirm(node_id(2), node_id(11))
    assert suspicions.alone(node_id(9)) == 2
    assert suspicions.alone(node_id(11)) == 0


def test_who_was_told_dead_has_a_moment_and_no_more() -> None:
    suspicions = Suspicions()
    suspicions.open(suspected(2, 5.0))
    suspicions.hurry(Dead(node_id(2), 1, 0, Cause.CRASHED, node_id(7)), 1.0)
    suspicions.hurry(Dead(node_id(2), 1, 0, Cause.SILENT, node_id(8)), 3.0)
    assert suspicions.next_deadline() == 1.0


def test_no_suspicion_runs_out_while_a_refutation_may_still_be_on_its_way() -> None:
    suspicions = Suspicions()
    suspicions.open(suspected(2, 5.0))
    suspicions.hold(7.0, patience_s=100.0)
    assert suspicions.take_due(6.9) == []
    assert len(suspicions.take_due(7.0)) == 1


def test_suspicions_are_held_for_a_bounded_time_however_often_the_observer_was_deaf() -> None:
    suspicions = Suspicions()
    suspicions.open(suspected(2, 5.0))
    for until in range(10, 100, 10):
        suspicions.hold(float(until), patience_s=12.0)
    assert suspicions.next_deadline() == 6 * 5.0 + 12.0
