"""A ring whose stamps are used up is not changed: nobody could read what came of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mesh.errors import ConfigError
from mesh.seal.key import Key
from mesh.seal.ring import STAMP_MAX, KeyRing, decode_ring, read_ring

OLD, NEW, THIRD = (Key(bytes([i]) * 32) for i in (1, 2, 3))


@pytest.mark.parametrize(
    "change",
    [
        lambda ring: ring.add(THIRD),
        lambda ring: ring.use(NEW.key_id),
        lambda ring: ring.remove(NEW.key_id),
    ],
    ids=["add", "use", "remove"],
)
def test_ring_that_has_used_the_last_stamp_refuses_every_change(
    change: Callable[[KeyRing], object],
) -> None:
    lines = f"key {STAMP_MAX} {OLD.to_text()}\nkey 0 {NEW.to_text()}\nuse 0 {OLD.name}\n"
    ring = read_ring(lines)
    before = ring.digest
    with pytest.raises(ConfigError, match=r"has used the last.*new key file"):
        change(ring)
    assert ring.digest == before
    for copy in (read_ring(ring.to_text()), decode_ring(ring.to_bytes())):
        assert copy.digest == before
