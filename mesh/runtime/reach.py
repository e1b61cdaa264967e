"""How far a node reaches: which addresses it may bind, name to others, and send to. One place decides.

To join a mesh is to run commands on its hosts, and a task's arguments and environment are in what is
sent. So without a key a node stays on loopback: not only where it listens, but wherever
it sends, whatever address a packet, a card or a name server gives it. Every socket asks here before
anything leaves.
"""

from __future__ import annotations

from functools import lru_cache

from mesh.core.address import is_loopback
from mesh.errors import ConfigError

COUNTER = "refused_not_loopback"


class Reach:
    """Loopback only, unless it is lifted. `counters` says how much was not sent because of it."""

    def __init__(self, *, is_loopback_only: bool = True) -> None:
        self.is_loopback_only = is_loopback_only
        self.counters = {COUNTER: 0}

    def covers(self, host: str) -> bool:
        """Say whether a numeric host lies within reach."""
        return not self.is_loopback_only or _is_loopback(host)

    def admits(self, host: str) -> bool:
        """Say whether something may be sent to a numeric host; what may not is counted."""
        is_covered = self.covers(host)
        self.counters[COUNTER] += not is_covered
        return is_covered

    def check(self, host: str, what: str, verb: str) -> None:
        """Raise ConfigError unless a numeric host lies within reach: `what` was set, and `verb` says for what."""
        if not self.covers(host):
            raise ConfigError(
                f"{what}: without a key only loopback may be {verb} (127.0.0.1 or ::1), since to join is to run "
                f"commands; found {host}: give the members a key (mesh keygen mesh.key, mesh join --key mesh.key)"
            )


@lru_cache(maxsize=4096)
def _is_loopback(host: str) -> bool:
    try:
        return is_loopback(host)
    except ValueError:  # no numeric host: whatever it is, nothing is sent there
        return False
