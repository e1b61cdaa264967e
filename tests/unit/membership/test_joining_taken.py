"""A name or an id that is taken: by the living, by the silent, by another process."""

import pytest

from mesh.core.events import EventKind
from mesh.wire.records import State
from tests.unit.membership.pump import Pump, address, are_equal


def test_name_of_a_living_member_is_refused_when_it_was_given() -> None:
    pump = Pump()
    pump.add(1)
    pump.add(2, 1, name="ada")
    pump.run(1.0)
    host = pump.add(3, 1, name="ada")
    pump.run(2.0)
    assert host.stop is not None
    assert host.stop.exit_code == 1
    assert "the name ada is taken" in host.stop.reason


def test_name_held_by_a_silent_member_is_free_once_it_is_declared_dead() -> None:
    pump = Pump()
    founder = pump.add(1)
    holder = pump.add(2, 1, name="ada")
    pump.run(1.0)
    pump.kill(holder)
    host = pump.add(3, 1, name="ada")
    pump.run(5.0)
    assert host.stop is None
    assert are_equal([founder, host])
    assert founder.state_of(holder) is State.DEAD


def test_default_name_that_is_taken_is_changed() -> None:
    pump = Pump()
    founder = pump.add(1)
    holder = pump.add(2, 1, name="ada")
    pump.run(1.0)
    host = pump.add(3, 1, name="ada", is_name_given=False)
    pump.run(3.0)
    assert host.swim.identity.card.name.startswith("ada-")
    assert are_equal([founder, holder, host])


def test_default_name_changed_after_another_seed_let_the_old_one_in_is_no_conflict() -> None:
    pump = Pump()
    founder = pump.add(1, name="ada")
    other = pump.add(2, 1)
    pump.run(1.0)
    # The second seed has forgotten who holds the name: it lets the newcomer in under it.
    other.swim.rumours.names._sole.clear()
    other.swim.rumours.names._held_by.clear()
    host = pump.add(3, 1, 2, name="ada", is_name_given=False)
    pump.run(5.0)
    assert host.stop is None
    assert host.swim.identity.card.name.startswith("ada-")
    assert are_equal([founder, other, host])


def test_default_name_too_long_for_a_suffix_is_cut() -> None:
    pump = Pump()
    pump.add(1, name="x" * 64)
    host = pump.add(3, 1, name="x" * 64, is_name_given=False)
    pump.run(2.0)
    assert host.swim.phase == "member"
    assert len(host.swim.identity.card.name) == 64


def test_same_id_alive_elsewhere_stops_the_newcomer() -> None:
    pump = Pump()
    pump.add(1)
    pump.add(2, 1)
    pump.run(1.0)
    clone = pump.add(2, 1, boot=9, address=address(40))
    pump.run(2.0)
    assert clone.stop is not None
    assert clone.stop.exit_code == 1
    assert "--data" in clone.stop.reason


@pytest.mark.parametrize("boot", [1, 9])
def test_same_id_at_the_seed_itself_stops_the_newcomer(boot: int) -> None:
    pump = Pump()
    founder = pump.add(1)
    clone = pump.add(1, 1, boot=boot, address=address(40))
    pump.run(2.0)
    assert clone.stop is not None
    assert founder.stop is None


def test_same_id_that_is_silent_elsewhere_is_replaced_at_once() -> None:
    pump = Pump()
    founder = pump.add(1)
    old = pump.add(2, 1)
    pump.run(1.0)
    pump.kill(old)
    moved = pump.add(2, 1, boot=2, address=address(40))
    pump.run(0.5)
    assert moved.stop is None
    assert founder.knows(moved).address == address(40)
    assert founder.kinds(moved)[-1] is EventKind.RETURN


def test_two_that_seek_with_one_id_do_not_take_each_other_for_themselves() -> None:
    pump = Pump()
    first = pump.add(2, 3)
    clone = pump.add(2, 2, boot=9, address=address(3))
    pump.run(3.0)
    assert first.stop is not None or clone.stop is not None
