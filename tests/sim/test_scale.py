"""What more members cost: nothing but memory, and a little time for news to get round."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mesh.sim.scale import Calm, Noticed, measure_calm, measure_join
from mesh.sim.scale_report import Point, to_svg, to_text

KNOWN_S = 0.150  # a kill, at 1 ms of network delay


def flat(calm: Calm, small: Calm) -> None:
    """Assert that a larger mesh costs a member no more than a small one, and misses nothing."""
    assert calm.packets_s == pytest.approx(small.packets_s, rel=0.1)
    assert calm.bytes_s == pytest.approx(small.bytes_s, rel=0.1)
    assert calm.killed.last_s is not None
    assert calm.killed.last_s <= KNOWN_S
    assert calm.false_accusations == 0
    assert calm.lost.last_s is not None
    assert calm.paused.last_s is not None
    assert calm.lost.suspected_s is not None
    assert calm.lost.suspected_s < 3.0, "silence is missed by the observer whose turn is next"


def test_a_hundred_and_fifty_members_send_no_more_each_than_fifty_and_a_kill_is_known_at_once() -> (
    None
):
    large, small = (measure_calm(1, n, settle_s=3.0, idle_s=5.0) for n in (150, 50))
    flat(large, small)


@pytest.mark.sweep
def test_three_thousand_members_send_no_more_each_than_a_hundred_and_a_kill_is_known_at_once() -> (
    None
):
    large, small = (measure_calm(1, n, settle_s=3.0, idle_s=5.0) for n in (3000, 100))
    flat(large, small)


def test_members_that_join_through_one_seed_all_see_all() -> None:
    joined_s = measure_join(1, 24)
    assert joined_s is not None
    assert joined_s < 3.0


def test_the_same_seed_measures_the_same() -> None:
    first, again = (measure_calm(3, 12, settle_s=1.0, idle_s=2.0) for _ in range(2))
    assert first == again


POINT = Point(
    calm=Calm(
        members=10,
        packets_s=2.0,
        bytes_s=80.0,
        killed=Noticed(suspected_s=0.003, first_s=0.004, last_s=0.1),
        lost=Noticed(suspected_s=1.0, first_s=4.0, last_s=4.1),
        paused=Noticed(suspected_s=1.1, first_s=4.1, last_s=None),
        spread_s=0.1,
        false_accusations=0,
    ),
    joined_s=1.0,
    cpu_s=2.0,
    peak_mib=5.0,
)


def test_the_figure_shows_each_size_once_a_curve_and_leaves_out_what_never_was() -> None:
    larger = replace(POINT, calm=replace(POINT.calm, members=100, spread_s=None), joined_s=None)
    svg = to_svg([POINT, larger])
    assert svg.startswith("<svg")
    assert svg.rstrip().endswith("</svg>")
    assert svg.count("<circle") == 8 * 2 - 2


def test_the_table_says_what_did_not_happen() -> None:
    head, _, row = to_text([replace(POINT, joined_s=None)]).splitlines()
    shown = dict(zip(head.split(" | "), row.split(" | "), strict=True))
    assert shown["killed: first"] == "4 ms"
    assert shown["joined"] == "-"
    assert row.count("never") == 1
    assert POINT.to_json()["paused"]["last_s"] is None
    assert POINT.member_kib == 512.0
