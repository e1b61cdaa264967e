"""Sends an obituary: a datagram to each of those who are to know that a node's work has ended, and again to a few."""

from __future__ import annotations

import _socket
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from mesh.guardian.link import Letter

OBITUARY_ROUNDS: Final = 3
OBITUARY_SPACING_S: Final = 0.05
INSISTED_MAX: Final = 8


def send_obituary(letters: list[Letter], complain: Callable[[str], None]) -> None:
    """Send each, and the first few again: datagrams get lost. Raises OSError if there is no socket to be had."""
    sockets = {}
    for length, family in ((4, _socket.AF_INET), (16, _socket.AF_INET6)):
        if any(len(host) == length for host, _, _ in letters):
            sockets[length] = family, _socket.socket(family, _socket.SOCK_DGRAM)
    for count in range(OBITUARY_ROUNDS if letters else 0):
        if count:
            time.sleep(OBITUARY_SPACING_S)
        for host, port, data in letters[:INSISTED_MAX] if count else letters:
            family, sender = sockets[len(host)]
            try:
                sender.sendto(data, (_socket.inet_ntop(family, host), port))
            except OSError as error:  # the others still want to know
                complain(f"an obituary could not be sent: {error}")
