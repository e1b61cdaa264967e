"""The lines that our own small harnesses around libraries speak.

A harness prints `see UNIX_NS alive|suspect|dead|left MEMBER` for what it sees, and, asked for it,
`traffic DATAGRAMS DATAGRAM_BYTES STREAMS STREAM_BYTES` since its start (`-`: not known). It reads
`leave`, `deaf` (on, and off again) and `traffic` from its standard input, and ends when that does.
"""

from __future__ import annotations

import subprocess

from mesh.bench.contestant import Traffic
from mesh.bench.sightings import Sight


class Harness:
    """What the adapters of all harnesses share."""

    tells_refutations = False
    can_deafen = False

    def read(self, line: str, now_ns: int) -> tuple[int, Sight, str] | None:
        """Read a `see` line; its own time counts, not that of its arrival."""
        del now_ns
        match line.split():
            case ["see", at_ns, sight, member] if at_ns.isdecimal() and sight in set(Sight):
                return int(at_ns), Sight(sight), member
        return None

    def is_traffic(self, line: str) -> bool:
        """Say whether this is a `traffic` line."""
        return line.startswith("traffic ") and len(line.split()) == 5

    def traffic(self, lines: list[str], start_s: float, end_s: float) -> Traffic | None:
        """Return the rates between the last two lines, which were asked for at these times."""
        if len(lines) < 2 or end_s <= start_s:
            return None
        before, after = (line.split()[1:] for line in lines[-2:])
        rates = [
            None if "-" in (first, last) else (int(last) - int(first)) / (end_s - start_s)
            for first, last in zip(before, after, strict=True)
        ]
        return Traffic(
            packets_s=rates[0], udp_bytes_s=rates[1], tcp_frames_s=rates[2], tcp_bytes_s=rates[3]
        )

    def ask_traffic(self, process: subprocess.Popen[str]) -> None:
        """Ask for a `traffic` line."""
        tell(process, "traffic")

    def leave(self, process: subprocess.Popen[str]) -> None:
        """Tell it to leave."""
        tell(process, "leave")

    def toggle_deafness(self, process: subprocess.Popen[str]) -> None:
        """Tell it to hear nothing, or to hear again."""
        tell(process, "deaf")


def tell(process: subprocess.Popen[str], word: str) -> None:
    """Write one line to a harness."""
    if process.stdin is not None:
        process.stdin.write(f"{word}\n")
        process.stdin.flush()
