"""The times of comparing and purging: those by which something could come back are refused."""

from dataclasses import replace
from typing import Any

import pytest

from mesh.errors import ConfigError
from mesh.registers.upkeep import (
    ANSWER_S,
    CERTAIN_S,
    MESSAGE_LIFE_S,
    RETAIN_S,
    UpkeepTimes,
    lan,
    local,
    wan,
)


@pytest.mark.parametrize("times", [local(), lan(), wan()])
def test_in_every_profile_what_is_final_outlives_any_message_by_far(times: UpkeepTimes) -> None:
    assert ANSWER_S < CERTAIN_S < times.message_life_s <= MESSAGE_LIFE_S < RETAIN_S / 10


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("compare_s", 0),
        ("settle_s", float("nan")),
        ("message_life_s", 2 * CERTAIN_S - 0.1),
        ("finals_max", -1),
    ],
)
def test_times_that_hold_no_relation_are_refused_by_name(name: str, value: float) -> None:
    settings: dict[str, Any] = {name: value}
    with pytest.raises(ConfigError, match=name):
        replace(local(), **settings)
