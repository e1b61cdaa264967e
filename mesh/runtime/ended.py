"""Waits for the end of a process, and leaves it to be reaped: until then its number is nobody else's."""

from __future__ import annotations

import os
import subprocess
from typing import Final

import trio

END_POLL_S: Final = 0.05
"""How often a process is looked at that the system cannot watch for us."""


async def wait_for_end(process: subprocess.Popen[bytes]) -> None:
    """Return when the process has ended, leaving it to be reaped."""
    try:
        fd = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # an older kernel, no Linux, or no descriptor left
        while not _is_zombie(process):  # noqa: ASYNC110 - nothing announces it
            await trio.sleep(END_POLL_S)
        return
    try:
        await trio.lowlevel.wait_readable(fd)
    finally:
        os.close(fd)


def _is_zombie(process: subprocess.Popen[bytes]) -> bool:
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
