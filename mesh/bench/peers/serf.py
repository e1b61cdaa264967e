"""serf: its agent's log is the event stream; it leaves on SIGINT and tells its traffic on SIGUSR1."""

from __future__ import annotations

import re
import signal
import subprocess
from datetime import datetime
from typing import Final

from mesh.bench.contestant import Traffic
from mesh.bench.sightings import Sight

HOW: Final = "apt-get install serf"

_EVENT: Final = re.compile(r"serf: EventMember(Join|Failed|Leave): (\S+)")
_SUSPECT: Final = re.compile(r"memberlist: Suspect (\S+) has failed")
_SIGHTS: Final = {"Join": Sight.ALIVE, "Failed": Sight.DEAD, "Leave": Sight.LEFT}
_METRIC: Final = re.compile(
    r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}) \S+\]\[C\] '\S*memberlist\.(udp|tcp)\.sent': "
    r"Count: (\d+) .*?Sum: ([\d.]+)"
)
_INTERVAL_S: Final = 10.0
_RPC_OFFSET: Final = (
    10_500  # above every port that a member may have, below those that the kernel hands out
)


class Serf:
    """`serf agent`."""

    name = "serf"
    tells_refutations = False
    can_deafen = False

    def __init__(self, program: str) -> None:
        self._program = program
        self.about = f"serf {_version(program)}"

    def command(self, member: str, address: str, seed: str, profile: str) -> list[str]:
        """Return the agent's command; it tries its seed again until somebody answers."""
        host, _, port = address.rpartition(":")
        rpc = f"{host}:{int(port) + _RPC_OFFSET}"
        join = [f"-retry-join={seed}", "-retry-interval=1s"] if seed else []
        return [
            self._program,
            "agent",
            f"-node={member}",
            f"-bind={address}",
            f"-rpc-addr={rpc}",
            f"-profile={profile}",
            "-log-level=info",
            *join,
        ]

    def read(self, line: str, now_ns: int) -> tuple[int, Sight, str] | None:
        """Read a line of the log, whose own time is in whole seconds: the time of arrival counts."""
        if found := _EVENT.search(line):
            return now_ns, _SIGHTS[found[1]], found[2]
        if found := _SUSPECT.search(line):
            return now_ns, Sight.SUSPECT, found[1]
        return None

    def is_traffic(self, line: str) -> bool:
        """Say whether this is a counter of what was sent."""
        return _METRIC.match(line) is not None

    def traffic(self, lines: list[str], start_s: float, end_s: float) -> Traffic | None:
        """Average over the whole intervals of ten seconds between two Unix times; None without one."""
        counts: dict[tuple[float, str], tuple[int, float]] = {}
        for line in lines:
            if found := _METRIC.match(line):
                at_s = datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S %z").timestamp()
                if start_s <= at_s and at_s + _INTERVAL_S <= end_s:
                    counts[at_s, found[2]] = (int(found[3]), float(found[4]))
        seconds = len({at_s for at_s, _ in counts}) * _INTERVAL_S
        if not seconds:
            return None

        def rate(protocol: str, part: int) -> float:
            return sum(value[part] for key, value in counts.items() if key[1] == protocol) / seconds

        return Traffic(
            packets_s=rate("udp", 0),
            udp_bytes_s=rate("udp", 1),
            tcp_frames_s=rate("tcp", 0),
            tcp_bytes_s=rate("tcp", 1),
        )

    def ask_traffic(self, process: subprocess.Popen[str]) -> None:
        """Ask for the counters of the last minute."""
        process.send_signal(signal.SIGUSR1)

    def leave(self, process: subprocess.Popen[str]) -> None:
        """Interrupt the agent, which leaves."""
        process.send_signal(signal.SIGINT)

    def toggle_deafness(self, process: subprocess.Popen[str]) -> None:
        """Refuse: serf has no such hook."""
        raise NotImplementedError


def _version(program: str) -> str:
    said = subprocess.run(
        [program, "version"], capture_output=True, text=True, check=False, timeout=10.0
    )
    first = said.stdout.strip().splitlines()[:1]
    return first[0].removeprefix("Serf ").strip() if first else "of unknown version"
