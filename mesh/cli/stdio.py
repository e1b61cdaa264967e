"""Standard streams that a command can rely on, whatever it was started with.

A closed stdin, stdout or stderr would be handed out by the system as the next descriptor: a socket
would then get the text that was meant for people. So closed ones become the null device before
anything else is opened. And a terminal or locale that cannot show a character shows its escape.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TextIO, cast


def prepare() -> None:
    """Open what is closed, and let no character be an error."""
    for descriptor, mode in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, mode)  # the system gives out the lowest that is free: this one
            os.set_inheritable(descriptor, True)
    sys.stdin = sys.stdin or _reopen(0, "r")
    sys.stdout = sys.stdout or _reopen(1, "w")
    sys.stderr = sys.stderr or _reopen(2, "w")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _reopen(descriptor: int, mode: str) -> TextIO:
    opened = open(descriptor, mode, encoding="utf-8", closefd=False)  # noqa: SIM115 - the process closes it
    return cast("TextIO", opened)


def complain(text: str) -> None:
    """Say one line on stderr, if that is possible; what other hosts have named in it moves nobody's cursor."""
    line = "".join(char if char.isprintable() else "?" for char in " ".join(text.split()))
    with suppress(OSError):
        print(f"mesh: {line}", file=sys.stderr, flush=True)


def forget_stdout() -> None:
    """If stdout cannot be written, let nobody try again, not even the interpreter when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
