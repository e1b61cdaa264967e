"""Who flaps: said once when it begins, and again after a quiet time."""

from __future__ import annotations

from mesh.membership.flaps import FLAPS_MIN, WINDOW_S, Flaps
from tests.unit.membership.pump import node_id


def test_flapping_is_said_once_when_it_begins() -> None:
    flaps = Flaps()
    said = [flaps.note(float(second), node_id(2)) for second in range(10)]
    assert said == [False] * (FLAPS_MIN - 1) + [True] + [False] * (10 - FLAPS_MIN)


def test_changes_far_apart_are_no_flapping() -> None:
    flaps = Flaps()
    assert not any(flaps.note(turn * WINDOW_S / 2, node_id(2)) for turn in range(20))


def test_it_is_said_again_after_a_quiet_time() -> None:
    flaps = Flaps()
    assert any(flaps.note(float(second), node_id(2)) for second in range(FLAPS_MIN))
    later = 10 * WINDOW_S
    assert any(flaps.note(later + second, node_id(2)) for second in range(FLAPS_MIN))
