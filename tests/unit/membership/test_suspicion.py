from mesh.membership.suspicion import Suspected, Suspicions, suspicion_timeout
from tests.unit.membership.pump import node_id


def suspected(number: int, incarnation: int = 0) -> Suspected:
    return Suspected(node_id(number), 1, incarnation, node_id(9))


def timeout(size: int) -> float:
    return suspicion_timeout(size=size, probe_interval_s=1.0, multiplier=4.0, pause_tolerance_s=3.0)


def test_timeout_grows_with_the_logarithm_of_the_mesh() -> None:
    assert timeout(1) == timeout(10) == 4.0
    assert timeout(1000) == 12.0


def test_timeout_is_never_below_the_pause_tolerance() -> None:
    short = suspicion_timeout(size=5, probe_interval_s=0.2, multiplier=3.0, pause_tolerance_s=2.0)
    assert short == 2.0


def test_suspicion_runs_out_once() -> None:
    suspicions = Suspicions()
    suspicions.open(suspected(2), 5.0)
    assert suspicions.take_due(4.9) == []
    assert suspicions.take_due(5.0) == [suspected(2)]
    assert suspicions.take_due(6.0) == []
    assert len(suspicions) == 0


def test_closed_suspicion_never_runs_out() -> None:
    suspicions = Suspicions()
    suspicions.open(suspected(2), 5.0)
    suspicions.close(node_id(2))
    assert suspicions.next_deadline() is None
    assert suspicions.take_due(9.0) == []


def test_suspicion_of_a_newer_incarnation_has_its_own_time() -> None:
    suspicions = Suspicions()
    suspicions.open(suspected(2), 5.0)
    suspicions.open(suspected(2, incarnation=1), 8.0)
    assert suspicions.take_due(5.0) == []
    assert suspicions.take_due(8.0) == [suspected(2, incarnation=1)]
