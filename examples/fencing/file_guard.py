#!/usr/bin/env python3
"""Guard what a task keeps in a file: a run that was replaced cannot write any more.

    file_guard.py DIRECTORY begin          install MESH_TOKEN, print the value to continue from
    file_guard.py DIRECTORY write VALUE    keep a new value, if MESH_TOKEN is still the one installed
    file_guard.py DIRECTORY show           print token and value, for people; nothing may go on from it

The files are called after MESH_IDEMPOTENCY_KEY, which all attempts of a task share: KEY.value, KEY.token
and KEY.lock. Exit code 77: a later owner has begun, this run has to stop. Copy this file, or call its
functions from Python.

Each decision happens under an exclusive lock (flock), and each file is replaced whole: a reader without
the lock, or one after a crash, sees the old content or the new one. The lock has a file of its own that
is never replaced, or two writers could hold locks on two files of one name. `begin` changes the token
alone and `write` the value alone, so no crash can leave a half of either.

A run that is frozen while it holds the lock makes the next owner wait; Mesh kills the former, which frees
it. That holds on a local disk. A network file system may take a lock away from a host that is silent and
let it write later all the same: there, use a database.

A token has up to 192 bits; it is kept as digits, which end at no machine word.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

FENCED = 77


class Fenced(Exception):  # noqa: N818 - it is an answer, not a mistake
    """This run's token is not the one installed: it has to stop."""


def begin(directory: str, key: str, token: int) -> str:
    """Install the token, then return the value to continue from; "" at first."""
    _check(key, token)
    with _locked(directory, key) as stem:
        seen = int(_read(f"{stem}.token") or -1)
        if seen > token:
            raise Fenced(_refusal(key, token, seen))
        _replace(f"{stem}.token", f"{token:058d}")
        return _read(f"{stem}.value")


def write(directory: str, key: str, token: int, value: str) -> None:
    """Keep a new value, if the token is still the one installed. To repeat it is harmless."""
    _check(key, token)
    with _locked(directory, key) as stem:
        seen = int(_read(f"{stem}.token") or -1)
        if seen != token:
            raise Fenced(_refusal(key, token, seen))
        _replace(f"{stem}.value", value)


def show(directory: str, key: str) -> tuple[int, str]:
    """Return the installed token and the value, or -1 and "" before the first `begin`."""
    with _locked(directory, key) as stem:
        return int(_read(f"{stem}.token") or -1), _read(f"{stem}.value")


def _check(key: str, token: int) -> None:
    if key in {"", "."}:  # a file of that name would lie beside the directory
        raise ValueError(f"a key is the name of a file, found {key!r}")
    if not 1 <= token < 1 << 192:
        raise ValueError(f"a token is 1 to 2**192 - 1, found {token}")


@contextmanager
def _locked(directory: str, key: str) -> Iterator[str]:
    """Hold the record's lock, and give the name that its files begin with."""
    stem = str(Path(directory, quote(key, safe="")))
    with Path(f"{stem}.lock").open("a") as lock:  # to close it gives the lock back
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield stem


def _read(path: str) -> str:
    try:
        return Path(path).read_bytes().decode()
    except FileNotFoundError:
        return ""


def _replace(path: str, content: str) -> None:
    """Put a whole new file in the place of the old one, on the disk before it returns."""
    new = Path(f"{path}.new")
    with new.open("wb") as file:
        file.write(content.encode())
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    directory = os.open(new.parent, os.O_DIRECTORY)
    try:
        os.fsync(directory)  # the name, too
    finally:
        os.close(directory)


def _refusal(key: str, token: int, seen: int) -> str:
    if seen > token:
        return f"fenced: {key} has token {seen}, ours is {token}: a later owner has begun; stop"
    return f"fenced: token {token} of {key} is not installed: begin before the first write"


def main(arguments: list[str]) -> int:
    """Do what the command line says."""
    match arguments:
        case [_, "begin" | "show"] | [_, "write", _]:
            pass
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    try:
        key = os.environ["MESH_IDEMPOTENCY_KEY"]
        without = {"MESH_TOKEN": "1"} if arguments[1] == "show" else {}  # to look needs none
        token = int({**without, **os.environ}["MESH_TOKEN"])
        _check(key, token)
    except (KeyError, ValueError) as error:
        found = f"found no {error.args[0]}" if isinstance(error, KeyError) else str(error)
        print(
            "MESH_IDEMPOTENCY_KEY and MESH_TOKEN, a whole number, are expected, as Mesh sets them for a task's "
            f"command; {found}: run this in a task, or set both to try it by hand",
            file=sys.stderr,
        )
        return 2
    try:
        match arguments:
            case [place, "begin"]:
                print(begin(place, key, token))
            case [place, "write", value]:
                write(place, key, token, value)
            case _:  # show
                print(*show(arguments[0], key))
    except Fenced as refusal:
        print(refusal, file=sys.stderr)
        return FENCED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
