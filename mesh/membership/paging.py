"""As many standings as fit in one frame, the most important first.

A full table of long cards can be larger than a frame. The living go first, then the latest to go; what
does not fit comes later by anti-entropy, a bucket of the table at a time.
"""

from __future__ import annotations

from typing import Final

from mesh.wire.records import Standing, State

PAGE_BYTES_MAX: Final = 4 * 1024 * 1024
STANDING_BYTES: Final = 24
"""What a standing takes beside its card, at most."""


def page(members: list[Standing], bytes_max: int = PAGE_BYTES_MAX) -> tuple[Standing, ...]:
    """Return the standings that fit into `bytes_max`, living before gone, the latest gone first."""
    chosen = []
    for standing in sorted(members, key=lambda s: (s.state >= State.DEAD, s.age_s)):
        bytes_max -= STANDING_BYTES + len(standing.card)
        if bytes_max < 0:
            break
        chosen.append(standing)
    return tuple(chosen)
