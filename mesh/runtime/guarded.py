"""Puts a guardian before a node: the first thing that `mesh join` does, so nothing here is slow to import.

The process that the user started becomes the guardian, by exec, and starts the same command line
again as its node: whoever waits for that process, signals it or has it on a terminal deals with the
guardian, which passes on signals and ends as its node did. The node finds the link to it in its
environment. Where there can be no guardian it finds the reason there, or is told it at once.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterable, MutableMapping
from pathlib import Path
from typing import Final

import mesh.guardian
from mesh.guardian import link

RECORD: Final = "guardian"
"""The guardian's record, in the data directory."""

_BEGIN: Final = (
    "import os, sys; sys.path.append(sys.argv[1]); from mesh.guardian.program import main; "
    "os._exit(main(sys.argv[2:]))"
)
"""It ends without tidying up its interpreter: there is nothing to tidy, and others are busy just then."""


_LEAN: Final = ("-X", "no_debug_ranges")
"""A traceback names lines all the same; which part of one it was costs a node a quarter of a megabyte."""


def guarded(record: Path, command: Iterable[str]) -> list[str]:
    """Return the command line that runs a node under a guardian, which keeps its record in this file."""
    root = Path(mesh.guardian.__file__).parents[2]
    # Neither site-packages nor the user's settings: the guardian needs none, and they cost memory.
    return [sys.executable, "-I", "-S", "-c", _BEGIN, str(root), str(record), *command]


def go_under_guardian(record: Path) -> str:
    """Become the guardian, which runs this command line anew as its node; return why not, if that fails."""
    if sys.platform != "linux":
        return f"it needs Linux, and this is {sys.platform}"
    if not sys.executable:
        return "this Python does not know its own program"
    # The interpreter's own options are kept, and -m or the script, whichever it was.
    command = guarded(record.absolute(), [sys.executable, *_LEAN, *sys.orig_argv[1:]])
    try:
        os.execv(command[0], command)  # noqa: S606 - an argument list
    except OSError as error:
        return f"{command[0]} cannot be started: {error.strerror}"


def take_link(environ: MutableMapping[str, str]) -> socket.socket | None:
    """Return the socket to the guardian that started this process, or None if none did.

    Its variable is taken out of the environment and the socket is closed in children, so that no work
    can speak for the node.
    """
    text = environ.pop(link.FD_VARIABLE, "")
    if not text.isdecimal():
        return None
    try:
        found = socket.socket(fileno=int(text))
    except OSError:  # an outer node's, inherited in name only
        return None
    found.set_inheritable(False)
    found.setblocking(False)
    return found


def take_reason(environ: MutableMapping[str, str]) -> str:
    """Return why the guardian that was to start this process could not be one, or "" if none was to."""
    return environ.pop(link.ALONE_VARIABLE, "")
