"""Tells the node's work from others below the guardian: processes that it had before it was one.

A container's entry point starts a helper and then becomes `mesh join` by exec: the helper is the
guardian's child, and what it orphans becomes so, too. As process 1 of a container the guardian adopts
everybody's orphans. None of that is the node's, and nothing is done to it.

Mostly there is no such company: then all that is below the guardian came from the node. Else a process is
the node's if it descends from the node, or was seen to; if a run leads its group or session; or if it
carries the guardian's mark in its environment. To read that may take as long as a process stuck in the
kernel likes: a child of the guardian reads it, for a moment. Of whom nothing is known is left alone, but
may be work that emptied its environment: it leaves no proof for an obituary.
"""

from __future__ import annotations

import os
import select

from mesh.guardian.process import SIGKILL, below, carries, look, survey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container
    from typing import Final

    from mesh.guardian.process import Key, Process

READ_TIMEOUT_MS: Final = 200
TRIES_MAX: Final = 3
"""How often one that does not answer is asked: the reader itself may have been slow."""


class Company:
    """Who lives below one guardian. Create it once the guardian is the subreaper, before its node starts."""

    def __init__(self, guardian: int, entry: str) -> None:
        """Look who is there already; `entry` is what the node's work has in its environment."""
        self.guardian = guardian
        self.unclear = 0
        """How many of the last look may be the node's work, or not."""

        self._entry = entry.encode()
        self._ours: dict[Key, bool] = {}  # of those that the last look saw
        self._mute: dict[Key, int] = {}  # whose environment could not be read in time, how often
        self._readers: dict[Key, bool] = {}  # the last child that read: it is nobody's
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            self.is_shared = True
        except ChildProcessError:
            self.is_shared = guardian == 1
        if self.is_shared:
            self._ours = dict.fromkeys(
                (process.key for process in below((guardian,), survey())), False
            )

    def pick(
        self, tree: list[Process], own: Container[int], leaders: Container[int]
    ) -> list[Process]:
        """Return who of a guardian's descendants, parents first, is the node or its work. Raises OSError."""
        if not self.is_shared:
            return tree
        known, unclear = self._judge(tree, own, leaders)
        if marked := self._marked(
            [each for each in unclear if self._mute.get(each.key, 0) < TRIES_MAX]
        ):
            self._ours.update(dict.fromkeys(marked, True))
            known, unclear = self._judge(tree, own, leaders)
        self.unclear = len(unclear)
        self._ours = known | self._readers
        keys = {process.key for process in tree}
        self._mute = {key: count for key, count in self._mute.items() if key in keys}
        return [process for process in tree if known.get(process.key)]

    def _judge(
        self, tree: list[Process], own: Container[int], leaders: Container[int]
    ) -> tuple[dict[Key, bool], list[Process]]:
        """Return of each whether it is the node's, and those living of whom nobody knows."""
        known: dict[Key, bool] = {}
        unclear = []
        by_pid: dict[int, bool] = {}
        for process in tree:
            is_ours = self._ours.get(process.key)
            if is_ours is None and (
                process.pid in own or process.group in leaders or process.session in leaders
            ):
                is_ours = True
            if is_ours is None:
                is_ours = by_pid.get(process.parent)
            if is_ours is not None:
                known[process.key] = by_pid[process.pid] = is_ours
            elif not process.is_dead:
                unclear.append(process)
        return known, unclear

    def _marked(self, processes: list[Process]) -> list[Key]:
        """Return who carries the mark; who does not answer in time is asked a few times only."""
        if not processes:
            return []
        ear, mouth = os.pipe()
        try:
            reader = os.fork()
        except OSError:
            os.close(ear)
            os.close(mouth)
            raise
        if reader == 0:
            try:
                for process in processes:
                    os.write(mouth, b"\1" if self._carries_mark(process) else b"\0")
            finally:
                os._exit(0)
        os.close(mouth)
        answers = b""
        try:
            patience = select.poll()
            patience.register(ear, select.POLLIN)
            while patience.poll(READ_TIMEOUT_MS):
                heard = os.read(ear, len(processes))
                if not heard:
                    break
                answers += heard
            if (itself := look(reader)) is not None:
                self._readers = {itself.key: False}
        finally:
            os.close(ear)
            os.kill(reader, SIGKILL)  # not reaped yet: this pid is its own
        if len(answers) < len(processes):
            silent = processes[len(answers)].key
            self._mute[silent] = self._mute.get(silent, 0) + 1
        return [process.key for process, answer in zip(processes, answers, strict=False) if answer]

    def _carries_mark(self, process: Process) -> bool:
        try:
            return carries(process.pid, (self._entry,))
        except OSError:  # for now; the next look asks again
            return False
