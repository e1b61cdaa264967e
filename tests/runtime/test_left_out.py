"""Options that the last start of a node had and this one has not are named."""

from __future__ import annotations

import pytest

from mesh.runtime.left_out import left_out


@pytest.mark.parametrize(
    ("last", "now", "missing"),
    [
        ("", "mesh join", ""),
        ("mesh join --label gpu=yes", "", ""),
        ("mesh join --label gpu=yes host1", "mesh join host1", "--label"),
        ("mesh join --label a=1 --label b=2 --slots=4", "mesh join --slots 4 --pool x", "--label"),
        ("cd /srv && mesh join --slots 4 --health-check …  # …: see '/x y'", "mesh join --slots=2", "--health-check"),
        ("mesh join --name n1 --key k --data d --found --expect 3 --headless", "mesh join", ""),
        ("mesh join --label 'it", "mesh join", ""),
    ],
)  # fmt: skip
def test_what_is_not_kept_and_not_said_again_is_named(last: str, now: str, missing: str) -> None:
    assert left_out(last, now) == missing
