"""As many standings as fit in one frame, the most important first.

A full table of long cards can be larger than a frame. The living go first, then the latest to go; what
does not fit comes later by anti-entropy, a bucket of the table at a time. The forgotten go last: no number of
them keeps a living member out of a frame.
"""

from __future__ import annotations

from typing import Final

from mesh.wire.records import Standing, State

PAGE_BYTES_MAX: Final = 4 * 1024 * 1024
STANDING_BYTES: Final = 33
"""What a standing takes beside its card, at most."""


def page(members: list[Standing], bytes_max: int = PAGE_BYTES_MAX) -> tuple[Standing, ...]:
    """Return the standings that fit into `bytes_max`: living, gone, forgotten; the latest first."""
    chosen = []
    for standing in sorted(members, key=_place):
        bytes_max -= STANDING_BYTES + len(standing.card)
        if bytes_max < 0:
            break
        chosen.append(standing)
    return tuple(chosen)


def _place(standing: Standing) -> tuple[int, int]:
    state = standing.state
    return (0 if state < State.DEAD else 2 if state is State.FORGOTTEN else 1, standing.age_s)
