from dataclasses import replace

from mesh.membership.profile import lan
from mesh.membership.suspicion import Suspected, Suspicions
from tests.unit.membership.pump import node_id


def suspected(number: int, deadline: float, incarnation: int = 0) -> Suspected:
    return Suspected(
        node_id=node_id(number),
        boot=1,
        incarnation=incarnation,
        accuser=node_id(9),
        opened_at=0.0,
        deadline=deadline,
    )


def timeout(size: int) -> float:
    return replace(lan(), suspicion_multiplier=4.0).suspicion_s(size)


def test_timeout_grows_with_the_logarithm_of_the_mesh() -> None:
    assert timeout(1) == timeout(10) == 4.0
    assert timeout(1000) == 12.0


def test_timeout_is_never_below_the_pause_tolerance() -> None:
    assert replace(lan(), suspicion_multiplier=0.5).suspicion_s(5) == lan().pause_tolerance_s


def test_suspicion_runs_out_once() -> None:
    suspicions = Suspicions()
    suspicions.open(suspected(2, 5.0))
    assert suspicions.take_due(4.9) == []
    assert suspicions.take_due(5.0) == [suspected(2, 5.0)]
    assert suspicions.take_due(6.0) == []
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
