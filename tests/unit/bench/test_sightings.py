"""Sightings: who has reported what, and when all hold each other alive."""

from __future__ import annotations

import threading

import pytest

from mesh.bench.sightings import Sight, Sighting, SightingLog

A, B, C = "a", "b", "c"


def log_of(*sightings: tuple[int, str, Sight, str], tells_refutations: bool = True) -> SightingLog:
    log = SightingLog(tells_refutations=tells_refutations)
    for one in sightings:
        log.add(Sighting(*one))
    return log


def all_alive(names: str = "abc", at_ns: int = 1) -> list[tuple[int, str, Sight, str]]:
    return [(at_ns, one, Sight.ALIVE, other) for one in names for other in names if one != other]


def test_the_first_report_of_each_observer_counts() -> None:
    log = log_of((10, A, Sight.DEAD, C), (20, A, Sight.DEAD, C), (15, B, Sight.DEAD, C))
    assert log.wait_seen([Sight.DEAD], C, [A, B], 0, 0.0) == {A: 10, B: 15}


def test_reports_before_the_fault_do_not_count() -> None:
    log = log_of((10, A, Sight.DEAD, C), (20, A, Sight.DEAD, C))
    assert log.wait_seen([Sight.DEAD], C, [A], 11, 0.0) == {A: 20}


def test_who_has_not_reported_in_time_is_missing() -> None:
    log = log_of((10, A, Sight.DEAD, C), (10, B, Sight.SUSPECT, C))
    assert log.wait_seen([Sight.DEAD], C, [A, B], 0, 0.0) == {A: 10}


def test_either_of_two_sights_will_do() -> None:
    log = log_of((10, A, Sight.DEAD, C), (12, B, Sight.LEFT, C))
    assert log.wait_seen([Sight.DEAD, Sight.LEFT], C, [A, B], 0, 0.0) == {A: 10, B: 12}


def test_a_report_that_comes_later_ends_the_wait() -> None:
    log = log_of()
    late = threading.Timer(0.05, log.add, [Sighting(10, A, Sight.DEAD, C)])
    late.start()
    assert log.wait_seen([Sight.DEAD], C, [A], 0, 10.0) == {A: 10}
    late.join()


def test_whole_since_the_last_that_came_to_hold_another_alive() -> None:
    log = log_of(*all_alive(), (5, B, Sight.DEAD, C), (9, B, Sight.ALIVE, C))
    assert log.wait_whole("abc", 0.0) == 9


@pytest.mark.parametrize("sight", [Sight.SUSPECT, Sight.DEAD, Sight.LEFT])
def test_not_whole_while_anybody_holds_another_for_less_than_alive(sight: Sight) -> None:
    assert log_of(*all_alive(), (5, B, sight, C)).wait_whole("abc", 0.0) is None


def test_where_refutations_are_not_told_a_suspect_counts_as_alive() -> None:
    log = log_of(*all_alive(), (5, B, Sight.SUSPECT, C), tells_refutations=False)
    assert log.wait_whole("abc", 0.0) == 1


def test_an_observer_whose_process_is_gone_holds_nobody_alive() -> None:
    log = log_of(*all_alive())
    log.forget(B)
    assert log.wait_whole("abc", 0.0) is None
    assert log.wait_whole("ac", 0.0) == 1


def test_since_gives_all_that_was_seen_from_then_on() -> None:
    log = log_of(*((at, A, Sight.SUSPECT, C) for at in (1, 2, 3, 4)))
    assert [one.at_ns for one in log.since(3)] == [3, 4]
