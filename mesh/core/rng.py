"""Randomness comes in: one labelled stream per machine, all drawn from one seed.

Two machines never share a stream, so a machine that draws once more does not change what
another one sees, and a seed replays a run exactly.
"""

from __future__ import annotations

import hashlib
import random


def stream(seed: int, label: str) -> random.Random:
    """Return the random stream named `label` of `seed`; the same two give the same stream everywhere."""
    digest = hashlib.sha256(f"{seed}/{label}".encode()).digest()
    return random.Random(int.from_bytes(digest, "big"))
