"""Starts one command in a process group of its own, so that nothing it starts escapes unnoticed.

The command gets no terminal and no input, its own session, and the node's environment without what
names the task that the node itself may run in. It always carries the node's own mark, by which its
guardian knows its work; a task cannot set another. On Linux the kernel kills it if the node dies without
a word (`death_pact`). That promise is bound to the *thread* that forked, so commands are started from the main
thread only.

Command, environment and directory come from whoever may submit: whatever they make the system say,
it comes out as a SpawnError.
"""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mesh.errors import MeshError
from mesh.guardian.link import MARK_VARIABLE
from mesh.runtime.death_pact import bind

NOT_FOUND: Final = 127
CANNOT_RUN: Final = 126
_NOT_INHERITED: Final = frozenset(
    {"MESH_TASK_ID", "MESH_TOKEN", "MESH_ATTEMPT", "MESH_IDEMPOTENCY_KEY", "MESH_SCHEDULED_FOR"}
)
_SHORTAGES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM})
"""What the system says when this host has too little of something, whatever the command."""


class SpawnError(MeshError):
    """A command did not start.

    Attributes:
        exit_code: what a shell would exit with: 127 no such command, 126 it cannot be run.
        is_host_fault: this host ran short of something; the command may well start on another.
    """

    def __init__(self, exit_code: int, message: str, *, is_host_fault: bool = False) -> None:
        self.exit_code = exit_code
        self.is_host_fault = is_host_fault
        super().__init__(message)


def spawn(
    argv: tuple[str, ...],
    env: Mapping[str, str],
    cwd: str,
    *,
    is_guarded: bool = False,
    is_merged: bool = False,
) -> subprocess.Popen[bytes]:
    """Start `argv` with pipes for stdout and stderr, or one for both (`is_merged`). Call from the main thread.

    Where a guardian would find what this process leaves (`is_guarded`) that takes a fraction of a millisecond for most
    commands, else a few.

    Raises:
        SpawnError: nothing was started; the text names the command or the directory.
    """
    if not argv or not argv[0]:
        raise SpawnError(NOT_FOUND, "no command was given")
    try:
        if cwd and not stat.S_ISDIR(Path(cwd).stat().st_mode):
            raise SpawnError(CANNOT_RUN, f"the working directory {cwd} is no directory")
    except (OSError, ValueError) as error:
        raise _explain_directory(error, cwd) from error
    inherited = {name: text for name, text in os.environ.items() if name not in _NOT_INHERITED}
    given = {name: text for name, text in env.items() if name != MARK_VARIABLE}
    whole = {**inherited, **given}
    try:
        pact = bind(argv[0], whole, cwd, is_guarded=is_guarded)
        with warnings.catch_warnings():
            # Python 3.12 warns of any fork beside a thread; ours calls nothing but the kernel.
            warnings.simplefilter("ignore", DeprecationWarning)
            return subprocess.Popen(
                [*pact.prefix, *argv],
                bufsize=0,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if is_merged else subprocess.PIPE,
                cwd=cwd or None,
                env=whole,
                start_new_session=True,
                preexec_fn=pact.before_exec,  # noqa: PLW1509 - it calls nothing but the kernel
            )
    except Exception as error:
        raise _explain(error, argv[0], cwd) from error


def _explain_directory(error: Exception, cwd: str) -> SpawnError:
    if isinstance(error, OSError) and error.errno in {errno.ENOENT, errno.ENOTDIR}:
        return SpawnError(CANNOT_RUN, f"the working directory {cwd} does not exist on this node")
    return SpawnError(
        CANNOT_RUN,
        f"the working directory {cwd} cannot be looked at: {_reason_of(error)}",
        is_host_fault=_is_shortage(error),
    )


def _explain(error: Exception, command: str, cwd: str) -> SpawnError:
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.ENOENT and "/" in command and os.path.lexists(Path(cwd or ".", command)):
        return SpawnError(CANNOT_RUN, f"{command} names an interpreter that does not exist")
    if number in {errno.ENOENT, errno.ENOTDIR}:
        return SpawnError(NOT_FOUND, f"no such command: {command}")
    if number == errno.EACCES and cwd and not os.access(cwd, os.X_OK):
        return SpawnError(CANNOT_RUN, f"the working directory {cwd} may not be entered")
    if number == errno.EACCES:
        return SpawnError(CANNOT_RUN, f"{command} is not executable: permission denied")
    return SpawnError(
        CANNOT_RUN,
        f"{command} could not be started: {_reason_of(error)}",
        is_host_fault=_is_shortage(error),
    )


def _reason_of(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _is_shortage(error: Exception) -> bool:
    return isinstance(error, MemoryError) or (
        isinstance(error, OSError) and error.errno in _SHORTAGES
    )
