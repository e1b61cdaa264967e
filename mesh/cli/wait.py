"""`submit --wait`: be the remote command's stdout, stderr and exit code.

Output is written as it comes, byte for byte, past Python's own buffers. The exit code is the
command's own; 125 when the mesh failed it, 130 when the user cancelled it with Ctrl-C. The first
Ctrl-C asks the mesh to cancel the task and goes on waiting for its end; the second leaves at once.

Whoever goes away takes the command along, as in a local pipe: when nobody reads the output any more
(`| head`), it is cancelled and the exit code is 141; so it is on SIGTERM (143) and SIGHUP (129).

That is for whoever submitted the task. Under an id that somebody else had submitted before, this command looks on:
what ends it, with the same exit code and at the first Ctrl-C, leaves the task alone.

    known  a node before may have taken it from us  in the same words   whose
    no     ·                                        ·                   ours
    yes    yes                                      yes                 ours: that node's answer was lost
    yes    yes                                      no                  another's
    yes    no                                       ·                   another's, or an earlier run's of this line

The task is the mesh's, not the node's that took it: when that node is lost, the next one that this host has is
asked. The id was drawn before, so that a task that may have been taken is submitted again, and runs once.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from mesh.cli.local_node import check_answers
from mesh.cli.shown import Shown
from mesh.cli.waiting import waiting_told
from mesh.client import Client, Stream
from mesh.errors import CommandRefused, ConfigError, MeshError, MeshUnreachable

EXIT_OUTPUT_LOST: Final = 1
EXIT_MESH_FAILED: Final = 125
EXIT_CANCELLED: Final = 130
EXIT_BROKEN_PIPE: Final = 128 + signal.SIGPIPE
RESUME_S: Final = 20.0
"""So long a node that is asked to go on may refuse: who is lost is not known to all at once."""

RESUME_PAUSE_S: Final = 0.5
_STDOUT, _STDERR = 1, 2


class _OutputLostError(Exception):
    """What the command prints cannot be passed on any more: the reader is gone, or the disk is full."""


class Waiter:
    """One task that is submitted and waited for, at one node after another. `request` holds its id."""

    def __init__(
        self, nodes: Sequence[Path], request: dict[str, Any], *, is_id_given: bool
    ) -> None:
        self.task_id: str = request["id"]
        self._nodes = nodes
        self._request = request
        self._is_id_given = is_id_given
        self._place = 0
        self._has_answered = False  # the node at this place
        self._is_sent = False
        self._is_taken = False
        self._is_own = True  # submitted by this command
        self._is_refused = False  # the node that was asked last said no
        self._shown = Shown()
        self._received_bytes = 0  # of the telling under way
        self._is_cancelled = False

    def run(self, *, is_json: bool) -> int:
        """Submit it, stream its output until it ends, and return the exit code to leave with.

        Raises:
            MeshUnreachable: no node took it.
            ConfigError: it is described wrongly.
        """
        try:
            with self._cancel_on_signals():
                task = self._end()
        except _OutputLostError as lost:
            reason = lost.__cause__
            is_pipe = isinstance(reason, BrokenPipeError)
            found = "nobody reads the output" if is_pipe else f"the output is lost ({reason})"
            self._take_along(found)
            return EXIT_BROKEN_PIPE if is_pipe else EXIT_OUTPUT_LOST
        if task is None:
            return EXIT_MESH_FAILED
        if is_json:
            with suppress(OSError):
                _write_all(_STDERR, (json.dumps(task) + "\n").encode())
        else:
            self._tell_of_losses(task)
        return _exit_code(task, is_own_cancel=self._is_cancelled)

    def _end(self) -> dict[str, Any] | None:
        """Return the task's JSON after its end; None if no node is left to follow it through, and that was said."""
        while True:
            node, self._has_answered = self._nodes[self._place], False
            is_last = self._place + 1 == len(self._nodes)
            try:
                return self._go_on_at(node)
            except ConfigError:
                raise
            except MeshUnreachable as error:
                if is_last and not self._is_sent:
                    raise
                why = f"the node in {node} was lost" if self._has_answered else str(error)
            except MeshError as error:
                why = str(error)
            if is_last:
                _say(f"{why}{self._left()}")
                return None
            self._place += 1
            self._say_where(why)

    def _left(self) -> str:
        """Return what becomes of the task when no node is left to ask."""
        if self._is_taken:
            return (
                f": task {self.task_id} goes on without this command; see mesh task {self.task_id}"
            )
        if self._is_refused:
            return ""
        return f": whether task {self.task_id} was taken is not known; submitted again under this id, it runs once"

    def _say_where(self, why: str) -> None:
        """Say that another node is asked from here on."""
        repeats = ""
        if self._is_taken:
            why = f"{why} while task {self.task_id} was not finished"
            self._shown.begin_again()
            repeats = "; output may be repeated" if self._shown.is_repeating else ""
        _say(f"{why}: going on with the one in {self._nodes[self._place]}{repeats}")

    def _go_on_at(self, node: Path) -> dict[str, Any]:
        """Submit the task at this node, or go on where the one before was lost; return its JSON after its end."""
        check_answers(node)
        self._has_answered = True
        deadline = time.monotonic() + (RESUME_S if self._is_taken else 0.0)
        while True:
            self._received_bytes = 0
            try:
                with Client(node) as client:
                    stream = self._stream(client)
                    with waiting_told(node, self.task_id):
                        self._pass_on(stream)
                    task: dict[str, Any] = stream.result
                    return task
            except CommandRefused:
                self._is_refused = True
                if self._received_bytes or time.monotonic() >= deadline:
                    raise
            time.sleep(RESUME_PAUSE_S)

    def _stream(self, client: Client) -> Stream:
        if self._is_taken:
            return client.stream("wait", id=self.task_id)
        was_sent, self._is_sent, self._is_refused = self._is_sent, True, False
        stream = client.stream("submit", wait=True, **self._request)
        answer = next(stream)
        is_known = self._is_id_given and answer.get("known", False)
        self._is_own = not is_known or (was_sent and answer.get("same", True))
        self._is_taken = True
        if not self._is_own:
            _say(known_text(answer) + ": here is its output")
        return stream

    def _pass_on(self, stream: Stream) -> None:
        """Write every piece to its own stream."""
        for piece in stream:
            self._received_bytes += len(piece["data"])
            was_repeating = self._shown.is_repeating
            data = self._shown.rest(piece["stream"], piece["data"])
            if self._shown.is_repeating and not was_repeating:
                _say(
                    f"task {self.task_id} is told otherwise than before: output from here on may be repeated"
                )
            try:
                _write_all(_STDERR if piece["stream"] == _STDERR else _STDOUT, data)
            except OSError as error:
                raise _OutputLostError from error

    @contextmanager
    def _cancel_on_signals(self) -> Iterator[None]:
        """Cancel a task of our own on Ctrl-C, SIGTERM and SIGHUP, once it was taken.

        Before that, and when it is another's, they end this command.

        The request is made inside the signal's handler, on a connection of its own: the read that the
        signal interrupted goes on afterwards as if nothing had happened.
        """

        def on_interrupt(_number: int, _frame: object) -> None:
            if self._is_taken and not self._is_own:
                self._take_along(signal.SIGINT.name)
            if self._is_cancelled or not self._is_taken or not self._is_own:
                raise KeyboardInterrupt
            self._is_cancelled = True
            self._cancel(
                f"cancelling task {self.task_id}; Ctrl-C again leaves without waiting for its end"
            )

        def on_end(number: int, _frame: object) -> None:
            if self._is_taken:
                self._take_along(signal.Signals(number).name)
            raise SystemExit(128 + number)

        handlers = {signal.SIGINT: on_interrupt, signal.SIGTERM: on_end, signal.SIGHUP: on_end}
        heeded = {n: h for n, h in handlers.items() if signal.getsignal(n) is not signal.SIG_IGN}
        before = {number: signal.signal(number, handler) for number, handler in heeded.items()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _take_along(self, why: str) -> None:
        """Cancel the task, since this command ends; one that it did not submit goes on."""
        if self._is_own:
            self._cancel(f"{why}: cancelling task {self.task_id}")
        else:
            _say(
                f"{why}: task {self.task_id} goes on, since this command did not submit it; "
                f"mesh cancel {self.task_id} ends it"
            )

    def _cancel(self, said: str) -> None:
        """Ask for the end of the task at the node that is waited at, or at one after it."""
        why: MeshError | None = None
        for node in self._nodes[self._place :]:
            try:
                with Client(node) as client:
                    request = client.stream("cancel", id=self.task_id)
                    _say(
                        said
                    )  # once it is on its way: whoever then leaves has cancelled all the same
                    said = f"asking the node in {node} to cancel it"
                    list(request)
                    return
            except MeshError as error:
                why = error
        _say(f"the task could not be cancelled: {why}")

    def _tell_of_losses(self, task: dict[str, Any]) -> None:
        """Say on stderr which attempts came to nothing, and whether output was lost."""
        result = task["result"]
        seen_bytes = max(self._received_bytes, self._shown.total)
        if result is not None and (missed := result["output_bytes"] - seen_bytes) > 0:
            _say(f"{missed} bytes of output were dropped before this command began to read them")
        for before, after in pairwise(task["attempts"]):
            _say(
                f"attempt {before['number']} on {before['node']} {_went(before)} and the task ran again "
                f"on {after['node']}; the output above may begin with a part of that attempt's"
            )


def known_text(answer: dict[str, Any]) -> str:
    """Return what is said of a task that was submitted under an id that is there already."""
    words = "" if answer.get("same", True) else ", as another command or with other options"
    return f"task {answer['id']} is already known{words}, nothing started"


def _went(attempt: dict[str, Any]) -> str:
    if attempt["exit_code"] is not None:
        return f"ended with exit code {attempt['exit_code']}"
    why = f" ({attempt['error']})" if attempt["error"] else ""
    return ("was let go" if attempt.get("end") == "released" else "was lost") + why


def _exit_code(task: dict[str, Any], *, is_own_cancel: bool) -> int:
    result = task["result"]
    if task["state"] == "cancelled":
        if not is_own_cancel:
            _say(f"task {task['id']} was cancelled")
        return EXIT_CANCELLED if is_own_cancel else EXIT_MESH_FAILED
    if result is None or result["exit_code"] is None:
        why = (result or {}).get("error") or "no result came back"
        _say(f"the mesh could not finish task {task['id']}: {why}")
        return EXIT_MESH_FAILED
    if result["error"]:
        _say(f"on {task['owner'] or 'the executing node'}: {result['error']}")
    return int(result["exit_code"])


def _say(text: str) -> None:
    with suppress(OSError):  # whoever closed stderr does not want to hear it
        _write_all(_STDERR, f"mesh: {' '.join(text.split())}\n".encode())


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
