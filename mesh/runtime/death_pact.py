"""How a command is bound to the life of this process: the kernel kills it when this process dies without a word.

    guarded, plain, and setpriv is there   setpriv asks the kernel, then becomes the program
    all else                               a child of our own asks, between its fork and its exec

Only a child that runs Python before its exec has to copy this whole process, which takes milliseconds and holds up
everything else meanwhile; a child that executes at once borrows it for a fraction of one. But who is executed by
another has his errors told by that: so setpriv is for programs that are sure to start, and the rest, whatever it is,
is explained by the exec of our own.

A child of our own ends if this process died before the kernel was asked. One of setpriv's does not look; so it
is for nodes with a guardian, which finds what is left then.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

_PR_SET_PDEATHSIG: Final = 1
_HEAD_BYTES: Final = 256
_MACHINE: Final = 20
"""So many bytes of an ELF file tell for which machines it is."""

_HEADER: Final = struct.Struct("=32xQ14xHH")
"""Of an ELF file of 64 bits: where its table of parts is, the size of an entry, and how many there are."""

_PART: Final = struct.Struct("=I4xQ16xQ16x")
"""One of those: of what kind it is, where, and of how many bytes."""

_IS_64_BIT: Final = 2
_LOADER: Final = 3
_LOADER_BYTES_MAX: Final = 4_096
_PARTS_MAX: Final = 1_000

_TRIAL_S: Final = 5.0


class Pact(NamedTuple):
    """What binds one command: words before its own, and what its child calls before the exec."""

    prefix: tuple[str, ...] = ()
    before_exec: Callable[[], None] | None = None


def bind(command: str, env: Mapping[str, str], cwd: str, *, is_guarded: bool) -> Pact:
    """Return how to bind `command`, which is to be looked for in the PATH of `env`, from `cwd`."""
    if sys.platform != "linux":
        return Pact()
    setpriv = _setpriv() if is_guarded else None
    if setpriv is not None and _is_plain(command, env, cwd):
        return Pact(prefix=(setpriv, "--pdeathsig", "KILL", "--"))
    return Pact(before_exec=_own_pact())


@cache
def _setpriv() -> str | None:
    """Return util-linux's setpriv, if it is there and can do it; others of that name cannot."""
    path = shutil.which("setpriv")
    if path is None:
        return None
    try:
        trial = subprocess.run(
            [path, "--pdeathsig", "KILL", "--", path, "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_TRIAL_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return path if trial.returncode == 0 else None


def _is_plain(command: str, env: Mapping[str, str], cwd: str) -> bool:
    """Say whether an exec of `command` is sure to find a program of this machine, or a script for one."""
    if any(name.startswith("LD_") for name in env):
        return False  # what it would have the command load, it would have setpriv load
    try:
        path = _find(command, env, cwd)
        head = _head(path) if path is not None else b""
        if head.startswith(b"#!"):
            line, newline, _ = head[2:].partition(b"\n")
            first = line.replace(b"\t", b" ").strip(b" ").partition(b" ")[0]  # as the kernel does
            path = Path(os.fsdecode(first)) if newline and first.startswith(b"/") else None
        return path is not None and _is_program(path)
    except (OSError, ValueError, OverflowError):  # whatever it is, an exec of our own tells it
        return False


def _is_program(path: Path, *, is_loader: bool = False) -> bool:
    """Say whether the kernel takes this file, and its loader, for programs: of what it does not, setpriv has a shell run it."""
    head = _head(path)
    if len(head) < _HEADER.size or _machine_of(head) not in _machines() or head[4] != _IS_64_BIT:
        return False
    at, size, count = _HEADER.unpack_from(head)
    if size != _PART.size or not 0 < count <= _PARTS_MAX:
        return False
    with path.open("rb") as file:
        file.seek(at)
        table = file.read(size * count)
        if len(table) < size * count:
            return False
        names = [(at, length) for kind, at, length in _PART.iter_unpack(table) if kind == _LOADER]
        if is_loader or not names:
            return True
        at, length = names[0]
        file.seek(at)
        name = file.read(min(length, _LOADER_BYTES_MAX))
    is_path = name.startswith(b"/") and name.endswith(b"\0")
    return is_path and _is_program(Path(os.fsdecode(name[:-1])), is_loader=True)


def _find(command: str, env: Mapping[str, str], cwd: str) -> Path | None:
    """Return the file that an exec takes, if that is beyond doubt."""
    if os.sep in command:
        return Path(cwd, command)
    directories = env["PATH"].split(os.pathsep) if "PATH" in env else []
    places = (Path(cwd, directory, command) for directory in directories)
    return next((place for place in places if place.exists()), None)


def _head(path: Path) -> bytes:
    if not path.is_file() or not os.access(path, os.X_OK):
        return b""
    with path.open("rb") as file:
        return file.read(_HEAD_BYTES)


@cache
def _machines() -> frozenset[bytes]:
    """Return how the ELF files of this machine begin, position-independent or not."""
    own = _head(Path(sys.executable).resolve())
    if not own.startswith(b"\x7fELF"):
        return frozenset()
    kinds = (b"\x02\x00", b"\x03\x00") if sys.byteorder == "little" else (b"\x00\x02", b"\x00\x03")
    return frozenset(_machine_of(own[:16] + kind + own[18:_MACHINE]) for kind in kinds)


def _machine_of(head: bytes) -> bytes:
    """Return what of a file's beginning the kernel looks at: not the name of its ABI, which loaders state and programs do not."""
    return head[:7] + head[16:_MACHINE]


def _own_pact() -> Callable[[], None]:
    """Return what a new child calls before its command."""
    # Resolved here, before the fork: a child of a process with threads must not load libraries.
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent, kill, getppid, getpid = os.getpid(), os.kill, os.getppid, os.getpid

    def die_with_parent() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if getppid() != parent:  # it died before the kernel was told
            kill(getpid(), signal.SIGKILL)

    return die_with_parent
