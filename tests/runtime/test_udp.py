"""The UDP socket: batches, both families, and errors that harm nobody."""

from __future__ import annotations

import socket

import pytest
import trio

from mesh.core.address import Address
from mesh.runtime.reach import Reach
from mesh.runtime.udp import BATCH_MAX, UdpSocket


def bound(host: str = "127.0.0.1") -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_DGRAM)
    if family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    sock.bind((host, 0))
    return sock


async def receive(udp: UdpSocket, count: int) -> list[tuple[Address, bytes]]:
    found: list[tuple[Address, bytes]] = []
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:

            def take(source: Address, data: bytes) -> None:
                found.append((source, data))
                if len(found) == count:
                    nursery.cancel_scope.cancel()

            nursery.start_soon(udp.receive, take)
    return found


async def test_more_than_a_batch_arrives_in_order() -> None:
    receiver, sender = bound(), bound()
    udp, other = UdpSocket(receiver), UdpSocket(sender)
    to = Address(*receiver.getsockname())
    for number in range(3 * BATCH_MAX):
        other.send(to, b"%d" % number)
    found = await receive(udp, 3 * BATCH_MAX)
    assert [int(data) for _, data in found] == list(range(3 * BATCH_MAX))
    assert found[0][0] == Address(*sender.getsockname())
    assert udp.counters["received_datagrams"] == other.counters["sent_datagrams"] == len(found)
    udp.close()
    other.close()


async def test_an_ipv4_peer_of_a_dual_stack_socket_has_its_ipv4_spelling() -> None:
    receiver, sender = bound("::"), bound()
    udp, other = UdpSocket(receiver), UdpSocket(sender)
    other.send(Address("127.0.0.1", receiver.getsockname()[1]), b"hello")
    ((source, data),) = await receive(udp, 1)
    assert (source, data) == (Address(*sender.getsockname()), b"hello")
    udp.send(source, b"back")
    ((_, data),) = await receive(other, 1)
    assert data == b"back"
    udp.close()
    other.close()


async def test_an_empty_and_an_oversized_datagram_are_handed_on() -> None:
    receiver, sender = bound(), bound()
    udp, other = UdpSocket(receiver), UdpSocket(sender)
    to = Address(*receiver.getsockname())
    other.send(to, b"")
    other.send(to, b"x" * 60_000)
    found = await receive(udp, 2)
    assert found[0][1] == b""
    assert len(found[1][1]) > 1_400
    udp.close()
    other.close()


async def test_a_refusing_peer_does_not_end_the_socket() -> None:
    gone = bound()
    nobody = Address(*gone.getsockname())
    gone.close()
    receiver, sender = bound(), bound()
    receiver.connect((nobody.host, nobody.port))  # a connected socket hears refusals
    receiver.send(b"anyone?")
    address = receiver.getsockname()
    udp = UdpSocket(receiver)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(udp.receive, lambda source, data: None)
        with trio.fail_after(5):
            while not udp.counters["receive_errors"]:
                await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert address
    sender.close()
    udp.close()


def test_a_datagram_that_cannot_be_sent_is_dropped_and_counted() -> None:
    udp = UdpSocket(bound())
    udp.send(Address("::1", 9), b"wrong family")
    udp.send(Address("127.0.0.1", 9), b"x" * 70_000)
    assert udp.counters["dropped_send_error"] == 2
    assert udp.counters["sent_datagrams"] == 0
    udp.close()


def test_a_full_socket_drops_and_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(socket.socket):
        def sendto(self, *args: object) -> int:
            raise BlockingIOError(11, "Resource temporarily unavailable")

    sock = Full(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", 0))
    udp = UdpSocket(sock)
    udp.send(Address("127.0.0.1", 9), b"x")
    assert udp.counters["dropped_send_full"] == 1
    udp.close()


async def test_nothing_is_sent_beyond_loopback() -> None:
    reach = Reach()
    udp = UdpSocket(bound(), reach=reach)
    udp.send(Address("192.0.2.1", 9), b"x")
    udp.send(Address("255.255.255.255", 9), b"x")
    assert reach.counters["refused_not_loopback"] == 2
    assert udp.counters["sent_datagrams"] == 0
    assert udp.counters["dropped_send_error"] == 0
    udp.close()
