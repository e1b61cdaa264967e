"""Five real nodes, each on a host of its own, and the question that every fault ends in: is it one mesh?"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from mesh.errors import MeshError, MeshUnreachable
from mesh.fleet.clearing import wait_until
from mesh.fleet.fleet import NodeProcess
from tests.net.ground import Ground

HOSTS = ("h1", "h2", "h3", "h4", "h5")
PORT = 7946
POLL_S = 0.1
START_TIMEOUT_S = 60.0
_EVENTS_MAX = 2_000
_SHOWN_MAX = 40


class SiteError(AssertionError):
    """The mesh is not as it should be; the text tells what each node sees and saw."""


class Row(NamedTuple):
    """What one node says of one member, as far as all have to say the same."""

    name: str
    node_id: str
    state: str
    boot: int
    incarnation: int
    address: str


View = frozenset[Row]


def key_arguments(home: Path) -> tuple[str, ...]:
    """Make a new key in a directory and return what `mesh join` is told of it."""
    key = home / "mesh.key"
    made = subprocess.run(
        [sys.executable, "-m", "mesh", "keygen"], capture_output=True, check=True, timeout=60
    )
    key.touch(mode=0o600)
    key.write_bytes(made.stdout)
    return "--key", str(key)


class Site:
    """A mesh of five nodes with one key. The first founds it; the others have the first as their seed.

    Each is bound to its host's address alone, or `everywhere`, as is the default with a key.
    """

    def __init__(self, profile: str, *, everywhere: bool = False) -> None:
        self.profile = profile
        self.everywhere = everywhere
        self.ground = Ground(HOSTS)
        self.nodes: dict[str, NodeProcess] = {}
        self._key: tuple[str, ...] = ()
        self._past: dict[str, list[dict[str, Any]]] = {host: [] for host in HOSTS}

    def __enter__(self) -> Self:
        self.ground.__enter__()
        try:
            self._found()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def address(self, host: str) -> str:
        """Return where a host's node listens."""
        return f"{self.ground.addresses[host]}:{PORT}"

    def start(self, host: str, *seeds: str) -> None:
        """Start a host's node and return at once."""
        settings = ("--profile", self.profile, "--slots", "1", *self._key)
        bound = f"0.0.0.0:{PORT}" if self.everywhere else self.address(host)
        self.nodes[host].start(("--bind", bound, *settings, *seeds))

    def kill(self, hosts: Iterable[str] = HOSTS) -> None:
        """End these nodes at once, as a power cut would."""
        victims = [self.nodes[host] for host in hosts]
        for node in victims:
            self._past[node.name] += self._recorded(node)
        for node in victims:
            os.kill(node.pid, 9)
        for node in victims:
            node.kill()

    def wait_bound(self) -> None:
        """Wait until every node answers its control socket: its ports are bound by then."""
        wait_until(
            lambda: all(map(_answers, self.nodes.values())) or None,
            START_TIMEOUT_S,
            lambda: SiteError(f"not every node came up{self.story()}"),
        )

    def command(self, host: str, *arguments: str) -> int:
        """Run `mesh …` for a host's node and return its exit code."""
        command = [sys.executable, "-m", "mesh", *arguments, "--data", str(self.nodes[host].data)]
        done = subprocess.run(command, capture_output=True, check=False, timeout=START_TIMEOUT_S)
        return done.returncode

    def keys(self, host: str) -> list[str]:
        """Return the ids of the keys that a host's node holds, the sealing one first."""
        return list(self.nodes[host].call("status")["keys"])

    def views(self) -> dict[str, View]:
        """Return what each node sees, by its host; nodes that do not answer see nobody."""
        return {host: _view(node) for host, node in self.nodes.items()}

    def wait_one(self, within_s: float, hold_s: float) -> float:
        """Wait until all nodes see the same five alive, where they are, and still do `hold_s` later.

        Returns after how many seconds that began. Raises SiteError if it did not begin `within_s`.
        """
        began = time.monotonic()
        since: float | None = None
        while True:
            at = time.monotonic()
            ended = [host for host, node in self.nodes.items() if not node.is_running]
            if ended:
                raise SiteError(f"the nodes of {', '.join(ended)} have ended{self.story()}")
            if not self._is_one(self.views()):
                since = None
            elif since is None:
                since = at
            if since is not None and at - since >= hold_s:
                return since - began
            if since is None and at - began > within_s:
                raise SiteError(f"no mesh with equal views within {within_s:g} s{self.story()}")
            time.sleep(POLL_S)

    def wait_apart(self, halves: Sequence[Sequence[str]], within_s: float) -> None:
        """Wait until each half sees itself alive, and nobody else either alive or suspect."""

        def are_apart() -> bool | None:
            views = self.views()
            return (
                all(_living(views[host]) == set(half) for half in halves for host in half) or None
            )

        wait_until(
            are_apart,
            within_s,
            lambda: SiteError(f"the cut was not noticed within {within_s:g} s{self.story()}"),
        )

    def events(self, kind: str, since_ns: int = 0) -> list[dict[str, Any]]:
        """Return what the nodes, in all their sessions, recorded of one kind since then."""
        return [
            event
            for host in HOSTS
            for event in self._all_events(host)
            if event["kind"] == kind and event["at_ns"] >= since_ns
        ]

    def story(self) -> str:
        """Return what each node sees and the last that it saw happen, for people."""
        now_ns = time.time_ns()
        lines = []
        for host, view in self.views().items():
            lines += ["", f"{host} at {self.address(host)} sees {len(view)}:"]
            lines += [f"    {' '.join(map(str, row))}" for row in sorted(view)]
            for event in self._all_events(host)[-_SHOWN_MAX:]:
                ago_s = (now_ns - event["at_ns"]) / 1e9
                what = " ".join(str(event[key]) for key in ("kind", "member", "cause", "detail"))
                lines.append(f"  {ago_s:6.1f} s ago: {what} {'; '.join(event['evidence'])}")
            lines += [f"  log: {line}" for line in self.nodes[host].log_text().splitlines()[-3:]]
        return "\n".join(lines)

    def _found(self) -> None:
        self._key = key_arguments(self.ground.home)
        for host in HOSTS:
            self.nodes[host] = NodeProcess(host, self.ground.home, {}, self.ground.inside(host))
        for host in HOSTS:
            self.start(host, *([self.address(HOSTS[0])] if host != HOSTS[0] else []))
        self.wait_one(START_TIMEOUT_S, hold_s=1.0)

    def _is_one(self, views: dict[str, View]) -> bool:
        """Say whether all see the same, and that is every host alive, at its address, and nobody else."""
        first, *others = views.values()
        return all(view == first for view in others) and sorted(
            (row.name, row.state, row.address) for row in first
        ) == [(host, "alive", self.address(host)) for host in HOSTS]

    def _end(self) -> None:
        self.ground.close()
        for node in self.nodes.values():
            node.stop()  # it was killed with its namespace: this only reaps it

    def _all_events(self, host: str) -> list[dict[str, Any]]:
        return self._past[host] + self._recorded(self.nodes[host])

    def _recorded(self, node: NodeProcess) -> list[dict[str, Any]]:
        """Return the events of the session that runs, oldest first; none if none runs."""
        try:
            with node.client() as client:
                return list(client.stream("events", follow=False, last=_EVENTS_MAX))
        except MeshError:
            return []


def _answers(node: NodeProcess) -> bool:
    try:
        node.call("status")
    except MeshUnreachable:
        return False
    return True


def _view(node: NodeProcess) -> View:
    try:
        rows = node.call("members")
    except MeshUnreachable:
        return frozenset()
    return frozenset(Row(**{name: row[name] for name in Row._fields}) for row in rows)


def _living(view: View) -> set[str]:
    return {row.name for row in view if row.state in {"alive", "suspect"}}
