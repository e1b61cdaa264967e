"""Times that people write, read strictly."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from mesh.cli.times import duration, moment
from mesh.errors import ConfigError

NOON = datetime(2027, 1, 31, 12, 0, 0).astimezone().timestamp()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("300ms", 0.3), ("5s", 5.0), ("1.5h", 5400.0), ("10m", 600.0), ("2h", 7200.0), ("7d", 604800)],
)
def test_duration_is_a_number_and_a_unit(text: str, seconds: float) -> None:
    assert duration("--in", 0, 1e8)(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "5", "s", "-5s", "5 s", "5w", "\u0665s", "1e3s", "9" * 20 + "s"]
)
def test_what_is_no_duration_says_how_one_is_written(text: str) -> None:
    with pytest.raises(ConfigError, match=r"--in expects a duration such as 300ms"):
        duration("--in", 0, 1e8)(text)


def test_duration_stays_within_its_bounds() -> None:
    with pytest.raises(ConfigError, match="--in expects 1 to 60 seconds, found '2m'"):
        duration("--in", 1, 60)("2m")


@pytest.fixture(autouse=True)
def _noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: NOON)


def test_time_of_day_is_the_next_one() -> None:
    assert moment("--at")("13:00") == NOON + 3600
    assert moment("--at")("12:00:01") == NOON + 1
    assert moment("--at")("12:00") == datetime(2027, 2, 1, 12, 0).astimezone().timestamp()


def test_date_and_zone_are_heeded_and_without_a_zone_it_is_this_hosts() -> None:
    assert moment("--at")("2027-01-31T12:00") == NOON
    utc = datetime(2027, 1, 31, 3, 0, tzinfo=UTC).timestamp()
    assert moment("--at")("2027-01-31T03:00Z") == utc
    assert moment("--at")("2027-01-31T05:00+02:00") == utc
    assert moment("--at")("1801364400") == moment("--at")("@1801364400") == 1801364400


@pytest.mark.parametrize("text", ["", "soon", "25:00", "12", "2027-13-01", "0001-01-01T00:00"])
def test_what_is_no_time_says_how_one_is_written(text: str) -> None:
    with pytest.raises(ConfigError, match=r"--at expects a time such as 03:00"):
        moment("--at")(text)
