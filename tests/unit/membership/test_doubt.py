"""An observer doubts itself before it declares a death alone, and not for ever."""

from mesh.membership.doubt import Doubt
from mesh.membership.suspicion import Suspected
from tests.unit.membership.pump import node_id


def doubt(heard_at: float) -> Doubt:
    found = Doubt(probe_interval_s=1.0, pause_tolerance_s=3.0)
    found.heard_at = heard_at
    return found


def suspected(*accusers: int) -> Suspected:
    return Suspected(
        node_id=node_id(2),
        boot=1,
        incarnation=0,
        opened_at=0.0,
        shortest_s=3.0,
        longest_s=18.0,
        enough=2,
        accusers={node_id(accuser): None for accuser in accusers},
    )


def test_an_observer_that_hears_others_judges() -> None:
    assert doubt(17.5).until(18.0, suspected(9), size=8, accused=1) is None


def test_an_observer_that_hears_nobody_waits_but_not_for_ever() -> None:
    deaf = doubt(2.0)
    assert deaf.until(18.0, suspected(9), size=8, accused=1) == 19.0
    assert deaf.until(29.5, suspected(9), size=8, accused=1) == 30.0
    assert deaf.until(30.0, suspected(9), size=8, accused=1) is None


def test_an_observer_that_alone_accuses_a_third_of_the_mesh_waits() -> None:
    hearing = doubt(18.0)
    assert hearing.until(18.0, suspected(9), size=8, accused=3) == 19.0
    assert hearing.until(18.0, suspected(9), size=32, accused=3) is None


def test_what_another_observer_shares_is_not_doubted() -> None:
    assert doubt(0.0).until(18.0, suspected(9, 10), size=8, accused=5) is None


def test_with_one_other_member_there_is_nobody_to_compare_with() -> None:
    assert doubt(0.0).until(18.0, suspected(9), size=2, accused=1) is None
