"""Ids are drawn from the stream that is handed in, and are never the number that means 'none'."""

from __future__ import annotations

import random
import re

from hypothesis import given
from hypothesis import strategies as st

from mesh.core.ids import (
    NO_MESH,
    TASK_ID_CHARS_MAX,
    format_id,
    new_mesh_id,
    new_node_id,
    new_task_id,
)


class Zeros(random.Random):
    """A stream of nothing but zeros."""

    def getrandbits(self, k: int, /) -> int:
        return 0


def test_an_id_is_never_zero() -> None:
    assert new_node_id(Zeros()) != 0
    assert new_mesh_id(Zeros()) != NO_MESH


def test_one_stream_gives_one_sequence_of_ids() -> None:
    first, second = random.Random(7), random.Random(7)
    for draw in (new_node_id, new_mesh_id, new_task_id):
        assert draw(first) == draw(second)


def test_a_thousand_ids_are_a_thousand_different_ones() -> None:
    rng = random.Random(1)
    assert len({new_node_id(rng) for _ in range(1000)}) == 1000
    assert len({new_task_id(rng) for _ in range(1000)}) == 1000


def test_a_task_id_is_short_and_has_no_letters_that_look_alike() -> None:
    rng = random.Random(2)
    for _ in range(200):
        assert re.fullmatch(r"[0-9abcdefghjkmnpqrstvwxyz]{12}", new_task_id(rng))
    assert TASK_ID_CHARS_MAX >= 12


@given(value=st.integers(0, 2**64 - 1))
def test_a_printed_id_has_sixteen_digits_and_reads_back(value: int) -> None:
    assert len(format_id(value)) == 16
    assert int(format_id(value), 16) == value
