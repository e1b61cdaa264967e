#!/usr/bin/env python3
"""Guard what a task keeps in PostgreSQL: a run that was replaced cannot write any more.

    postgresql_guard.py CONNECTION setup          make the table, once
    postgresql_guard.py CONNECTION begin          install MESH_TOKEN, print the value to continue from
    postgresql_guard.py CONNECTION write VALUE    keep a new value, if MESH_TOKEN is still the one installed
    postgresql_guard.py CONNECTION show           print token and value, for people; nothing may go on from it

CONNECTION is what psql takes: a URL (postgresql://host/name) or "host=… dbname=…". The record is the one
called MESH_IDEMPOTENCY_KEY, which all attempts of a task share. Exit code 77: a later owner has begun,
this run has to stop. Copy this file, or send its four statements through the client that you have;
here it is psql, so that nothing has to be installed for Python.

Each decision is one statement. The row's lock makes a second one wait, and it then looks at the row as
the first has left it. Talk to the primary with `synchronous_commit` on: what a failover forgets does
not fence.

A token has up to 192 bits and BIGINT 63, so it is NUMERIC, which is exact and compares as numbers do.
"""

from __future__ import annotations

import os
import subprocess
import sys

FENCED = 77

TABLE = """
    CREATE TABLE IF NOT EXISTS fence (
        key text PRIMARY KEY,
        token numeric(58) NOT NULL,
        value text NOT NULL
    );"""
# The last line answers with the value as it stands once the token is installed.
BEGIN = """
    INSERT INTO fence (key, token, value) VALUES (:'key', :token, '')
    ON CONFLICT (key) DO UPDATE SET token = excluded.token WHERE fence.token <= excluded.token
    RETURNING value;"""
WRITE = "UPDATE fence SET value = :'value' WHERE key = :'key' AND token = :token RETURNING 'kept';"
SHOW = "SELECT token, value FROM fence WHERE key = :'key';"

# Bare values; the first error ends it with a code of its own; never ask for a password.
PSQL = ("psql", "-X", "-q", "-A", "-t", "-w", "-v", "ON_ERROR_STOP=1")


class Fenced(Exception):  # noqa: N818 - it is an answer, not a mistake
    """This run's token is not the one installed: it has to stop."""


def setup(connection: str) -> None:
    """Make the table, if it is not there."""
    _ask(connection, TABLE)


def begin(connection: str, key: str, token: int) -> str:
    """Install the token, then return the value to continue from; "" at first."""
    answer = _ask(connection, BEGIN, key=key, token=_digits(token))
    if not answer:  # not even an empty line: no row
        raise Fenced(_refusal(connection, key, token))
    return answer.removesuffix("\n")


def write(connection: str, key: str, token: int, value: str) -> None:
    """Keep a new value, if the token is still the one installed. To repeat it is harmless."""
    if not _ask(connection, WRITE, key=key, token=_digits(token), value=value):
        raise Fenced(_refusal(connection, key, token))


def show(connection: str, key: str) -> tuple[int, str]:
    """Return the installed token and the value, or -1 and "" before the first `begin`."""
    token, _, value = _ask(connection, SHOW, key=key).removesuffix("\n").partition("|")
    return int(token or -1), value


def _ask(connection: str, statement: str, **values: str) -> str:
    """Run one statement in a transaction of its own. psql quotes what stands in it as :'name'."""
    settings = [f"--set={name}={value}" for name, value in values.items()]
    done = subprocess.run(
        [*PSQL, *settings, connection],
        input=statement,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, "PGCLIENTENCODING": "UTF8"},
        check=True,
    )
    return done.stdout


def _digits(token: int) -> str:
    if not 1 <= token < 1 << 192:
        raise ValueError(f"a token is 1 to 2**192 - 1, found {token}")
    return str(token)


def _refusal(connection: str, key: str, token: int) -> str:
    seen = show(connection, key)[0]
    if seen > token:
        return f"fenced: {key} has token {seen}, ours is {token}: a later owner has begun; stop"
    return f"fenced: token {token} of {key} is not installed: begin before the first write"


def main(arguments: list[str]) -> int:
    """Do what the command line says."""
    if arguments[1:] == ["setup"]:
        setup(arguments[0])
        return 0
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
