"""The error queue of a UDP socket: what hosts and routers say of datagrams that could not be delivered.

A host whose port nobody holds answers a datagram with an ICMP message; Linux keeps it, with the address
concerned and the beginning of the datagram, for whoever asks (`IP_RECVERR`). Such a message is not
sealed, and the kernel checks little of it. So it counts only if it quotes a datagram that was sent to that
address lately: whoever cannot read what this node sends cannot say a word. Whoever can, may forge one, so
that even then it is a hint and no more.

A queue that is not empty makes its socket readable, and the next send or receive fail once: it is
drained whenever the socket wakes its reader, and who sends tries again.
"""

from __future__ import annotations

import errno
import socket
import struct
import sys
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from mesh.core.address import Address, numeric_host

BATCH_MAX: Final = 16
"""Reports read at once; the rest wakes the reader again, after the datagrams that wait."""

SENT_MAX: Final = 256
"""Datagrams that a report may quote, the latest: what is sent within a round trip."""

QUOTE_BYTES_MIN: Final = 24
"""A report must quote as much of a datagram, or all of it: more than the header, which many have in common."""

_QUOTE_BYTES: Final = 128
_ANCILLARY_BYTES: Final = 512

# Not in the socket module: linux/in.h, linux/in6.h, linux/socket.h, linux/errqueue.h.
_IP_RECVERR: Final = 11
_IPV6_RECVERR: Final = 25
_MSG_ERRQUEUE: Final = 0x2000
_SOURCES: Final = {(socket.IPPROTO_IP, _IP_RECVERR), (socket.IPPROTO_IPV6, _IPV6_RECVERR)}
_ERROR: Final = struct.Struct("=IBBBBII")  # sock_extended_err: errno, origin, type, code, …
_ORIGIN_ICMP: Final = 2
_ORIGIN_ICMP6: Final = 3
_PORT_UNREACHABLE: Final = {(_ORIGIN_ICMP, 3, 3), (_ORIGIN_ICMP6, 1, 4)}


@dataclass(frozen=True, slots=True)
class Report:
    """One message about a datagram: who said it (2: ICMP, 3: ICMPv6, 1: this host), and what."""

    errno: int
    origin: int
    kind: int
    code: int

    @property
    def is_refusal(self) -> bool:
        """Say whether a host answered that nobody holds the port."""
        where = (self.origin, self.kind, self.code)
        return self.errno == errno.ECONNREFUSED and where in _PORT_UNREACHABLE


def parse_report(ancillary: Iterable[tuple[int, int, bytes]]) -> Report | None:
    """Return the report among the control messages of one entry; None: there is none, or half of one."""
    for level, kind, data in ancillary:
        if (level, kind) in _SOURCES and len(data) >= _ERROR.size:
            return Report(*_ERROR.unpack_from(data)[:4])
    return None


def open_error_queue(sock: socket.socket) -> bool:
    """Ask the system to keep reports for this socket; False: it does not know how."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        if sock.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_RECVERR, 1)
        # For IPv4 peers of a socket that speaks both, too.
        sock.setsockopt(socket.IPPROTO_IP, _IP_RECVERR, 1)
    except OSError:
        return False
    return True


class ErrorQueue:
    """Reads the queue of a socket for which `open_error_queue` was called."""

    def __init__(self, sock: socket.socket) -> None:
        self.counters = {
            "refusals": 0,
            "refusals_unquoted": 0,
            "reports_unreachable": 0,
            "reports_too_long": 0,
            "reports_other": 0,
        }
        self._sock = sock
        self._sent: deque[tuple[Address, bytes]] = deque(maxlen=SENT_MAX)
        self.note_sent = self._sent.append
        """Takes what was sent, and to whom, as a pair."""

    def drain(self) -> list[Address]:
        """Read at most BATCH_MAX reports and return the addresses that refuse, each once, in order."""
        refusing: dict[Address, None] = {}
        for _ in range(BATCH_MAX):
            try:
                quote, ancillary, _, name = self._sock.recvmsg(
                    _QUOTE_BYTES, _ANCILLARY_BYTES, _MSG_ERRQUEUE
                )
            except OSError:  # empty
                break
            address = self._judge(quote, parse_report(ancillary), name)
            if address is not None:
                refusing[address] = None
        return list(refusing)

    def _judge(
        self, quote: bytes, report: Report | None, name: tuple[str, int] | None
    ) -> Address | None:
        """Count a report; return the address that refuses, if it does, and rightly as far as can be seen."""
        host = numeric_host(name[0]) if name else None
        if report is None or host is None or name is None:
            self.counters["reports_other"] += 1
        elif report.is_refusal:
            address = Address(host, name[1])
            if self._was_sent(address, quote):
                self.counters["refusals"] += 1
                return address
            self.counters["refusals_unquoted"] += 1
        elif report.errno == errno.EMSGSIZE:
            self.counters["reports_too_long"] += 1
        elif report.errno in {errno.EHOSTUNREACH, errno.ENETUNREACH}:
            self.counters["reports_unreachable"] += 1
        else:
            self.counters["reports_other"] += 1
        return None

    def _was_sent(self, address: Address, quote: bytes) -> bool:
        return any(
            to == address
            and data.startswith(quote)
            and (len(quote) >= QUOTE_BYTES_MIN or len(quote) == len(data))
            for to, data in reversed(self._sent)
        )
