"""The terminal: taken over whole, and given back as it was found, whatever ends the program.

Entering saves the terminal's settings, switches to its alternate screen, hides the cursor, stops
wrapping and echoing, and turns signals into numbers that the loop reads. Leaving undoes all of it, once,
and also when an exception passes through. A signal that ends the program breaks off a write that
hangs, because a terminal may have stopped taking text for good.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import struct
import termios
import tty
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Final, Self, TypeAlias

_ENTER: Final = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[0m\x1b[2J"
_LEAVE: Final = b"\x1b[0m\x1b[?2026l\x1b[?7h\x1b[?25h\x1b[?1049l"

ENDING: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
_WATCHED: Final = (*ENDING, signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT)
_SIZE_DEFAULT: Final = (80, 24)

_Handler: TypeAlias = Callable[[int, FrameType | None], object] | int | None


class Interrupted(BaseException):
    """A signal came while a write hung. Not an Exception: nothing on the way may take it for an error."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(number)


class Vanished(Exception):  # noqa: N818 - reads as what happened
    """The terminal is gone; there is nobody to tell."""


class Terminal:
    """A terminal held as a full screen while the context is entered. To be used in the main thread.

    Args:
        fd_in: where keys are read.
        fd_out: where frames are written.
    """

    def __init__(self, fd_in: int, fd_out: int) -> None:
        self.fd_in = fd_in
        self._fd_out = fd_out
        self._is_writing = False
        self._is_stuck = False
        self._settings: list[object] = []
        self._handlers: dict[signal.Signals, _Handler] = {}
        self._wake_out, self._wake_in = socket.socketpair()
        self._wakeup_before = -1

    def __enter__(self) -> Self:
        """Take the terminal over."""
        for end in (self._wake_out, self._wake_in):
            end.setblocking(False)
        self._wakeup_before = signal.set_wakeup_fd(
            self._wake_in.fileno(), warn_on_full_buffer=False
        )
        try:
            for number in _WATCHED:
                self._handlers[number] = signal.signal(number, self._on_signal)
            self._take()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the terminal back, then the signals."""
        try:
            self._give_back()
        finally:
            signal.set_wakeup_fd(self._wakeup_before)
            for number, handler in self._handlers.items():
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
            self._handlers = {}
            self._wake_in.close()
            self._wake_out.close()

    @property
    def wake_fd(self) -> int:
        """What becomes readable when a signal came; read it with `take_signals`."""
        return self._wake_out.fileno()

    def take_signals(self) -> list[signal.Signals]:
        """Return the signals that came since the last call, in order."""
        with contextlib.suppress(BlockingIOError):
            return [signal.Signals(number) for number in self._wake_out.recv(256)]
        return []

    def size(self) -> tuple[int, int]:
        """Return (width, height) in cells; 80 by 24 when the terminal does not say."""
        try:
            packed = fcntl.ioctl(self._fd_out, termios.TIOCGWINSZ, bytes(8))
        except OSError:
            return _SIZE_DEFAULT
        rows, columns = struct.unpack_from("HH", packed)
        return columns or _SIZE_DEFAULT[0], rows or _SIZE_DEFAULT[1]

    def read(self) -> bytes:
        """Return keys that were pressed, at least one byte; call when `fd_in` is readable.

        Raises:
            Vanished: the terminal hung up.
        """
        try:
            data = os.read(self.fd_in, 1024)
        except OSError as error:
            raise Vanished from error
        if not data:
            raise Vanished
        return data

    def write(self, data: bytes) -> None:
        """Write all of `data`.

        Raises:
            Vanished: the terminal is gone.
            Interrupted: a signal that ends the program came while the terminal took nothing.
        """
        with _vanishing():
            self._is_writing = True
            try:
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(self._fd_out, rest) :]
            finally:
                self._is_writing = False

    def suspend(self) -> None:
        """Give the terminal back and stop, as Ctrl-Z asks; take it again when continued.

        The kernel does not stop a process that no shell could continue, as in a window that runs nothing else.
        """
        self._give_back()
        with _handled(signal.SIGTSTP, signal.SIG_DFL):
            os.kill(os.getpid(), signal.SIGTSTP)
        self._take()

    def renew(self) -> None:
        """Set the terminal up again: whoever had it while this process was stopped may have changed it."""
        self._await_foreground()
        with _vanishing():
            tty.setcbreak(self.fd_in, termios.TCSANOW)
        self.write(_ENTER)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        """The wakeup socket has told the loop already; only a hanging write needs more."""
        if self._is_writing and number in ENDING:
            self._is_stuck = True
            raise Interrupted(number)

    def _await_foreground(self) -> None:
        """Stand still while the terminal is somebody else's, until a shell continues this process in the foreground.

        The kernel would stop the whole process group instead, and with it a node that has its screen here.
        """
        self._is_writing = True  # as from a hanging write, a signal that ends the program leads out
        try:
            while _is_in_background(self.fd_in):
                os.kill(os.getpid(), signal.SIGSTOP)
        finally:
            self._is_writing = False

    def _take(self) -> None:
        self._await_foreground()
        with _vanishing():
            self._settings = termios.tcgetattr(self.fd_in)
        self.renew()

    def _give_back(self) -> None:
        """Undo `_take`, at most once, and never wait for a terminal that takes nothing."""
        settings, self._settings = self._settings, []
        if not settings:
            return
        self._is_writing = False
        # A shell may have it already: that must not stop what puts it right.
        with _handled(signal.SIGTTOU, signal.SIG_IGN):
            with contextlib.suppress(termios.error, OSError):
                if self._is_stuck:  # what it did not take makes room for what it must
                    termios.tcflush(self._fd_out, termios.TCOFLUSH)
                termios.tcflow(self._fd_out, termios.TCOON)
                os.write(self._fd_out, _LEAVE)
            with contextlib.suppress(termios.error, OSError):
                termios.tcflush(self.fd_in, termios.TCIFLUSH)
                termios.tcsetattr(self.fd_in, termios.TCSANOW, settings)  # type: ignore[arg-type]  # what tcgetattr gave


def _is_in_background(fd: int) -> bool:
    """Say whether another process group has the terminal; False where there is no such thing."""
    try:
        return os.tcgetpgrp(fd) != os.getpgrp()
    except OSError:
        return False


@contextlib.contextmanager
def _handled(number: signal.Signals, handler: signal.Handlers) -> Iterator[None]:
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


@contextlib.contextmanager
def _vanishing() -> Iterator[None]:
    try:
        yield
    except (OSError, termios.error) as error:
        raise Vanished from error
