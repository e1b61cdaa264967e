"""A guardian with a node that does as the test says, and the link between them in the test's hands."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

from mesh.fleet.clearing import marked_pids, wait_until
from mesh.guardian import link
from mesh.guardian.process import look
from mesh.runtime.guarded import guarded
from mesh.runtime.guardian import Answer, Cleared, Guardian, start_time_of

VARIABLE = "MESH_TEST_RUN"
PATIENCE_S = 10.0
NEVER = float("inf")
DAEMON = "setsid sh -c 'sleep 7001 & exit' & wait; exec sleep 7002"
"""Work that starts a daemon, which leaves group, session and parent; then what stays."""

NODE = Path(__file__).with_name("guarded_node.py")


def now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def until(ask: Callable[[], bool], what: str) -> None:
    """Wait until this is true."""
    wait_until(
        lambda: ask() or None, PATIENCE_S, lambda: AssertionError(f"not within time: {what}")
    )


def is_alive(pid: int) -> bool:
    process = look(pid)
    return process is not None and not process.is_dead


def is_frozen(pid: int) -> bool:
    process = look(pid)
    return process is not None and process.is_stopped


class Guarded:
    """A guardian, its node, and whatever that has started."""

    def __init__(
        self, home: Path, record: str = "record", *, before: str = "", tune: str = ""
    ) -> None:
        """Start it, in a process group of its own.

        `before` is what a shell does first that becomes the guardian; `tune`, Python in the guardian.
        """
        self.mark = f"{os.getpid()}-{time.monotonic_ns()}"
        place = home / f"{self.mark}.sock"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
            door.bind(str(place))
            door.listen()
            door.settimeout(PATIENCE_S)
            command = guarded(home / record, [sys.executable, "-I", "-S", str(NODE), str(place)])
            if tune:
                at = command.index("-c") + 1
                command[at] = f"import sys; sys.path.append(sys.argv[1]); {tune}; {command[at]}"
            if before:
                command = ["sh", "-c", f'{before}\nexec "$@"', "sh", *command]
            self.process = subprocess.Popen(
                command,
                process_group=0,
                env={**os.environ, VARIABLE: self.mark},
                stderr=subprocess.PIPE,
            )
            self._control = door.accept()[0]
        self._control.settimeout(PATIENCE_S)
        text, (fd,), *_ = socket.recv_fds(self._control, 16, 1)
        self.node_pid = int(text)
        self.pid = self.process.pid
        self.sock = socket.socket(fileno=fd)
        self.sock.setblocking(False)
        self.node = Guardian(self.sock, lambda _: None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in (self.pid, self.node_pid):
            if look(pid) is not None and pid in marked_pids(self.mark, VARIABLE):
                os.kill(pid, signal.SIGKILL)
        until(self._has_ended, "what was started has ended")
        self._control.close()
        self.sock.close()

    def _has_ended(self) -> bool:
        """Kill what is left; whoever is just replaced by another program shows no mark for a moment."""
        for pid in self.work():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            self.process.communicate(timeout=0.1)  # until nobody holds its stderr
        except subprocess.TimeoutExpired:
            return False
        return True

    def tell(self, *words: str) -> int:
        """Have the node do something, and return its answer."""
        self._control.sendall("\0".join(words).encode() + b"\n")
        return int(self._control.recv(16))

    def spawn(self, script: str) -> int:
        """Have the node start a shell script in a session of its own."""
        return self.tell("spawn", "sh", "-c", script)

    def exit(self, code: int) -> None:
        """Have the node end."""
        self._control.sendall(f"exit\0{code}\n".encode())

    def watch(
        self, run_id: int, pid: int, freeze_at: float = NEVER, kill_at: float = NEVER, **how: bool
    ) -> None:
        start = start_time_of(pid)
        assert start is not None
        self.node.watch(run_id, pid, start, freeze_at, kill_at, **how)

    def settle(self) -> None:
        """Wait until the guardian has read every order up to now, and sleeps."""
        run_id = time.monotonic_ns()
        self.node.watch(run_id, self.pid, 1, NEVER, NEVER)  # its own pid: refused
        self.hear_until(Answer(link.REFUSED, run_id))
        stat = Path(f"/proc/{self.pid}/stat")
        until(lambda: stat.read_text().rpartition(") ")[2].startswith("S"), "the guardian sleeps")

    def work(self) -> list[int]:
        """Return every process below the node that is not one of the two."""
        return [
            pid for pid in marked_pids(self.mark, VARIABLE) if pid not in {self.pid, self.node_pid}
        ]

    def sleeper(self, seconds: int) -> int:
        """Return the pid of the one `sleep` of so many seconds, once it is there."""

        def find() -> int | None:
            for pid in self.work():
                try:
                    line = Path(f"/proc/{pid}/cmdline").read_bytes()
                except OSError:
                    continue
                if line == b"sleep\0%d\0" % seconds:
                    return pid
            return None

        return wait_until(find, PATIENCE_S, lambda: AssertionError(f"no sleep {seconds}"))

    def orphan(self, seconds: int) -> int:
        """Return the pid of such a `sleep` once the guardian has adopted it."""
        pid = self.sleeper(seconds)
        until(lambda: getattr(look(pid), "parent", 0) == self.pid, f"{pid} is an orphan")
        return pid

    def hear(self) -> Answer | Cleared | None:
        """Return the guardian's next answer, None when it has died."""
        readable, _, _ = select.select([self.sock], [], [], PATIENCE_S)
        assert readable, "the guardian says nothing"
        try:
            packet = self.sock.recv(64)
        except ConnectionResetError:
            return None
        if not packet:
            return None
        kind, number, left = link.decode_answer(packet)
        return Cleared(number, left) if kind == link.CLEARED else Answer(kind, number)

    def hear_until(self, answer: Answer) -> None:
        """Read answers until this one comes."""
        while (heard := self.hear()) != answer:
            assert heard is not None, f"the guardian died before {answer}"
