#!/usr/bin/env python3
"""An HTTP service that keeps records for tasks, and refuses a run that was replaced.

    http_service.py DATABASE [PORT]     serve on loopback; 0, the default, is any free port

    POST /records/KEY     install the token, answer with the value to continue from
    PUT  /records/KEY     keep the body as the new value, if the token is still the one installed
    GET  /records/KEY     answer with the value, for people; nothing may go on from it

POST and PUT carry the header `Fencing-Token: INTEGER`. Answers: 200 with a value, 204 kept, 412 refused
(the header says which token is installed), 428 no token, 400 a token that is none, 413 too long.

The service is what decides, so it is the service that remembers: tokens are on its disk before it
answers. A guard that forgets them when it restarts, or that keeps them in each of several processes,
is none. See `sqlite_guard.py` for the two statements, and for why tokens are text.
"""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

BODY_BYTES_MAX = 1 << 20

TABLE = """
    CREATE TABLE IF NOT EXISTS fence (
        key TEXT PRIMARY KEY,
        token TEXT NOT NULL CHECK (length(token) = 58),
        value BLOB NOT NULL
    )"""
BEGIN = """
    INSERT INTO fence (key, token, value) VALUES (:key, :token, x'')
    ON CONFLICT (key) DO UPDATE SET token = excluded.token WHERE fence.token <= excluded.token
    RETURNING value"""
WRITE = "UPDATE fence SET value = :value WHERE key = :key AND token = :token"
SHOW = "SELECT token, value FROM fence WHERE key = :key"


class Service(ThreadingHTTPServer):
    """Serves the records of one database."""

    def __init__(self, database: str, port: int) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.database = database
        with closing(self.open()) as db:
            db.execute(TABLE)

    def open(self) -> sqlite3.Connection:
        """Open the database; every statement is a transaction of its own."""
        db = sqlite3.connect(self.database, timeout=60.0, isolation_level=None)
        db.execute("PRAGMA synchronous = FULL")
        return db


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: Service
    timeout = 10.0

    def do_GET(self) -> None:
        """Show a record."""
        with closing(self.server.open()) as db:
            found = db.execute(SHOW, {"key": self.key}).fetchone()
        token, value = found or (None, b"")
        self.answer(200 if found else 404, value, token)

    def do_POST(self) -> None:
        """Install a token, then read."""
        if token := self.token():
            with closing(self.server.open()) as db:
                found = db.execute(BEGIN, {"key": self.key, "token": token}).fetchall()
            if found:
                self.answer(200, found[0][0], token)
            else:
                self.refuse(token)

    def do_PUT(self) -> None:
        """Write under a token."""
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > BODY_BYTES_MAX:
            self.answer(413, b"expected a Content-Length of at most %d\n" % BODY_BYTES_MAX)
        elif token := self.token():
            value = self.rfile.read(int(length))
            if len(value) < int(length):  # the client died while it sent: half a value is none
                return
            record = {"key": self.key, "token": token, "value": value}
            with closing(self.server.open()) as db:
                is_kept = db.execute(WRITE, record).rowcount == 1
            if is_kept:
                self.answer(204, b"", token)
            else:
                self.refuse(token)

    @property
    def key(self) -> str:
        """The record that the path names."""
        return unquote(self.path.removeprefix("/records/"))

    def token(self) -> str:
        """Return the request's token as it is kept; without a good one answer, and return ""."""
        text = self.headers.get("Fencing-Token")
        if not self.path.startswith("/records/"):
            self.answer(404, b"expected /records/KEY\n")
        elif text is None:
            self.answer(428, b"expected a Fencing-Token\n")
        elif not (
            text.isascii() and text.isdigit() and len(text) < 60 and 0 < int(text) < 1 << 192
        ):
            self.answer(400, b"expected a Fencing-Token from 1 to 2**192 - 1\n")
        else:
            return f"{int(text):058d}"
        return ""

    def refuse(self, token: str) -> None:
        """Say which token is installed instead."""
        with closing(self.server.open()) as db:
            found = db.execute(SHOW, {"key": self.key}).fetchone()
        if found and found[0] > token:
            self.answer(412, b"a later owner has begun; stop\n", found[0])
        else:
            self.answer(412, b"not installed: begin before the first write\n", found and found[0])

    def answer(self, status: int, body: bytes, token: str | None = None) -> None:
        """Send the whole answer."""
        self.send_response(status)
        if token is not None:
            self.send_header("Fencing-Token", str(int(token)))
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main(arguments: list[str]) -> int:
    """Serve until it is ended."""
    if len(arguments) not in (1, 2):
        print(__doc__, file=sys.stderr)
        return 2
    with Service(arguments[0], int(arguments[1]) if arguments[1:] else 0) as service:
        print(f"http://127.0.0.1:{service.server_port}", flush=True)
        with suppress(KeyboardInterrupt):
            service.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
