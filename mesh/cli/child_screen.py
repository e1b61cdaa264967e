"""The screen of `mesh join`: a process of its own that dies with its node.

It is started before the node, waits for the word that the node answers, and draws. The node ends it
with SIGINT. A node that is killed cannot: then, on Linux, the kernel sends SIGTERM, and the screen
gives the terminal back and says what has happened. That promise is bound to the thread that forked,
so the node starts its screen from the main thread.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_TERMINATED: Final = 128 + signal.SIGTERM
_DEATH_S: Final = 2.0  # how long the rest of a dying process may take


class _TerminatedError(BaseException):
    """SIGTERM came before the screen had the terminal, or after it gave it back."""


def start_screen(data_dir: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Start the screen; call from the main thread, whose death it does not outlive.

    Returns:
        The process, and where to write one byte when the node answers; closed unwritten, it ends.
    """
    word, go = os.pipe()
    command = [sys.executable, "-m", "mesh.cli.child_screen", str(os.getpid()), str(word)]
    # Ctrl-C while Python itself starts would end in a traceback; it is taken up again in `main`.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return subprocess.Popen([*command, str(data_dir)], pass_fds=(word,)), go
    except BaseException:
        os.close(go)
        raise
    finally:
        os.close(word)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def main(arguments: list[str]) -> int:
    """Be the screen: NODE_PID WORD_FD DIR. Return its exit code, 128 + SIGINT after Ctrl-C."""
    node_pid, word, data_dir = int(arguments[0]), int(arguments[1]), Path(arguments[2])
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    _die_with_parent()
    if os.getppid() != node_pid:  # it died before the kernel was told
        return 0
    from mesh.cli.stdio import complain
    from mesh.client import last_start
    from mesh.tui.top import run_top

    if not os.read(word, 1):
        return 0
    _raise_once()
    try:
        code = run_top(data_dir, is_joined=True)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    except _TerminatedError:
        code = _TERMINATED
    if code == _TERMINATED and _has_died(node_pid):
        again = last_start(data_dir) or "mesh join"
        complain(f"the node (process {node_pid}) died; start it again: {again}")
    return code


def _raise_once() -> None:
    """Let the first SIGTERM outside the screen end it, and the others do nothing.

    The kernel sends one for each thread of the node that had become this process's parent.
    """
    came: list[int] = []

    def on_term(number: int, _frame: object) -> None:
        came.append(number)
        if len(came) == 1:
            raise _TerminatedError

    signal.signal(signal.SIGTERM, on_term)


def _has_died(node_pid: int) -> bool:
    """Say whether the node is gone. The kernel tells when its main thread ends: others may live a moment longer."""
    deadline = time.monotonic() + _DEATH_S
    while os.getppid() == node_pid:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
