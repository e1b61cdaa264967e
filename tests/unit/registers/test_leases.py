"""The times of leases: only those are taken in which no clock within bounds gives away what an owner trusts."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mesh.errors import ConfigError
from mesh.registers import leases
from mesh.registers.leases import LeaseTimes


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        (leases.lan(), (2, 10, 15, 2)),
        (leases.local(), (0.5, 2, 3, 0.5)),
        (leases.wan(), (10, 60, 90, 10)),
    ],
)
def test_the_profiles_are_those_of_the_design(
    profile: LeaseTimes, expected: tuple[float, ...]
) -> None:
    assert (profile.renew_s, profile.owner_s, profile.voter_s, profile.grace_s) == expected


def _times(**changed: float) -> LeaseTimes:
    whole = {"renew_s": 2.0, "owner_s": 10.0, "voter_s": 15.0, "grace_s": 2.0, "rho": 0.05}
    return LeaseTimes(**{**whole, **changed})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rho", 0.0),
        ("rho", 0.5),
        ("rho", math.nan),
        ("renew_s", 0.0),
        ("renew_s", 3.34),
        ("renew_s", math.nan),
        ("grace_s", -0.1),
        ("grace_s", math.nan),
        ("voter_s", 10.0),
        ("voter_s", 11.05),
        ("voter_s", math.nan),
        ("owner_s", math.inf),
        ("owner_s", math.nan),
    ],
)
def test_what_breaks_a_relation_is_refused_by_its_name(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"lease {name}: "):
        _times(**{name: value})


def test_an_owner_that_trusts_longer_than_its_voters_wait_is_refused() -> None:
    _times(owner_s=13.5)
    with pytest.raises(ConfigError, match="lease voter_s: "):
        _times(owner_s=13.6)


@given(
    owner_s=st.floats(0.01, 1000),
    voter_s=st.floats(0.01, 2000),
    rho=st.floats(0.001, 0.4),
    owner_rate=st.floats(-1, 1),
    voter_rate=st.floats(-1, 1),
)
def test_no_two_clocks_within_bounds_let_a_voter_lapse_before_its_owner(
    owner_s: float, voter_s: float, rho: float, owner_rate: float, voter_rate: float
) -> None:
    try:
        times = _times(renew_s=owner_s / 4, owner_s=owner_s, voter_s=voter_s, rho=rho)
    except ConfigError:
        assume(False)
    slow, fast = 1 + owner_rate * times.rho, 1 + voter_rate * times.rho
    assert times.owner_s / slow <= times.voter_s / fast * (1 + 1e-12)


def test_doubt_lasts_until_the_voters_have_given_up() -> None:
    assert _times().doubt_s == 17
