"""The order of names."""

from __future__ import annotations

import random

import pytest

from mesh.core.order import natural


@pytest.mark.parametrize(
    "names",
    [
        ["m3", "n", "n2", "n10"],
        ["vm", "vm-486c", "vm-8031", "vm-9c3e"],
        ["vm~0012", "vm~486c", "vm~9c3e"],
        ["rack1-host2", "rack1-host10", "rack2-host1"],
        ["7", "10", "a"],
        ["", "a"],
    ],
)
def test_names_stand_as_people_expect(names: list[str]) -> None:
    shuffled = random.Random(1).sample(names, len(names))
    assert sorted(shuffled, key=natural) == names


def test_digits_of_other_scripts_are_text() -> None:
    assert natural("n٣") == ((1, 0, "n"), (1, 0, "٣"))
