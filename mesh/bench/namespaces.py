"""Each member on a host of its own: a network namespace, cabled to a bridge that stands in one more.

    member n01 ── eth0 ═══ n01 ─┐
    member n02 ── eth0 ═══ n02 ─┤ bridge      nothing of the machine's own network is touched
    member n03 ── eth0 ═══ n03 ─┘

A host is lost when the bridge's end of its cable is set down: nobody answers any more, and nothing is
refused. On loopback there is no such silence, since the kernel itself answers for a process that is gone.

Who has which address is written down beforehand: the kernel's table of neighbours holds a thousand, of all
namespaces together, and two meshes of 32 that asked around would crowd each other out.

A process of its own (`keeper`) clears everything away as soon as the namespaces are closed, also when
that is because the benchmark was killed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from mesh.bench import keeper
from mesh.bench.ground import Ground
from mesh.errors import MeshError

NETWORK: Final = "10.78.0"
PROGRAMS: Final = {"ip": "iproute2", "nsenter": "util-linux"}
"""The commands that are needed, and the packages that have them."""

_BRIDGE: Final = "bridge"
_TIMEOUT_S: Final = 30.0


class NamespaceError(MeshError):
    """A command that shapes the network failed; the text says which, and what it said."""


class Namespaces(Ground):
    """One namespace for each member; member number n, from 1, has the address 10.78.0.n."""

    is_loopback = False

    def __init__(self, members: Sequence[str]) -> None:
        """Make them all, or nothing. Raises NamespaceError."""
        for left in keeper.leftovers():
            keeper.clear(left)
        self.run = keeper.new_run()
        self._hosts = {member: f"{NETWORK}.{number}" for number, member in enumerate(members, 1)}
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", str(keeper.__file__), self.run],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            self._build()
        except BaseException:
            self.close()
            raise

    def host(self, member: str) -> str:
        """Return the address of a member's only link."""
        return self._hosts[member]

    def inside(self, member: str) -> tuple[str, ...]:
        """Enter the member's namespace."""
        return ("nsenter", f"--net={keeper.NAMESPACES / self._name(member)}", "--")

    def tables(self, pids: Iterable[int]) -> list[Path]:
        """Return each process's own tables, as its namespace has them."""
        return [Path(f"/proc/{pid}/net/{table}") for pid in pids for table in ("udp", "udp6")]

    def cut(self, member: str) -> int:
        """Lose a member's host; return the Unix time in ns just before."""
        return self._set(member, "down")

    def mend(self, member: str) -> int:
        """Let a lost host be reached again; return the Unix time in ns just before."""
        return self._set(member, "up")

    def close(self) -> None:
        """Clear everything away. Raises NamespaceError when something stays; harmless when repeated."""
        if self._keeper.stdin is not None:
            self._keeper.stdin.close()
        if self._keeper.wait():
            raise NamespaceError(f"the network namespaces {self.run}.* could not be cleared away")

    def _set(self, member: str, state: str) -> int:
        at_ns = time.time_ns()
        _run("ip", "-n", self._name(_BRIDGE), "link", "set", "dev", member, state)
        return at_ns

    def _name(self, part: str) -> str:
        return f"{self.run}.{part}"

    def _build(self) -> None:
        bridge = self._name(_BRIDGE)
        _run("ip", "netns", "add", bridge)
        _run("ip", "-n", bridge, "link", "add", _BRIDGE, "type", "bridge")
        _run("ip", "-n", bridge, "link", "set", "dev", _BRIDGE, "up")
        for member, address in self._hosts.items():
            name = self._name(member)
            _run("ip", "netns", "add", name)
            peer = f"peer name eth0 address {_card_address(address)} netns {name}"
            _run("ip", "-n", bridge, *f"link add name {member} type veth {peer}".split())
            _run("ip", "-n", bridge, "link", "set", "dev", member, "master", _BRIDGE, "up")
            _run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                _run("ip", "-n", name, "link", "set", "dev", device, "up")
        neighbours = [
            f"neigh replace {address} lladdr {_card_address(address)} nud permanent dev eth0"
            for address in self._hosts.values()
        ]
        for member in self._hosts:
            _run("ip", "-n", self._name(member), "-batch", "-", lines=neighbours)


def why_not() -> str:
    """Say what is missing for namespaces, and how to get it; "" if they can be had. Tries it out."""
    if not sys.platform.startswith("linux"):
        return f"network namespaces need Linux, found {sys.platform}"
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        packages = " ".join(PROGRAMS[program] for program in missing)
        return f"not installed: {', '.join(missing)} (apt-get install {packages})"
    if os.geteuid() != 0:
        return "only root may make network namespaces: run it as root (sudo)"
    try:
        Namespaces(("n01",)).close()
    except NamespaceError as error:
        return f"no network namespaces here (in a container: start it privileged): {error}"
    return ""


def _card_address(address: str) -> str:
    """Return the link address that goes with an address; the second digit 2 says that it was made up."""
    return "02:00:" + ":".join(f"{int(part):02x}" for part in address.split("."))


def _run(*command: str, lines: Sequence[str] = ()) -> None:
    done = subprocess.run(
        command,
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT_S,
    )
    if done.returncode:
        raise NamespaceError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
