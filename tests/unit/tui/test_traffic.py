"""Packets a second."""

from __future__ import annotations

import pytest

from mesh.tui.traffic import WINDOW_S, Traffic


def test_rate_is_the_mean_of_the_last_ten_seconds() -> None:
    traffic = Traffic()
    sent = received = 0.0
    for second in range(60):
        traffic.note(float(second), sent, received)
        is_calm = second >= 60 - 1 - WINDOW_S
        sent += 2.0 if is_calm else 50.0
        received += 3.0 if is_calm else 70.0
    assert WINDOW_S == 10.0
    assert traffic.rates() == (2.0, 3.0)


def test_one_view_tells_no_rate_and_neither_does_the_same_one_again() -> None:
    traffic = Traffic()
    traffic.note(5.0, 1.0, 1.0)
    traffic.note(5.0, 1.0, 1.0)
    assert traffic.rates() is None


@pytest.mark.parametrize("later", [(4.0, 9.0, 9.0), (6.0, 0.0, 9.0), (6.0, 9.0, 0.0)])
def test_restarted_node_or_clock_starts_anew(later: tuple[float, float, float]) -> None:
    traffic = Traffic()
    traffic.note(5.0, 5.0, 5.0)
    traffic.note(*later)
    assert traffic.rates() is None
