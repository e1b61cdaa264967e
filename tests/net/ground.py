"""Hosts of one's own: network namespaces, each cabled to a bridge that stands in one more namespace.

    host h1 ── eth0 ═══ h1 ─┐
    host h2 ── eth0 ═══ h2 ─┤ bridge        nothing of the machine's own network is touched
    host h3 ── eth0 ═══ h3 ─┘

Faults are rules of iptables in the hosts' own namespaces, on what arrives there. Loss is drawn by the
kernel, so no two runs lose the same packets.

A process of its own clears everything away as soon as the ground is left, also when that is because
the process that stood on it was killed.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypeAlias

from mesh.bench import keeper

How: TypeAlias = Literal["DROP", "REJECT"]

COMMANDS = ("ip", "iptables", "nsenter")
PREFIX = "meshnet"
_BRIDGE = "bridge"
# A refusal that is refused in turn would never arrive.
_LET_RESETS_IN = ("-p", "tcp", "--tcp-flags", "RST", "RST", "-j", "ACCEPT")
_REJECT = (
    ("-p", "tcp", "-j", "REJECT", "--reject-with", "tcp-reset"),
    ("-p", "udp", "-j", "REJECT", "--reject-with", "icmp-port-unreachable"),
)


class GroundError(Exception):
    """A command that shapes the network failed; the text says which, and what it said."""


def run(*command: str) -> str:
    """Run a command to its end and return what it wrote. Raises GroundError."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    if done.returncode:
        raise GroundError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


@functools.cache
def why_not() -> str:
    """Return why no ground can be had here; "" if it can. Tries it out once."""
    missing = [command for command in COMMANDS if shutil.which(command) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    if os.geteuid() != 0:
        return "only root may make network namespaces here"
    try:
        with Ground(("a", "b")) as ground:
            ground.cut(["a"], ["b"], "REJECT")
            ground.lose(0.5)
    except GroundError as error:
        return f"no network namespaces with iptables here: {error}"
    return ""


class Ground:
    """Named hosts on one bridge; host number n, from 1, has the address 10.77.0.n."""

    def __init__(self, hosts: Sequence[str]) -> None:
        self.run = keeper.new_run(PREFIX)
        self.home = keeper.home_of(self.run)
        self.addresses = {host: f"10.77.0.{n}" for n, host in enumerate(hosts, 1)}
        self._keeper: subprocess.Popen[bytes] | None = None
        self._started: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        for run_left in keeper.leftovers(PREFIX):
            keeper.clear(run_left)
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", keeper.__file__, self.run],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            self.home.mkdir()
            self._build()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Clear everything away. Raises GroundError when something stays."""
        if self._keeper is not None and self._keeper.stdin is not None:
            self._keeper.stdin.close()
            if self._keeper.wait():
                raise GroundError(f"{self.run} could not be cleared away")
        for process in self._started:
            process.wait()

    def inside(self, host: str) -> tuple[str, ...]:
        """Return what to put before a command that is to run on a host; it ends by exec."""
        return ("nsenter", f"--net={keeper.NAMESPACES / self._namespace(host)}", "--")

    def do(self, host: str, *command: str) -> str:
        """Run a command on a host and return what it wrote. Raises GroundError."""
        return run(*self.inside(host), *command)

    def start(self, host: str, *command: str) -> Path:
        """Start a command on a host, to run until the ground is left; return where it writes."""
        written = self.home / f"{host}.{len(self._started)}.out"
        with written.open("wb") as out:
            self._started.append(
                subprocess.Popen(
                    [*self.inside(host), *command], stdin=subprocess.DEVNULL, stdout=out
                )
            )
        return written

    def cut(self, some: Iterable[str], others: Iterable[str], how: How = "DROP") -> None:
        """Let nothing pass between some hosts and others, in silence or with a refusal."""
        some, others = list(some), list(others)
        self.cut_one_way(some, others, how)
        self.cut_one_way(others, some, how)

    def cut_one_way(self, senders: Iterable[str], hearers: Iterable[str], how: How) -> None:
        """Let nothing that the senders send reach the hearers; the other way stays open."""
        sources = ",".join(self.addresses[sender] for sender in senders)
        rules = [("-s", sources, *rule) for rule in (_LET_RESETS_IN, *_REJECT)]
        if how == "DROP":
            rules = [("-s", sources, "-j", "DROP")]
        for hearer in hearers:
            for rule in rules:
                self._filter(hearer, "-A", "INPUT", *rule)

    def lose(self, ratio: float) -> None:
        """Let each packet that arrives anywhere be lost with this probability."""
        draw = ("-m", "statistic", "--mode", "random", "--probability", str(ratio))
        for host in self.addresses:
            self._filter(host, "-A", "INPUT", "-i", "eth0", *draw, "-j", "DROP")

    def dropped(self, host: str) -> int:
        """Return how many packets the rules in force have kept from a host."""
        listed = self.do(host, "iptables", "-w", "-nvxL", "INPUT").splitlines()[2:]
        rules = [line.split() for line in listed]
        return sum(int(rule[0]) for rule in rules if rule[2] in {"DROP", "REJECT"})

    def heal(self) -> None:
        """Let everything pass again."""
        for host in self.addresses:
            self._filter(host, "-F")

    def readdress(self, host: str, address: str) -> None:
        """Take a host's address away and give it another; all hear of it, as of an announcement by ARP."""
        self.do(host, "ip", "addr", "flush", "dev", "eth0")
        self.do(host, "ip", "addr", "add", f"{address}/24", "dev", "eth0")
        self.addresses[host] = address
        for neighbour in self.addresses:
            self.do(neighbour, "ip", "neigh", "flush", "dev", "eth0")

    def _filter(self, host: str, *arguments: str) -> None:
        self.do(host, "iptables", "-w", *arguments)

    def _namespace(self, host: str) -> str:
        return f"{self.run}.{host}"

    def _build(self) -> None:
        bridge = self._namespace(_BRIDGE)
        run("ip", "netns", "add", bridge)
        run("ip", "-n", bridge, "link", "add", _BRIDGE, "type", "bridge")
        run("ip", "-n", bridge, "link", "set", "dev", _BRIDGE, "up")
        for host, address in self.addresses.items():
            name = self._namespace(host)
            run("ip", "netns", "add", name)
            cable = (
                "link",
                "add",
                "name",
                host,
                "type",
                "veth",
                "peer",
                "name",
                "eth0",
                "netns",
                name,
            )
            run("ip", "-n", bridge, *cable)
            run("ip", "-n", bridge, "link", "set", "dev", host, "master", _BRIDGE, "up")
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                run("ip", "-n", name, "link", "set", "dev", device, "up")
