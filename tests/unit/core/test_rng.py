"""One seed and one label give one stream, in every process."""

from __future__ import annotations

import os
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from mesh.core.rng import stream

SCRIPT = "from mesh.core.rng import stream; print(stream(42, 'probe').getrandbits(64))"


@given(seed=st.integers(), label=st.text(max_size=20))
def test_seed_and_label_name_one_stream(seed: int, label: str) -> None:
    assert stream(seed, label).getrandbits(64) == stream(seed, label).getrandbits(64)


def test_labels_and_seeds_give_streams_of_their_own() -> None:
    drawn = {stream(seed, label).getrandbits(64) for seed in range(20) for label in "abcdefgh"}
    assert len(drawn) == 160


def test_a_draw_from_one_stream_leaves_another_as_it_was() -> None:
    alone = stream(1, "b").random()
    stream(1, "a").random()
    assert stream(1, "b").random() == alone


def test_a_stream_is_the_same_in_processes_that_hash_differently() -> None:
    def drawn(hash_seed: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    assert drawn("1") == drawn("2") == f"{stream(42, 'probe').getrandbits(64)}\n"
