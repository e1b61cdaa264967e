"""Whether a node takes work: what it declares, when, and that all hear of it."""

from __future__ import annotations

from mesh.contest.standby import HOLD_S, LOOK_S
from mesh.node.availability import Declared, OwnAvailability
from mesh.placement.demand import Demand
from mesh.wire.records import EMERGENCY, Availability, Metadata

IDLE, FULL = Demand(0, 4), Demand(4, 4)


class Own:
    """A node that declares what it is told to, at once."""

    def __init__(self, meta: Metadata) -> None:
        self.availability = OwnAvailability(meta)
        self.availability.begin(0.0)
        self.said = meta

    def step(self, now: float, demand: Demand | None) -> Declared | None:
        declared = self.availability.step(now, self.said, lambda: demand)
        self.said = self.said if declared is None else declared.on(self.said)
        return declared

    def stepped(self, begin: float, demand: Demand | None) -> list[Declared]:
        """Return what it declares while the demand is so for a while."""
        looks = [begin + number * LOOK_S for number in range(int(HOLD_S / LOOK_S) + 2)]
        said = [self.step(now, demand) for now in looks]
        return [declared for declared in said if declared is not None]


def test_a_general_node_looks_at_nothing_and_says_nothing() -> None:
    own = Own(Metadata())
    assert own.availability.next_deadline() is None
    assert own.stepped(0.0, FULL) == []


def test_an_emergency_node_comes_with_the_load_and_goes_with_it() -> None:
    meta = Metadata(node_class=EMERGENCY, availability=Availability.STANDBY)
    own = Own(meta)
    assert own.stepped(0.0, FULL) == [
        (
            Availability.OPEN,
            "the load of its pool is 1.00, for 5 s above 0.8",
        )
    ]
    assert own.stepped(50.0, IDLE) == [
        (Availability.STANDBY, "the load of its pool is 0.00, for 5 s below 0.6")
    ]


def test_a_health_check_goes_before_the_load() -> None:
    meta = Metadata(node_class=EMERGENCY, availability=Availability.UNFIT)
    own = Own(meta)
    assert own.stepped(0.0, FULL) == []
    own.availability.set_fitness(is_fit=True, why="")
    assert own.step(50.0, FULL) == (
        Availability.OPEN,
        "the load of its pool is 1.00, for 5 s above 0.8",
    )
    own.availability.set_fitness(is_fit=False, why="its health check failed: exit code 1")
    assert own.step(51.0, FULL) == (
        Availability.UNFIT,
        "its health check failed: exit code 1",
    )
    assert own.stepped(52.0, IDLE) == []
    own.availability.set_fitness(is_fit=True, why="")
    declared = own.step(70.0, IDLE)
    assert declared is not None
    assert declared.availability is Availability.STANDBY
    assert declared.why.startswith("its health check passes")


def test_a_node_with_a_health_check_alone_says_that_it_passes() -> None:
    own = Own(Metadata(availability=Availability.UNFIT))
    assert own.step(0.0, IDLE) is None
    own.availability.set_fitness(is_fit=True, why="")
    assert own.step(1.0, IDLE) == (
        Availability.OPEN,
        "its health check passes",
    )


def test_others_hear_why_a_node_takes_nothing_and_each_new_reason_of_an_unfit_one() -> None:
    own = Own(Metadata(availability=Availability.UNFIT, why="not yet"))
    assert own.step(0.0, IDLE) is None
    for why, told in (
        ("exit code 1", "exit code 1"),
        ("two\nlines", "two lines"),
        ("x" * 500, "x" * 120),
    ):
        own.availability.set_fitness(is_fit=False, why=why)
        declared = own.step(1.0, IDLE)
        assert declared is not None
        assert declared.sentence == f"takes no work: {why}"
        assert own.said.why == told
        assert own.step(2.0, IDLE) is None, "it is said once"
    own.availability.set_fitness(is_fit=True, why="")
    assert own.step(3.0, IDLE) is not None
    assert own.said.why == ""


def test_who_is_in_no_mesh_yet_knows_of_no_load() -> None:
    own = Own(Metadata(node_class=EMERGENCY, availability=Availability.STANDBY))
    assert own.stepped(0.0, None) == []
    assert own.said.availability is Availability.STANDBY


def test_who_leaves_takes_nothing_more_whatever_else_happens() -> None:
    own = Own(Metadata())
    own.availability.leave()
    declared = own.step(0.0, IDLE)
    assert declared is not None
    assert declared.availability is Availability.DRAINING
    own.availability.set_fitness(is_fit=False, why="")
    assert own.step(1.0, FULL) is None


def test_what_could_not_be_declared_is_tried_again() -> None:
    own = OwnAvailability(Metadata())
    own.set_fitness(is_fit=False, why="")
    for now in range(3):
        assert own.step(float(now), Metadata(), lambda: IDLE) is not None


def test_nothing_is_due_before_the_begin() -> None:
    """Whoever was late by infinity had a lag that is no number any more."""
    own = OwnAvailability(Metadata(node_class=EMERGENCY, availability=Availability.STANDBY))
    assert own.next_deadline() is None
    own.begin(7.0)
    assert own.next_deadline() == 7.0
