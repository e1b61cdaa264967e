#!/usr/bin/env python3
"""Keep a task's value at an HTTP service that refuses a run that was replaced.

    http_guard.py URL begin          install MESH_TOKEN, print the value to continue from
    http_guard.py URL write VALUE    keep a new value, if MESH_TOKEN is still the one installed
    http_guard.py URL show           print token and value, for people; nothing may go on from it

URL is where `http_service.py`, or a service that speaks as it does, listens. The record is the one called
MESH_IDEMPOTENCY_KEY, which all attempts of a task share. Exit code 77: a later owner has begun, this run
has to stop. Copy this file, or call its functions from Python.

The decision is the service's: this side only carries the token with every request, in a header and as
digits (a number in JSON loses its end above 53 bits in many languages). If no answer came, nobody knows
whether a value was kept: send the same one again, and no other before that is answered.
"""

from __future__ import annotations

import os
import sys
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import quote, urlsplit

FENCED = 77
ANSWER_S = 60.0


class Fenced(Exception):  # noqa: N818 - it is an answer, not a mistake
    """This run's token is not the one installed: it has to stop."""


def begin(url: str, key: str, token: int) -> str:
    """Install the token, then return the value to continue from; "" at first."""
    _check(token)
    return _ask(url, "POST", key, token)[1]


def write(url: str, key: str, token: int, value: str) -> None:
    """Keep a new value, if the token is still the one installed. To repeat it is harmless."""
    _check(token)
    _ask(url, "PUT", key, token, value)


def show(url: str, key: str) -> tuple[int, str]:
    """Return the installed token and the value, or -1 and "" before the first `begin`."""
    return _ask(url, "GET", key)


def _check(token: int) -> None:
    if not 1 <= token < 1 << 192:
        raise ValueError(f"a token is 1 to 2**192 - 1, found {token}")


def _ask(url: str, method: str, key: str, token: int = -1, body: str = "") -> tuple[int, str]:
    """Send one request and return the token and the text of the answer."""
    place = urlsplit(url)
    connect = HTTPSConnection if place.scheme == "https" else HTTPConnection
    headers = {} if method == "GET" else {"Fencing-Token": str(token)}
    with closing(connect(place.hostname or "", place.port, timeout=ANSWER_S)) as connection:
        path = f"{place.path.rstrip('/')}/records/{quote(key, safe='')}"
        connection.request(method, path, body=body.encode(), headers=headers)
        answer = connection.getresponse()
        seen, text = int(answer.headers.get("Fencing-Token", -1)), answer.read().decode()
    if answer.status == 412:
        raise Fenced(f"fenced: {key} has token {seen}, ours is {token}: {text.strip()}")
    if answer.status == 404 and method == "GET":
        return -1, ""
    if answer.status not in (200, 204):
        raise HTTPException(f"expected 200, 204 or 412, found {answer.status}: {text.strip()}")
    return seen, text


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
        _check(token)
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
