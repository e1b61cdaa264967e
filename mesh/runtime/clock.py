"""The node's clock: seconds that never go back and that count while the host sleeps.

A host that was suspended must notice it: on Linux the boot-time clock goes on, the monotonic one
stands still. Where there is no boot-time clock, the monotonic one is used, and said so once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

Clock: TypeAlias = Callable[[], float]


def system_clock(say: Callable[[str], None]) -> Clock:
    """Return the best clock that this system has; `say` hears of it when that is not the best there is."""
    clock_id = getattr(time, "CLOCK_BOOTTIME", None)
    if clock_id is None:
        say("this system has no boot-time clock: time that the host sleeps is not noticed")
        return time.monotonic
    return lambda: time.clock_gettime(clock_id)
