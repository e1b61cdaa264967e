#!/usr/bin/env python3
"""Guard what a task keeps in SQLite: a run that was replaced cannot write any more.

    sqlite_guard.py DATABASE begin          install MESH_TOKEN, print the value to continue from
    sqlite_guard.py DATABASE write VALUE    keep a new value, if MESH_TOKEN is still the one installed
    sqlite_guard.py DATABASE show           print token and value, for people; nothing may go on from it

The record is the one called MESH_IDEMPOTENCY_KEY, which all attempts of a task share. Exit code 77: a
later owner has begun, this run has to stop. Copy this file, or call its functions from Python.

Each decision is one statement, so nobody can come between what it checks and what it changes. The
database stands on a local disk: SQLite's locks are not to be trusted over a network.

A token has up to 192 bits. SQLite's integers end at 63, and greater ones silently become floating
point, in which neighbours are equal. As text of one width, tokens compare as the numbers do.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import closing

FENCED = 77
BUSY_S = 60.0

TABLE = """
    CREATE TABLE IF NOT EXISTS fence (
        key TEXT PRIMARY KEY,
        token TEXT NOT NULL CHECK (length(token) = 58),
        value TEXT NOT NULL
    )"""
# The last line answers with the value as it stands once the token is installed.
BEGIN = """
    INSERT INTO fence (key, token, value) VALUES (:key, :token, '')
    ON CONFLICT (key) DO UPDATE SET token = excluded.token WHERE fence.token <= excluded.token
    RETURNING value"""
WRITE = "UPDATE fence SET value = :value WHERE key = :key AND token = :token"
SHOW = "SELECT token, value FROM fence WHERE key = :key"


class Fenced(Exception):  # noqa: N818 - it is an answer, not a mistake
    """This run's token is not the one installed: it has to stop."""


def begin(database: str, key: str, token: int) -> str:
    """Install the token, then return the value to continue from; "" at first."""
    with closing(_open(database)) as db:
        found = db.execute(BEGIN, {"key": key, "token": _digits(token)}).fetchall()
    if not found:
        raise Fenced(_refusal(database, key, token))
    return str(found[0][0])


def write(database: str, key: str, token: int, value: str) -> None:
    """Keep a new value, if the token is still the one installed. To repeat it is harmless."""
    with closing(_open(database)) as db:
        done = db.execute(WRITE, {"key": key, "token": _digits(token), "value": value})
    if done.rowcount == 0:
        raise Fenced(_refusal(database, key, token))


def show(database: str, key: str) -> tuple[int, str]:
    """Return the installed token and the value, or -1 and "" before the first `begin`."""
    with closing(_open(database)) as db:
        found = db.execute(SHOW, {"key": key}).fetchone()
    return (int(found[0]), str(found[1])) if found else (-1, "")


def _open(database: str) -> sqlite3.Connection:
    # Every statement is a transaction of its own, on the disk before it returns.
    db = sqlite3.connect(database, timeout=BUSY_S, isolation_level=None)
    db.execute("PRAGMA synchronous = FULL")
    db.execute(TABLE)
    return db


def _digits(token: int) -> str:
    if not 1 <= token < 1 << 192:
        raise ValueError(f"a token is 1 to 2**192 - 1, found {token}")
    return f"{token:058d}"


def _refusal(database: str, key: str, token: int) -> str:
    seen = show(database, key)[0]
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
        _digits(token)
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
