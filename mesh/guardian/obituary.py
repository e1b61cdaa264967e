"""Sends an obituary: a few datagrams to each of those who have to know that a node's work has ended."""

from __future__ import annotations

import _socket
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from mesh.guardian.link import Place

OBITUARY_ROUNDS: Final = 3
OBITUARY_SPACING_S: Final = 0.05


def send_obituary(places: list[Place], sealed: bytes, complain: Callable[[str], None]) -> None:
    """Send it to all, and again: datagrams get lost. Raises OSError if there is no socket to be had."""
    sockets = {}
    for length, family in ((4, _socket.AF_INET), (16, _socket.AF_INET6)):
        if any(len(host) == length for host, _ in places):
            sockets[length] = family, _socket.socket(family, _socket.SOCK_DGRAM)
    for count in range(OBITUARY_ROUNDS if places else 0):
        if count:
            time.sleep(OBITUARY_SPACING_S)
        for host, port in places:
            family, sender = sockets[len(host)]
            try:
                sender.sendto(sealed, (_socket.inet_ntop(family, host), port))
            except OSError as error:  # the others still want to know
                complain(f"an obituary could not be sent: {error}")
