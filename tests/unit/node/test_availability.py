"""Whether a node takes work: what it declares, when, and that all hear of it."""

from __future__ import annotations

from mesh.contest.standby import HOLD_S, LOOK_S
from mesh.node.availability import Declared, OwnAvailability
from mesh.placement.demand import Demand
from mesh.wire.records import EMERGENCY, Availability, Metadata

IDLE, FULL = Demand(0, 4), Demand(4, 4)


def stepped(own: OwnAvailability, begin: float, demand: Demand) -> list[Declared]:
    """Return what it declares while the demand is so for a while."""
    looks = [begin + number * LOOK_S for number in range(int(HOLD_S / LOOK_S) + 2)]
    said = [own.step(now, lambda: demand) for now in looks]
    return [declared for declared in said if declared is not None]


def test_a_general_node_looks_at_nothing_and_says_nothing() -> None:
    own = OwnAvailability(Metadata())
    assert own.next_deadline() is None
    assert stepped(own, 0.0, FULL) == []


def test_an_emergency_node_comes_with_the_load_and_goes_with_it() -> None:
    meta = Metadata(node_class=EMERGENCY, availability=Availability.STANDBY)
    own = OwnAvailability(meta)
    assert stepped(own, 0.0, FULL) == [
        (
            Availability.OPEN,
            "takes work: the load of its pool is 1.00, for 5 s above 0.8",
        )
    ]
    assert stepped(own, 50.0, IDLE) == [
        (Availability.STANDBY, "stands by: the load of its pool is 0.00, for 5 s below 0.6")
    ]


def test_a_health_check_goes_before_the_load() -> None:
    meta = Metadata(node_class=EMERGENCY, availability=Availability.UNFIT)
    own = OwnAvailability(meta)
    assert stepped(own, 0.0, FULL) == []
    own.set_fitness(is_fit=True, why="")
    assert own.step(50.0, lambda: FULL) == (
        Availability.OPEN,
        "takes work: the load of its pool is 1.00, for 5 s above 0.8",
    )
    own.set_fitness(is_fit=False, why="its health check failed: exit code 1")
    assert own.step(51.0, lambda: FULL) == (
        Availability.UNFIT,
        "takes no work: its health check failed: exit code 1",
    )
    assert stepped(own, 52.0, IDLE) == []
    own.set_fitness(is_fit=True, why="")
    declared = own.step(70.0, lambda: IDLE)
    assert declared is not None
    assert declared.availability is Availability.STANDBY
    assert declared.why.startswith("stands by: its health check passes")


def test_a_node_with_a_health_check_alone_says_that_it_passes() -> None:
    own = OwnAvailability(Metadata(availability=Availability.UNFIT))
    assert own.step(0.0, lambda: IDLE) is None
    own.set_fitness(is_fit=True, why="")
    assert own.step(1.0, lambda: IDLE) == (
        Availability.OPEN,
        "takes work: its health check passes",
    )
