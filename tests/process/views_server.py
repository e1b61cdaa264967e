"""A control socket that says what a test wants said, when it wants: for the screen's terminal tests."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import msgpack

from mesh.wire.frames import FrameReader, frame


class ViewsServer:
    """Answers `events` and `views` on DIR/control.sock until it is stopped."""

    def __init__(
        self, data_dir: Path, views: list[Mapping[str, object]], interval_s: float
    ) -> None:
        self._path = data_dir / "control.sock"
        self._views = views
        self._interval_s = interval_s
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self.sent = 0

    def __enter__(self) -> Self:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self._path))
        self._listener.listen(8)
        self._listener.settimeout(0.05)
        self._begin(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(5)
        self._listener.close()
        self._path.unlink()

    def _begin(self, what: object, *arguments: object) -> None:
        assert callable(what)
        thread = threading.Thread(target=what, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._over.is_set():
            with suppress(TimeoutError):
                connection, _ = self._listener.accept()
                self._begin(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        reader = FrameReader(65_536)
        with connection, suppress(OSError):
            connection.settimeout(0.05)
            while not self._over.is_set():
                data = b""
                with suppress(TimeoutError):
                    data = connection.recv(65_536)
                    if not data:
                        return
                for body in reader.feed(data):
                    self._answer(connection, msgpack.unpackb(body))

    def _answer(self, connection: socket.socket, request: Mapping[str, object]) -> None:
        if request["do"] == "events":
            connection.sendall(frame(msgpack.packb({"ok": {}})))
            return
        assert request["do"] == "views"
        connection.settimeout(5)
        while not self._over.wait(self._interval_s):
            view = {**self._views[self.sent % len(self._views)], "at": time.time()}
            connection.sendall(frame(msgpack.packb({"item": {"view": view}})))
            self.sent += 1
