"""Talks to the local node through its control socket: blocking, small, quick to import.

Every command but `mesh join` is this client and a few lines of printing. It knows nothing of the
mesh: requests and answers are plain maps.
"""

from __future__ import annotations

import errno
import json
import os
import shlex
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgpack

from mesh.core.start_line import shown_line
from mesh.errors import CommandRefused, ConfigError, MeshError, MeshUnreachable
from mesh.wire.frames import FrameReader, frame

SOCKET_NAME: Final = "control.sock"
START_NAME: Final = "start"
"""JSON: the command line that the node of a data directory was last started with, and in which directory."""

START_BYTES_MAX: Final = 128 * 1024
REQUEST_BYTES_MAX: Final = 4 * 1024 * 1024
ANSWER_BYTES_MAX: Final = 256 * 1024 * 1024
_PATH_BYTES_MAX: Final = 100  # a socket's address holds 104 to 108, according to the system
_READ_BYTES: Final = 65_536
_QUEUE_PAUSE_S: Final = 0.02
_ERRORS: Final = {"usage": ConfigError, "refused": CommandRefused}


def default_data_dirs() -> tuple[Path, ...]:
    """Return the data directories of this host's nodes, one at least: those of $MESH_DATA, apart by `:`.

    Without it: $XDG_DATA_HOME/mesh, or ~/.local/share/mesh.

    Raises:
        ConfigError: none is set, and this user has no home.
    """
    given = [part for part in os.environ.get("MESH_DATA", "").split(os.pathsep) if part]
    if given:
        return tuple(map(Path, given))
    share = os.environ.get("XDG_DATA_HOME")
    if share:
        return (Path(share) / "mesh",)
    try:
        return (Path.home() / ".local" / "share" / "mesh",)
    except RuntimeError as error:
        raise ConfigError(
            "a home directory is expected for the node's data, found none; name a directory with --data or MESH_DATA"
        ) from error


def last_start(data_dir: Path) -> str:
    """Return the shell line that starts the node of a data directory again, as its user did; "" where none is kept.

    The commands of its hooks are not shown: then a comment says where they are.
    """
    try:
        # A pipe of that name would wait for whoever writes: opened like this it is empty.
        fd = os.open(data_dir / START_NAME, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(fd, "rb") as file:  # noqa: PTH123 - it is open already
            kept = json.loads(file.read(START_BYTES_MAX) or b"")
        whole, directory = str(kept["command"]), str(kept["directory"])
        command = shown_line(whole)
    except (OSError, ValueError, RecursionError, TypeError, KeyError):
        return ""
    if command != whole:
        command += f"  # …: see {shlex.quote(str(data_dir / START_NAME))}"
    if not command or directory in {"", current_directory()}:
        return command
    return f"cd {shlex.quote(directory)} && {command}"


def current_directory() -> str:
    """Return the directory that this process is in; "" if it was removed."""
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return ""


def how_to_start(data_dir: Path) -> str:
    """Return what to do where a node is expected in a data directory and none answers."""
    if again := last_start(data_dir):
        return f"start it again: {again}"
    return "start one with 'mesh join', or name its directory with --data or MESH_DATA"


def default_data_dir() -> Path:
    """Return the first of `default_data_dirs`.

    Raises:
        ConfigError: none is set, and this user has no home.
    """
    return default_data_dirs()[0]


@contextmanager
def socket_address(data_dir: Path) -> Iterator[str]:
    """Give an address for the directory's control socket, short enough for the system while the context is open.

    Raises:
        OSError: the path is too long and its directory cannot be opened.
    """
    path = str(data_dir / SOCKET_NAME)
    if len(os.fsencode(path)) <= _PATH_BYTES_MAX:
        yield path
        return
    if sys.platform != "linux":
        raise OSError(errno.ENAMETOOLONG, f"a path of at most {_PATH_BYTES_MAX} bytes is expected")
    directory = os.open(data_dir, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{directory}/{SOCKET_NAME}"
    finally:
        os.close(directory)


class Stream:
    """An iterator over a request's items; afterwards `result` is what the request ended with."""

    def __init__(self, client: Client) -> None:
        self.result: Any = None
        self._client = client
        self._is_over = False

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:  # noqa: ANN401 - JSON comes back
        if self._is_over:
            raise StopIteration
        answer = self._client.next_answer()
        if "item" in answer:
            return answer["item"]
        self._is_over = True
        self.result = answer.get("ok")
        raise StopIteration


class Client:
    """One connection to the node that runs in `data_dir`; opened by the first request.

    Not for two threads at once. After an error, or a stream that was not read to its end, close it.
    """

    def __init__(self, data_dir: Path | str | None = None, *, timeout_s: float = 60.0) -> None:
        self.data_dir = (Path(data_dir) if data_dir is not None else default_data_dir()).absolute()
        self._timeout_s = timeout_s
        self._socket: socket.socket | None = None
        self._reader = FrameReader(ANSWER_BYTES_MAX)
        self._answers: list[bytes] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def call(self, name: str, /, **args: Any) -> Any:  # noqa: ANN401 - JSON goes and comes
        """Send one request and return its answer.

        Raises:
            MeshUnreachable: no node runs there, or it does not answer within the timeout.
            CommandRefused: the node said no.
            ConfigError: what was asked is wrong or too long.
            MeshError: the node met a bug.
        """
        self._send(name, args, self._timeout_s)
        return self.next_answer().get("ok")

    def stream(self, name: str, /, **args: Any) -> Stream:  # noqa: ANN401 - JSON goes and comes
        """Send one request that is answered by many items; items are waited for without limit.

        Raises:
            MeshUnreachable: no node runs there, or (while iterating) it is gone.
            CommandRefused: while iterating, the node said no.
            ConfigError: what was asked is wrong or too long.
            MeshError: while iterating, the node met a bug.
        """
        self._send(name, args, None)
        return Stream(self)

    def close(self) -> None:
        """Close the connection. Harmless when repeated."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._answers.clear()
        self._reader = FrameReader(ANSWER_BYTES_MAX)

    def fileno(self) -> int:
        """Return the descriptor to wait on with select or poll; -1 when not connected."""
        return -1 if self._socket is None else self._socket.fileno()

    def next_answer(self) -> dict[str, Any]:
        """Return the next answer frame as it came; errors are raised. For `Stream`."""
        while not self._answers:
            self._answers += self._reader.feed(self._receive())
        answer: dict[str, Any] = msgpack.unpackb(self._answers.pop(0), strict_map_key=False)
        if "error" in answer:
            kind = _ERRORS.get(str(answer.get("code")), MeshError)
            raise kind(str(answer["error"]))
        return answer

    def _send(self, name: str, args: dict[str, Any], timeout_s: float | None) -> None:
        try:
            body = frame(msgpack.packb({"do": name, **args}))
        except UnicodeEncodeError as error:
            raise ConfigError(
                "arguments are expected as UTF-8 text, found other bytes; pass such names through a file"
            ) from error
        if len(body) > REQUEST_BYTES_MAX:
            raise ConfigError(
                f"a request of at most {REQUEST_BYTES_MAX} bytes is expected, found {len(body)}; pass a file's name "
                "rather than its contents"
            )
        if self._socket is None:
            self._socket = self._connect()
        try:
            self._socket.settimeout(self._timeout_s)
            self._socket.sendall(body)
            self._socket.settimeout(timeout_s)
        except BrokenPipeError:
            # It hung up before it was asked; what it said first comes out of `next_answer`.
            self._socket.settimeout(timeout_s)
        except OSError as error:
            raise self._unreachable(error.strerror or "it takes no more requests") from error

    def _connect(self) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.settimeout(self._timeout_s)
            with socket_address(self.data_dir) as address:
                self._queue_up(sock, address)
        except OSError as error:
            sock.close()
            if error.errno in {errno.EACCES, errno.EPERM}:
                reason = "it belongs to another user"
            elif error.errno in {errno.ENOENT, errno.ECONNREFUSED, errno.ENOTDIR}:
                reason = "none runs there"
            else:
                reason = error.strerror or "it does not answer"
            raise self._unreachable(reason) from error
        return sock

    def _queue_up(self, sock: socket.socket, address: str) -> None:
        """Connect; where so many want to that the system takes no more into the queue, try again."""
        give_up_at = time.monotonic() + self._timeout_s
        while True:
            try:
                return sock.connect(address)
            except BlockingIOError:
                if time.monotonic() >= give_up_at:
                    raise TimeoutError(
                        errno.ETIMEDOUT, "too many others ask it at once; try again later"
                    ) from None
                time.sleep(_QUEUE_PAUSE_S)

    def _receive(self) -> bytes:
        sock = self._socket
        if sock is None:
            raise self._unreachable("the connection is closed")
        try:
            data = sock.recv(_READ_BYTES)
        except TimeoutError as error:
            raise self._unreachable(f"it did not answer within {self._timeout_s:g} s") from error
        except OSError as error:
            raise self._unreachable(error.strerror or "the connection broke") from error
        if not data:
            raise self._unreachable("it stopped, or closed the connection")
        return data

    def _unreachable(self, reason: str) -> MeshUnreachable:
        self.close()
        return MeshUnreachable(
            f"a node is expected in {self.data_dir}: {reason}; {how_to_start(self.data_dir)}"
        )
