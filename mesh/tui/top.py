"""`mesh top`: waits for views, keys and signals, and draws what they changed.

Frames that views ask for are drawn at most four times a second; a key or a new size is answered at
once. When the node goes away its last view stays, greyed, and the node is tried again every second.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import Final

from mesh.errors import CommandRefused, MeshUnreachable
from mesh.tui.board import Board
from mesh.tui.events_pane import clock
from mesh.tui.feed import Feed
from mesh.tui.keys import ESCAPE_WAIT_S, Keys
from mesh.tui.look import Look
from mesh.tui.painter import Painter
from mesh.tui.screen import Screen
from mesh.tui.terminal import ENDING, Interrupted, Terminal, Vanished

FRAME_INTERVAL_S: Final = 0.25
RETRY_INTERVAL_S: Final = 1.0
SILENCE_MAX_S: Final = 5.0
"""A node that says nothing for this long (views are asked for every second) is shown as gone."""

_FD_IN, _FD_OUT = 0, 1
_QUIT_KEYS: Final = frozenset({"q", "Q"})


INTERRUPTED: Final = 128 + signal.SIGINT


def run_top(data_dir: Path, *, is_joined: bool = False) -> int:
    """Show the live screen of the node in `data_dir` until the user quits; return the exit code.

    0: the user quit, or the terminal vanished; 2: no terminal; 3: no node; 128 + the number of the
    signal that ended it. Ctrl-C is how people leave, and counts as that, unless the screen `is_joined`
    to its node, which Ctrl-C ends too.
    """
    code = _run(data_dir, is_joined=is_joined)
    return 0 if code == INTERRUPTED and not is_joined else code


def _run(data_dir: Path, *, is_joined: bool) -> int:
    if not (os.isatty(_FD_IN) and os.isatty(_FD_OUT)):
        return _refuse("a terminal is expected, found none; use mesh members or mesh events", 2)
    if os.environ.get("TERM", "dumb") in {"", "dumb"}:
        return _refuse(
            "a terminal that can move its cursor is expected, TERM says it cannot; use mesh members",
            2,
        )
    feed = Feed(data_dir)
    try:
        feed.connect()
    except MeshUnreachable as error:
        return _refuse(str(error), 3)
    painter = Painter(_encoding(), is_colorful=not os.environ.get("NO_COLOR"))
    try:
        with Terminal(_FD_IN, _FD_OUT) as terminal:
            return Top(feed, terminal, painter, is_joined=is_joined).run()
    except Vanished:
        return 0
    except Interrupted as interrupted:
        return 128 + interrupted.number
    finally:
        feed.close()


class Top:
    """The loop of the screen. `feed` is connected, `terminal` is entered."""

    def __init__(
        self, feed: Feed, terminal: Terminal, painter: Painter, *, is_joined: bool = False
    ) -> None:
        self._is_joined = is_joined
        self._feed = feed
        self._terminal = terminal
        self._painter = painter
        self._board = Board()
        self._frozen: Board | None = None
        self._keys = Keys()
        self._look = Look(has_cursor=True)
        self._exit_code: int | None = None
        now = time.monotonic()
        self._heard_at = now
        self._retry_at = now
        self._drawn_at = now - FRAME_INTERVAL_S
        self._drawn: tuple[object, ...] = ()
        self._size = terminal.size()

    def run(self) -> int:
        """Run until the user quits or a signal ends it; return the exit code.

        Raises:
            Vanished: the terminal is gone.
            Interrupted: a signal ended it while it wrote.
        """
        while self._exit_code is None:
            self._draw()
            fds = [self._terminal.fd_in, self._terminal.wake_fd]
            if self._feed.fd is not None:
                fds.append(self._feed.fd)
            readable, _, _ = select.select(fds, [], [], self._patience_s())
            if self._terminal.wake_fd in readable:
                signals = self._terminal.take_signals()
                # Who is to end takes the terminal no more, whatever came first.
                for number in [one for one in signals if one in ENDING] or signals:
                    self._on_signal(number)
            if self._terminal.fd_in in readable:
                self._press(self._keys.feed(self._terminal.read()))
            elif not readable and self._keys.is_waiting:
                self._press(self._keys.flush())
            self._listen(is_readable=self._feed.fd in readable)
        return self._exit_code

    def _patience_s(self) -> float:
        """Return how long nothing needs doing unless something comes in."""
        now = time.monotonic()
        waits = [RETRY_INTERVAL_S]
        if self._keys.is_waiting:
            waits.append(ESCAPE_WAIT_S)
        if self._frame() != self._drawn:
            waits.append(self._drawn_at + FRAME_INTERVAL_S - now)
        if self._feed.fd is None:
            waits.append(self._retry_at - now)
        return max(0.0, min(waits))

    def _on_signal(self, number: signal.Signals) -> None:
        if number in ENDING:
            self._exit_code = 128 + number
        elif number == signal.SIGWINCH:
            self._size = self._terminal.size()
        elif number == signal.SIGTSTP:
            self._terminal.suspend()
            self._redraw()
        elif number == signal.SIGCONT:
            self._terminal.renew()
            self._size = self._terminal.size()
            self._redraw()
            self._heard_at = time.monotonic()

    def _press(self, keys: list[str]) -> None:
        for key in keys:
            if key == "ctrl_c" or (key in _QUIT_KEYS and not self._look.takes_quit):
                self._exit_code = 0
            elif key == "ctrl_l":
                self._redraw()
            else:
                self._look = self._screen().press(key)
                self._freeze()

    def _freeze(self) -> None:
        """Hold the picture while paused: the board goes on, and is there at once when it is looked at again."""
        if not self._look.is_paused:
            self._frozen = None
        elif self._frozen is None:
            self._frozen = self._board.snapshot()

    def _listen(self, *, is_readable: bool) -> None:
        """Take what the node said; notice when it says nothing; try again when it is gone."""
        now = time.monotonic()
        if self._feed.fd is None:
            if now >= self._retry_at:
                self._retry_at = now + RETRY_INTERVAL_S
                self._reconnect()
            return
        if not is_readable:
            if now - self._heard_at > SILENCE_MAX_S:
                self._board.mark_gone("it is silent")
            return
        try:
            items = self._feed.take()
        except (MeshUnreachable, CommandRefused) as error:
            self._board.mark_gone(str(error))
            self._retry_at = now + RETRY_INTERVAL_S
            return
        for item in items:
            self._heard_at = now
            self._board.fold(item)

    def _reconnect(self) -> None:
        try:
            self._feed.connect()
        except MeshUnreachable:
            return
        self._board.restart()

    def _screen(self) -> Screen:
        width, height = self._size
        gone_s = time.monotonic() - self._heard_at if self._board.gone else 0.0
        board = self._frozen or self._board
        return Screen(
            board,
            width,
            height,
            self._look,
            gone_s=gone_s,
            paused=self._paused(),
            is_joined=self._is_joined,
        )

    def _paused(self) -> str:
        frozen = self._frozen
        if frozen is None:
            return ""
        missed = self._board.events_seen - frozen.events_seen
        events = "event" if missed == 1 else "events"
        news = f", {missed} new {events} since" if missed else ""
        away = f"; meanwhile the node is gone: {self._board.gone}" if self._board.gone else ""
        return f"PAUSED at {clock(frozen.at, None)}{news}{away}; p goes on"

    def _frame(self) -> tuple[object, ...]:
        """Return what the next frame depends on: equal to the last one's, there is nothing to draw."""
        board = self._frozen or self._board
        gone_s = int(time.monotonic() - self._heard_at) if board.gone else 0
        return self._look, self._size, board.version, gone_s, self._paused()

    def _draw(self) -> None:
        frame = self._frame()
        if frame == self._drawn:
            return
        now = time.monotonic()
        is_asked_for = frame[:2] != self._drawn[:2]
        if not is_asked_for and now < self._drawn_at + FRAME_INTERVAL_S:
            return
        self._drawn, self._drawn_at = frame, now
        data = self._painter.paint(self._screen().render())
        if data:
            self._terminal.write(data)

    def _redraw(self) -> None:
        self._painter.forget()
        self._drawn = ()


def _encoding() -> str:
    """Return the terminal's encoding."""
    return getattr(sys.__stdout__, "encoding", None) or "ascii"


def _refuse(message: str, exit_code: int) -> int:
    """Say in one line why there is no screen."""
    sys.stderr.write(f"mesh top: {message}\n")
    return exit_code
