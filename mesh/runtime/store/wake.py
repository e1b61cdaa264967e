"""How a commit is told to trio: in its thread, in order, soon."""

from __future__ import annotations

from collections.abc import Callable

import trio

from mesh.runtime.store.writer import Progress, Report


def report_to_trio(handle: Callable[[Progress], None]) -> Report:
    """Return a report that has `handle` called in the trio run that this is called in. `handle` must not raise."""
    token = trio.lowlevel.current_trio_token()

    def report(progress: Progress) -> None:
        try:
            token.run_sync_soon(handle, progress)
        except trio.RunFinishedError:
            return  # nobody is left who holds anything back

    return report
