"""The outside resources that the guards of examples/fencing stand before: real ones, started for a test."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from mesh.fleet.clearing import wait_until

GUARDS = Path(__file__).parents[2] / "examples" / "fencing"
START_S = 20.0


@contextmanager
def postgresql() -> Iterator[str]:
    """Start a PostgreSQL server of our own on a Unix socket; yields how to connect to it."""
    binaries = max(Path("/usr/lib/postgresql").glob("*/bin"), default=None, key=_version)
    if binaries is None or not (binaries / "initdb").exists():
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    # Not tmp_path: the path of a Unix socket is short, and another user cannot enter it.
    with tempfile.TemporaryDirectory(prefix="mesh-pg-") as place:
        # It refuses to run as root; and it ends when the thread that started it does.
        become = ["setpriv", "--pdeathsig", "INT"]
        if os.geteuid() == 0:
            owner = _unprivileged()
            os.chown(place, owner.pw_uid, owner.pw_gid)
            become += [f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups"]
        settings = ["-A", "trust", "-U", "mesh", "-N", "-E", "UTF8", "--locale=C"]
        _run([*become, binaries / "initdb", "-D", f"{place}/data", *settings], place)
        with Path(place, "log").open("wb") as log:
            server = subprocess.Popen(
                [
                    *become,
                    binaries / "postgres",
                    "-D",
                    f"{place}/data",
                    "-k",
                    place,
                    "-h",
                    "",
                    "-F",
                ],
                cwd=place,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            connection = f"host={place} user=mesh dbname=postgres"
            is_ready = [str(binaries / "pg_isready"), "-q", "-h", place]
            wait_until(
                lambda: subprocess.run(is_ready, check=False).returncode == 0 or None,
                START_S,
                lambda: AssertionError(Path(place, "log").read_text()),
            )
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("PATH", f"{binaries}:{os.environ['PATH']}")  # its own psql
                _run([sys.executable, GUARDS / "postgresql_guard.py", connection, "setup"], place)
                yield connection
        finally:
            server.send_signal(signal.SIGINT)  # do not wait for clients
            server.wait(START_S)


def _version(binaries: Path) -> float:
    return float(binaries.parent.name)


def _unprivileged() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


def _run(command: Sequence[str | Path], place: str) -> None:
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def http_service(program: Path, database: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Start the service on loopback; yields its URL and its process."""
    service = subprocess.Popen(
        [sys.executable, program, database],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # its access log
        text=True,
    )
    assert service.stdout is not None
    try:
        url = service.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), url
        yield url, service
    finally:
        service.kill()
        service.wait()
        service.stdout.close()
