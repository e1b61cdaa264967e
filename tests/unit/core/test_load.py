"""A host's load in words."""

from __future__ import annotations

import pytest

from mesh.core.load import format_load


@pytest.mark.parametrize(
    ("load", "text"),
    [(0.0, "0%"), (0.504, "50%"), (1.0, "100%"), (2.54, "254%"), (2.55, ">255%"), (9.0, ">255%")],
)
def test_load_is_per_cent_of_all_processors_up_to_what_can_be_told(load: float, text: str) -> None:
    assert format_load(load) == text
