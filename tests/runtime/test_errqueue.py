"""Reports about datagrams: parsed from any bytes, attributed, counted, and harmless in any number."""

from __future__ import annotations

import errno
import socket
import struct
import sys
from collections.abc import Iterator

import pytest
import trio
import trio.testing

from mesh.core.address import Address
from mesh.runtime.deafness import Deafness
from mesh.runtime.errqueue import (
    BATCH_MAX,
    QUOTE_BYTES_MIN,
    SENT_MAX,
    ErrorQueue,
    Report,
    open_error_queue,
    parse_report,
)
from mesh.runtime.udp import UdpSocket

IP, IP_RECVERR = 0, 11
IP6, IP6_RECVERR = 41, 25
PING = bytes(range(40))
V4 = bytes.fromhex("6f000000020303000000000000000000020000007f0000010000000000000000")
V6 = bytes.fromhex(
    "6f0000000301040000000000000000000a000000000000000000000000000000000000000000000100000000"
)
MAPPED = bytes.fromhex(
    "6f0000000203030000000000000000000a0000000000000000000000000000000000ffff7f00000100000000"
)

needs_linux = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux keeps reports for a socket"
)


def entry(error: int, origin: int, kind: int, code: int) -> bytes:
    return struct.pack("=IBBBBII", error, origin, kind, code, 0, 0, 0) + bytes(16)


@pytest.mark.parametrize(
    ("level", "name", "data", "report"),
    [
        (IP, IP_RECVERR, V4, Report(111, 2, 3, 3)),
        (IP6, IP6_RECVERR, V6, Report(111, 3, 1, 4)),
        (IP6, IP6_RECVERR, MAPPED, Report(111, 2, 3, 3)),
        (IP, IP_RECVERR, V4[:16], Report(111, 2, 3, 3)),
    ],
    ids=["IPv4", "IPv6", "IPv4 on a socket for both", "without the offender"],
)
def test_what_a_kernel_writes_of_a_closed_port_is_a_refusal(
    level: int, name: int, data: bytes, report: Report
) -> None:
    found = parse_report([(1, 29, bytes(16)), (level, name, data)])
    assert found == report
    assert report.is_refusal


@pytest.mark.parametrize(
    "ancillary",
    [
        [],
        [(IP, IP_RECVERR, b"")],
        [(IP, IP_RECVERR, V4[:15])],
        [(IP, IP6_RECVERR, V4)],
        [(IP6, IP_RECVERR, V6)],
        [(1, 29, V4)],
    ],
)
def test_short_or_foreign_control_data_is_no_report(
    ancillary: list[tuple[int, int, bytes]],
) -> None:
    assert parse_report(ancillary) is None


@pytest.mark.parametrize(
    "data",
    [
        entry(errno.EHOSTUNREACH, 2, 3, 1),
        entry(errno.ENETUNREACH, 2, 3, 0),
        entry(errno.EHOSTUNREACH, 2, 3, 13),
        entry(errno.EMSGSIZE, 2, 3, 4),
        entry(errno.ENOPROTOOPT, 2, 3, 2),
        entry(errno.EACCES, 3, 1, 1),
        entry(errno.ECONNREFUSED, 1, 3, 3),
        entry(errno.ECONNREFUSED, 2, 1, 4),
        entry(errno.ECONNREFUSED, 3, 3, 3),
        entry(0, 2, 3, 3),
        b"\xff" * 32,
    ],
)
def test_nothing_but_an_unreachable_port_is_a_refusal(data: bytes) -> None:
    report = parse_report([(IP, IP_RECVERR, data)])
    assert report is not None
    assert not report.is_refusal


class Scripted(socket.socket):
    """A socket whose error queue a test has written."""

    entries: Iterator[tuple[bytes, list[tuple[int, int, bytes]], object]]

    def recvmsg(self, *_sizes: int) -> tuple[bytes, list[tuple[int, int, bytes]], int, object]:
        for data, ancillary, name in self.entries:
            return data, ancillary, 0x2000, name
        raise BlockingIOError(errno.EAGAIN, "empty")


def scripted(*entries: tuple[bytes, bytes, object]) -> tuple[ErrorQueue, Scripted]:
    sock = Scripted(socket.AF_INET, socket.SOCK_DGRAM)
    sock.entries = iter([(quote, [(IP, IP_RECVERR, data)], name) for quote, data, name in entries])
    return ErrorQueue(sock), sock


THERE = Address("10.0.0.2", 7946)


@pytest.mark.parametrize(
    ("quote", "name", "is_believed"),
    [
        (PING, THERE, True),
        (PING[:QUOTE_BYTES_MIN], THERE, True),
        (PING[: QUOTE_BYTES_MIN - 1], THERE, False),
        (b"", THERE, False),
        (PING[::-1], THERE, False),
        (PING + b"more", THERE, False),
        (PING, Address("10.0.0.3", 7946), False),
        (PING, Address("10.0.0.2", 7947), False),
        (b"hi", Address("10.0.0.4", 1), True),
    ],
)
def test_refusal_counts_if_it_quotes_what_was_sent_to_that_address(
    quote: bytes, name: Address, is_believed: bool
) -> None:
    queue, sock = scripted((quote, V4, tuple(name)))
    queue.note_sent((THERE, PING))
    queue.note_sent((Address("10.0.0.4", 1), b"hi"))
    assert queue.drain() == ([name] if is_believed else [])
    assert queue.counters["refusals"] == is_believed
    assert queue.counters["refusals_unquoted"] == (not is_believed)
    sock.close()


def test_what_is_no_refusal_is_counted_by_its_kind_and_refuses_nobody() -> None:
    name = tuple(THERE)
    queue, sock = scripted(
        (PING, entry(errno.EHOSTUNREACH, 2, 3, 1), name),
        (PING, entry(errno.ENETUNREACH, 3, 1, 0), name),
        (PING, entry(errno.EMSGSIZE, 1, 0, 0), name),
        (PING, entry(errno.EACCES, 2, 3, 13), name),
        (PING, b"short", name),
        (PING, V4, None),
        (PING, V4, ("no address", 1)),
    )
    queue.note_sent((THERE, PING))
    assert queue.drain() == []
    assert queue.counters == {
        "refusals": 0,
        "refusals_unquoted": 0,
        "reports_unreachable": 2,
        "reports_too_long": 1,
        "reports_other": 4,
    }
    sock.close()


def test_flood_is_read_in_batches_and_each_address_told_once_a_batch() -> None:
    queue, sock = scripted(*[(PING, V4, tuple(THERE))] * (3 * BATCH_MAX))
    queue.note_sent((THERE, PING))
    assert [queue.drain() for _ in range(4)] == [[THERE], [THERE], [THERE], []]
    sock.close()


def test_what_was_sent_long_ago_cannot_be_quoted() -> None:
    queue, sock = scripted((PING, V4, tuple(THERE)))
    queue.note_sent((THERE, PING))
    for number in range(SENT_MAX):
        queue.note_sent((THERE, b"%d" % number))
    assert queue.drain() == []
    sock.close()


# Real sockets from here on.


def bound(host: str, kind: socket.SocketKind = socket.SOCK_DGRAM) -> socket.socket:
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, kind)
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    sock.bind((host, 0))
    return sock


def hearing(host: str) -> tuple[UdpSocket, ErrorQueue]:
    sock = bound(host)
    assert open_error_queue(sock)
    queue = ErrorQueue(sock)
    return UdpSocket(sock, error_queue=queue), queue


def closed_port(host: str) -> Address:
    sock = bound(host)
    port = sock.getsockname()[1]
    sock.close()
    return Address(host, port)


@needs_linux
@pytest.mark.parametrize(
    ("own", "peer"), [("127.0.0.1", "127.0.0.1"), ("::", "127.0.0.1"), ("::1", "::1")]
)
async def test_closed_port_is_told_with_its_address_and_the_socket_goes_on(
    own: str, peer: str
) -> None:
    udp, queue = hearing(own)
    nobody = closed_port(peer)
    friend = bound(peer)
    found: list[Address] = []
    heard: list[bytes] = []
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(udp.receive, lambda _source, data: heard.append(data), found.append)
            udp.send(nobody, PING)
            while not found:
                await trio.lowlevel.checkpoint()
            udp.send(Address(peer, friend.getsockname()[1]), PING)
            data, source = friend.recvfrom(100)
            assert data == PING
            friend.sendto(b"back", source)
            while not heard:
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
    assert found == [nobody]
    assert heard == [b"back"]
    assert queue.counters["refusals"] == 1
    assert udp.counters["dropped_send_error"] == 0
    friend.close()
    udp.close()


@needs_linux
def test_no_send_is_lost_to_a_report_about_another() -> None:
    udp, queue = hearing("127.0.0.1")
    friend = bound("127.0.0.1")
    friend.settimeout(5)
    to, nobody = Address(*friend.getsockname()), closed_port("127.0.0.1")
    for number in range(100):
        udp.send(nobody, PING)
        udp.send(to, b"%d" % number)
        assert friend.recv(100) == b"%d" % number
    assert udp.counters["dropped_send_error"] == 0
    assert udp.counters["sent_datagrams"] == 200
    assert queue.drain() == [nobody]
    friend.close()
    udp.close()


@needs_linux
async def test_flood_of_refusals_starves_nobody_and_is_drained() -> None:
    udp, queue = hearing("127.0.0.1")
    friend = bound("127.0.0.1")
    to = Address(*friend.getsockname())
    nobody = closed_port("127.0.0.1")
    udp.send(to, PING)
    _, here = friend.recvfrom(100)
    heard: list[bytes] = []
    wakes = 0

    async def flood() -> None:
        for _ in range(200):
            for _ in range(BATCH_MAX):
                udp.send(nobody, PING)
            friend.sendto(b"hello", here)
            await trio.lowlevel.checkpoint()

    def count(_address: Address) -> None:
        nonlocal wakes
        wakes += 1

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(udp.receive, lambda _source, data: heard.append(data), count)
            await flood()
            while len(heard) < 200:
                await trio.lowlevel.checkpoint()
            await trio.testing.wait_all_tasks_blocked(0.05)  # the queue is empty: nothing spins
            nursery.cancel_scope.cancel()
    assert 0 < wakes <= queue.counters["refusals"]
    assert queue.drain() == []
    assert udp.counters["sent_datagrams"] == 1 + 200 * BATCH_MAX
    friend.close()
    udp.close()


@needs_linux
async def test_deaf_node_hears_of_no_refusal_either() -> None:
    sock, deafness = bound("127.0.0.1"), Deafness()
    assert open_error_queue(sock)
    queue = ErrorQueue(sock)
    udp = UdpSocket(sock, deafness, error_queue=queue)
    deafness.is_on = True
    found: list[Address] = []
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(udp.receive, lambda _source, _data: None, found.append)
            udp.send(closed_port("127.0.0.1"), PING)
            while not queue.counters["refusals"]:
                await trio.lowlevel.checkpoint()
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
    assert found == []
    udp.close()


def test_socket_that_keeps_no_reports_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    sock = bound("127.0.0.1")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert open_error_queue(sock) is False
    monkeypatch.setattr(sys, "platform", "linux")
    stream = bound("127.0.0.1", socket.SOCK_DGRAM)
    stream.close()
    assert open_error_queue(stream) is False
    sock.close()
