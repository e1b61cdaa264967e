"""How long to wait: ranks that do not touch, windows that come to 1.1 to 1.3 bids, and what people are told."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.contest.window import (
    BIDS_MAX,
    BIDS_MIN,
    C_S_MIN,
    FACTOR_MAX,
    FACTOR_MIN,
    LOAD_CAP,
    Window,
    base_s,
    delay_s,
    wait_s,
)
from mesh.errors import LocalProtocolError

seconds = st.floats(0, 100)
units = st.floats(0, 1, exclude_max=True)
ranks = st.integers(1, 10_000)


# One member's wait.


def test_the_formula() -> None:
    assert wait_s(2.0, 1, 0.0) == 0
    assert wait_s(2.0, 1, 0.5) == pytest.approx(0.1)
    assert wait_s(2.0, 3, 0.5) == pytest.approx(2 * math.log(1 + 0.73 * 2) + 0.1)


@given(seconds, ranks, ranks, units, units)
def test_a_later_rank_and_a_later_lot_never_wait_less(
    c_s: float, rank_a: int, rank_b: int, u_a: float, u_b: float
) -> None:
    (earlier, later), (low, high) = sorted([rank_a, rank_b]), sorted([u_a, u_b])
    assert 0 <= wait_s(c_s, earlier, low) <= wait_s(c_s, later, low) <= wait_s(c_s, later, high)


def test_up_to_the_tenth_rank_nobody_waits_into_the_next() -> None:
    last = math.nextafter(1, 0)
    touching = [
        rank for rank in range(1, 50) if wait_s(1.0, rank, last) >= wait_s(1.0, rank + 1, 0)
    ]
    assert touching == list(range(10, 50))


def test_c_is_two_delays_and_grows_with_the_load_up_to_a_cap() -> None:
    assert delay_s(0.08) == 0.04
    assert base_s(0.04, 0) == 0.08
    assert base_s(0.04, 0.8) == pytest.approx(0.16)
    assert base_s(0.04, LOAD_CAP) == base_s(0.04, 2.55) == pytest.approx(0.24)


@given(seconds, seconds, st.floats(0, 3), st.floats(0, 3))
def test_c_rises_with_delay_and_load_and_has_a_floor(
    d_a: float, d_b: float, load_a: float, load_b: float
) -> None:
    (near, far), (idle, busy) = sorted([d_a, d_b]), sorted([load_a, load_b])
    assert C_S_MIN <= base_s(near, idle) <= base_s(far, idle) <= base_s(far, busy)


@pytest.mark.parametrize("number", [math.nan, math.inf, -0.001])
def test_what_is_no_time_or_load_is_refused_by_name(number: float) -> None:
    calls: dict[str, Callable[[], float]] = {
        "rtt_p99_s": lambda: delay_s(number),
        "d_s": lambda: base_s(number, 0.5),
        "load": lambda: base_s(0.1, number),
        "c_s": lambda: wait_s(number, 1, 0.5),
        "u": lambda: wait_s(0.1, 1, number),
        "base_s": lambda: Window().c_s(number),
    }
    for name, call in calls.items():
        with pytest.raises(LocalProtocolError, match=f"contest {name}: "):
            call()


def test_no_rank_before_the_first_and_no_lot_of_one() -> None:
    with pytest.raises(LocalProtocolError, match=r"contest rank: .* of 1 or more"):
        wait_s(1.0, 0, 0.5)
    with pytest.raises(LocalProtocolError, match=r"contest u: .* less than 1"):
        wait_s(1.0, 1, 1.0)


# The window.


def test_a_window_begins_with_c_as_it_is_and_keeps_the_floor() -> None:
    window = Window()
    assert (window.factor, window.advice()) == (1.0, "")
    assert window.c_s(0.2) == 0.2
    noted(window, 400, bids=1)
    assert window.factor == FACTOR_MIN
    assert window.c_s(0.2) == 0.2 * FACTOR_MIN
    assert window.c_s(0.002) == C_S_MIN


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 1000), st.booleans()), max_size=80), st.integers(0, 500))
def test_whatever_is_noted_stays_within_bounds(pairs: list[tuple[int, bool]], last: int) -> None:
    window = Window()
    for bids, is_first in pairs:
        window.note(bids, is_first)
        window.check_invariants()
    for _ in range(last):
        window.note(1000, is_first_window=False)
    window.check_invariants()


@settings(max_examples=40)
@given(st.integers(0, 60), st.integers(0, 4))
def test_the_factor_moves_only_where_the_mean_is_out_of_its_band(before: int, bids: int) -> None:
    window = Window()
    noted(window, before, bids=2)
    factor = window.factor
    window.note(bids, is_first_window=True)
    if bids == 0 or BIDS_MIN <= window.bids_mean <= BIDS_MAX:
        assert window.factor == factor
    elif window.bids_mean > BIDS_MAX:
        assert window.factor == min(FACTOR_MAX, factor * 1.02)
    else:
        assert window.factor == max(FACTOR_MIN, factor / 1.02)


def test_a_contest_without_a_bid_says_nothing_of_the_width() -> None:
    window = Window()
    noted(window, 100, bids=0, granted=0)
    assert window.factor == 1
    assert window.bids_mean == pytest.approx(1.2)
    assert window.success < 0.2


def test_one_contest_to_which_all_were_called_undoes_little() -> None:
    window = Window()
    noted(window, 50, bids=1)
    window.note(500, is_first_window=True)
    assert window.bids_mean < 1.3


def test_bids_below_none_are_refused_and_change_nothing() -> None:
    window = Window()
    with pytest.raises(LocalProtocolError, match=r"contest bids: .* of 0 or more"):
        window.note(-1, is_first_window=True)
    assert (window.contests, window.factor) == (0, 1.0)
    assert window.success == pytest.approx(0.9)


# What it comes to: a toy mesh. Each of k members hears the call a delay after it was made, waits by its rank, and bids
# unless it has heard a better bid by then.


def contest(rng: random.Random, c_s: float, ranks: list[int], delay: Callable[[], float]) -> int:
    """Return how many members bid."""
    bid_at = sorted((delay() + wait_s(c_s, rank, rng.random()), rank) for rank in ranks)
    heard: list[float] = [math.inf] * len(ranks)
    bids = 0
    for place, (at, rank) in enumerate(bid_at):
        if heard[place] <= at:
            continue
        bids += 1
        for later in range(place + 1, len(ranks)):
            if bid_at[later][1] >= rank:
                heard[later] = min(heard[later], at + delay())
    return bids


def settle(
    window: Window,
    *,
    seed: int,
    contests: int,
    bidders: int = 4,
    delay: Callable[[random.Random], float] = lambda rng: rng.expovariate(1.0),
    misjudged: float = 0.0,
) -> tuple[float, list[float]]:
    """Run contests with D = 1 s; return the mean of bids and the factors. `misjudged`: who takes itself for the first."""
    rng = random.Random(seed)
    bids, factors = 0, []
    for _ in range(contests):
        ranks = [1 if rng.random() < misjudged else rank for rank in range(1, bidders + 1)]
        made = contest(rng, window.c_s(base_s(1.0, 0)), ranks, lambda: delay(rng))
        window.note(made, is_first_window=True)
        bids += made
        factors.append(window.factor)
    return bids / contests, factors


def window_of(factor: float) -> Window:
    window = Window()
    window.factor = factor
    return window


@pytest.mark.parametrize("start", [FACTOR_MIN, 1.0, FACTOR_MAX])
@pytest.mark.parametrize("seed", range(4))
def test_from_far_off_it_settles_where_a_contest_costs_its_bids(start: float, seed: int) -> None:
    window = window_of(start)
    _, factors = settle(window, seed=seed, contests=250)
    assert 1.4 < factors[-1] < 4
    mean, factors = settle(window, seed=seed + 100, contests=1500)
    assert BIDS_MIN <= mean <= BIDS_MAX
    assert 1.4 < min(factors) < max(factors) < 4


def test_without_it_more_bids_would_be_made() -> None:
    rng = random.Random(1)
    made = [
        contest(rng, base_s(1.0, 0), [1, 2, 3, 4], lambda: rng.expovariate(1.0))
        for _ in range(3000)
    ]
    assert sum(made) / 3000 == pytest.approx(1.73, abs=0.06)


@pytest.mark.parametrize("bidders", [2, 16, 100])
def test_it_settles_so_with_any_number_of_bidders(bidders: int) -> None:
    window = Window()
    settle(window, seed=bidders, contests=250, bidders=bidders)
    mean, _ = settle(window, seed=bidders + 1, contests=600, bidders=bidders)
    assert BIDS_MIN <= mean <= BIDS_MAX


@pytest.mark.parametrize("spread_s", [0.0, 0.05, 0.2])
def test_where_delays_scatter_little_it_is_narrower(spread_s: float) -> None:
    """D is half the 99th percentile; most datagrams are quicker than that, and then c is less than two delays."""
    window = Window()

    def delay(rng: random.Random) -> float:
        return 0.5 + (rng.expovariate(1 / spread_s) if spread_s else 0.0)

    settle(window, seed=5, contests=250, delay=delay)
    mean, factors = settle(window, seed=6, contests=1000, delay=delay)
    assert BIDS_MIN <= mean <= BIDS_MAX
    assert max(factors) < 1.4


def test_where_ranks_are_misjudged_it_stops_at_its_bound() -> None:
    """Two that take themselves for the first are parted by the lot alone, which no width within reason makes enough."""
    window = Window()
    mean, factors = settle(window, seed=7, contests=1000, misjudged=0.7)
    assert mean > BIDS_MAX
    assert factors[-1] > 7
    window.check_invariants()


# Advice.


def noted(window: Window, contests: int, *, bids: int, granted: int = 10) -> Window:
    """Note contests of which `granted` in ten were granted at once."""
    for number in range(contests):
        window.note(bids, is_first_window=number % 10 < granted)
    return window


@pytest.mark.parametrize("granted", [0, 10])
def test_before_some_contests_there_is_no_advice(granted: int) -> None:
    assert noted(Window(), 31, bids=1, granted=granted).advice() == ""
    assert noted(Window(), 200, bids=1, granted=granted).advice()


def test_where_nine_in_ten_are_granted_at_once_there_is_no_advice() -> None:
    window = Window()
    for _ in range(50):
        assert noted(window, 10, bids=1, granted=9).advice() == ""


@pytest.mark.parametrize(
    ("bids", "granted", "contests", "words"),
    [
        (
            1,
            10,
            300,
            ("% of contests end in a grant", "wider than they need to be", "nearer network"),
        ),
        (1, 5, 300, ("with 1.0 bids", "lost or late", "packet loss")),
        (2, 5, 60, ("with 2.0 bids", "too narrow and are being widened", "wait")),
        (2, 5, 300, ("with 2.0 bids", "as wide as they get", "farther network")),
    ],
)
def test_advice_says_what_was_found_and_what_to_do(
    bids: int, granted: int, contests: int, words: tuple[str, ...]
) -> None:
    advice = noted(Window(), contests, bids=bids, granted=granted).advice()
    assert all(part in advice for part in ("85 to 95 % are expected", *words)), advice
    assert "\n" not in advice
    assert ". " not in advice, "one sentence"
