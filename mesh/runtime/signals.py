"""What this process makes of the signals that end it: the first is heeded, a second one ends the node at once.

SIGTERM, SIGINT and (unless ignored, as under nohup) SIGHUP. One that was sent to all processes of a group or service
comes twice, once by the guardian, and is one all the same.
"""

from __future__ import annotations

import signal
from collections.abc import Callable

import trio

from mesh.runtime.guard import Guard


async def heed_signals(
    guard: Guard,
    on_first: Callable[[str], None],
    on_second: Callable[[str], None],
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Call each once, with the signal's name; return after the second."""
    numbers = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    heard = 0
    # What the receiver restores: once it is closed, one signal more must not end this process before its exit
    # code is known, nor must one that the receiver had heard and hands on.
    for one in numbers:
        signal.signal(one, signal.SIG_IGN)
    with trio.open_signal_receiver(*numbers) as arriving:
        task_status.started()
        async for number in arriving:
            name = signal.Signals(number).name
            heard += 1
            forwarded = guard.forwarded(numbers)
            if max(forwarded, heard - forwarded) > 1:
                on_second(name)
                return
            if heard == 1:
                on_first(name)
