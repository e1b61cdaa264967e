"""How a host's load is told and written: in per cent of all its processors.

It is the mean length of the run queue over the last minute: 100 % keeps every processor busy, and more
makes processes wait for one. It is not how much of the processors is used just now: that is what contests weigh,
and they say "processors idle now".
"""

from __future__ import annotations

from typing import Final

LOAD_MAX: Final = 2.55
"""What a member tells of its load ends here: a byte of hundredths. This much means this much or more."""


def format_load(load: float) -> str:
    """Return a load ratio as `84%`; one that is too much to be told is `>255%`."""
    return f">{LOAD_MAX:.0%}" if load >= LOAD_MAX else f"{load:.0%}"
