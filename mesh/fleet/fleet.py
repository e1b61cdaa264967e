"""A handful of real nodes on this host: started, asked, killed and cleared away.

Each node is a process of its own (`python -m mesh join --headless`), in its own session, so that a
Ctrl-C meant for the fleet's owner does not reach it; the owner ends it. On Linux that process becomes the
node's guardian and the node is its child: faults hit the node, and a node has ended when its guardian
has, which leaves nothing behind. Every process that descends
from a node inherits a mark in its environment: that is how commands orphaned by a killed node are
found again (Linux only) and ended, each by its process id.

Used by the demo, by the tests with real processes and by the benchmarks.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from mesh.client import Client
from mesh.errors import MeshError, MeshUnreachable
from mesh.fleet.clearing import MARK, end_marked, undisturbed, wait_until
from mesh.guardian.process import below, look, send, survey

READY_TIMEOUT_S: Final = 20.0
STOP_TIMEOUT_S: Final = 10.0


class FleetError(MeshError):
    """A node did not do what its fleet asked; the text ends with the last lines of its log."""


class NodeProcess:
    """One node: its process, its data directory and its log."""

    def __init__(
        self, name: str, home: Path, environment: Mapping[str, str], wrapper: Sequence[str]
    ) -> None:
        self.name = name
        self.data = home / name
        self.log = home / f"{name}.log"
        self._environment = dict(environment)
        self._wrapper = tuple(wrapper)
        self._process: subprocess.Popen[bytes] | None = None
        self._pid: int | None = None  # of the node itself, once known

    @property
    def pid(self) -> int:
        """The node's own process in the latest start, not its guardian's; known once it has its directory."""
        return wait_until(
            lambda: self._node_pid() or (None if self.is_running else self.outer_pid),
            READY_TIMEOUT_S,
            lambda: self._error("it has not taken its data directory in time"),
        )

    @property
    def outer_pid(self) -> int:
        """The process that was started last: the guardian, where there is one, else the node."""
        return self._started().pid

    @property
    def is_running(self) -> bool:
        """Say whether the process of the latest start still runs."""
        return self._process is not None and self._process.poll() is None

    def start(self, arguments: Sequence[str]) -> None:
        """Start `mesh join --headless` with these further arguments; returns before it is ready."""
        if self.is_running:
            raise FleetError(f"{self.name} is running already")
        command = [sys.executable, "-m", "mesh", "join", "--headless", "--name", self.name]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._wrapper, *command, "--data", str(self.data), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **self._environment},
                start_new_session=True,
            )
        self._pid = None

    def client(self) -> Client:
        """Return a new connection to this node's control socket."""
        return Client(self.data)

    def call(self, name: str, **arguments: Any) -> Any:  # noqa: ANN401 - JSON goes in and comes out
        """Ask one question on a connection of its own."""
        with self.client() as client:
            return client.call(name, **arguments)

    def wait_ready(self, timeout_s: float = READY_TIMEOUT_S) -> dict[str, Any]:
        """Wait until the node is a member of a mesh and return its status."""

        def status() -> dict[str, Any] | None:
            if not self.is_running:
                raise self._error("it ended before it was ready")
            try:
                found: dict[str, Any] = self.call("status")
            except MeshUnreachable:
                return None
            return found if found["phase"] == "member" else None

        return wait_until(status, timeout_s, lambda: self._error("it was not ready in time"))

    def kill(self, *, guardian: bool = False) -> int:
        """End the node with SIGKILL and wait for its guardian's end; return the Unix time in ns just before.

        `guardian`: end that with it, so that nobody is left who knows that the node has ended.
        """
        process = self._started()
        node = self._node_pid()  # looked up before the clock is read
        at_ns = time.time_ns()
        if guardian and node is not None:
            process.kill()
            with contextlib.suppress(ProcessLookupError):
                os.kill(node, signal.SIGKILL)
        self._kill_node()
        process.wait()
        return at_ns

    def ask_to_end(self) -> None:
        """Send SIGTERM, and let go on what is stopped: else it would not heed it."""
        process = self._started()
        process.terminate()
        process.send_signal(signal.SIGCONT)
        node = self._node_pid()
        if node is not None and self.is_running:
            with contextlib.suppress(OSError):
                os.kill(node, signal.SIGCONT)

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> int | None:
        """Ask the process to end (SIGTERM), insist (SIGKILL) after `timeout_s`; return its exit code."""
        process = self._process
        if process is None:
            return None
        if self.is_running:
            process.terminate()
            try:
                process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self._kill_node()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout_s)
                process.kill()
        return process.wait()

    def wait_ended(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """Wait until the process ends by itself and return its exit code."""
        try:
            return self._started().wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise self._error("it did not end in time") from None

    def log_text(self) -> str:
        """Return everything that the node has logged."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise FleetError(f"{self.name} was never started")
        return self._process

    def _node_pid(self) -> int | None:
        """Return the node's own process: the one that holds the lock, if this start's is its parent, or is it."""
        outer = self.outer_pid
        if self._pid is None:
            with contextlib.suppress(OSError, ValueError):
                pid = int((self.data / "lock").read_text())
                if pid == outer or getattr(look(pid), "parent", 0) == outer:
                    self._pid = pid
        return self._pid

    def _kill_node(self) -> None:
        """Kill the node, also one that has no directory yet; its guardian then ends too."""
        process = self._started()
        if process.poll() is not None:
            return
        node = self._node_pid()
        if node is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(node, signal.SIGKILL)
        elif sys.platform == "linux" and (young := below((process.pid,), survey())):
            for child in young:
                send(child.key, signal.SIGKILL)
        else:
            process.kill()

    def _error(self, text: str) -> FleetError:
        lines = self.log_text().strip().splitlines()
        return FleetError(
            f"{self.name}: {text}; its log ends: {' / '.join(lines[-3:]) or '(empty)'}"
        )


class Fleet:
    """Nodes on one host, in one temporary directory; leaving the `with` block ends and removes all.

    The directory's path is short, because a Unix socket's may not exceed 107 bytes. `environment` is
    added to every node's own; `wrapper` is a command before its command, which must end by exec, and
    `inside` has, by name, one more for some node alone, after that.
    """

    def __init__(
        self,
        profile: str = "local",
        *,
        is_kept: bool = False,
        environment: Mapping[str, str] | None = None,
        wrapper: Sequence[str] = (),
        inside: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="mesh-"))
        self.profile = profile
        self.mark = secrets.token_hex(8)
        self.nodes: dict[str, NodeProcess] = {}
        self._is_kept = is_kept
        self._environment = {**(environment or {}), MARK: self.mark}
        self._wrapper = wrapper
        self._inside = dict(inside or {})
        self._first = ""

    def start(
        self, name: str, *arguments: str, slots: int = 1, bind: str = "127.0.0.1:0"
    ) -> NodeProcess:
        """Start a node; the first founds the mesh, later ones join it. Returns when it is a member."""
        node = self.launch(name, *arguments, slots=slots, bind=bind)
        status = node.wait_ready()
        self._first = self._first or status["address"]
        return node

    def launch(
        self, name: str, *arguments: str, slots: int = 1, bind: str = "127.0.0.1:0"
    ) -> NodeProcess:
        """Start a node and return at once; its own arguments may name other seeds."""
        node = self.nodes.get(name)
        if node is None:
            wrapper = (*self._wrapper, *self._inside.get(name, ()))
            node = self.nodes[name] = NodeProcess(name, self.home, self._environment, wrapper)
        settings = ("--bind", bind, "--profile", self.profile, "--slots", str(slots))
        seeds = (self._first,) if self._first and not arguments else ()
        node.start((*settings, *seeds, *arguments))
        return node

    @property
    def seed(self) -> str:
        """The first node's address, for joining by hand."""
        return self._first

    def running(self) -> list[NodeProcess]:
        """Return the nodes whose processes run, in the order of their first start."""
        return [node for node in self.nodes.values() if node.is_running]

    def wait_whole(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Wait until every running node sees every running node alive, and nobody else."""
        names = {node.name for node in self.running()}

        def alive(node: NodeProcess) -> set[str]:
            return {row["name"] for row in node.call("members") if row["state"] == "alive"}

        wait_until(
            lambda: all(alive(node) == names for node in self.running()) or None,
            timeout_s,
            lambda: FleetError(
                f"the {len(names)} nodes did not all see each other in {timeout_s:g} s"
            ),
        )

    def close(self) -> None:
        """End every process of this fleet, orphans too, and remove the directory."""
        for node in self.running():
            node.ask_to_end()
        for node in self.nodes.values():
            node.stop()
        end_marked(self.mark)
        if not self._is_kept:
            shutil.rmtree(self.home, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with undisturbed():
            self.close()
