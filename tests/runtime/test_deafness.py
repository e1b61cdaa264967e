"""A deaf process reads and forgets: no datagram, request or reply reaches the node, until it hears again."""

from __future__ import annotations

import os
import socket

import trio

from mesh.core.address import Address
from mesh.core.effects import StartExchange
from mesh.errors import TransportError
from mesh.runtime.deafness import SIGNAL, Deafness
from mesh.runtime.listener import Listener
from mesh.runtime.streams import Asker
from mesh.runtime.udp import UdpSocket

HOST = "127.0.0.1"


def bound(kind: socket.SocketKind) -> socket.socket:
    sock = socket.socket(socket.AF_INET, kind)
    sock.setblocking(False)
    sock.bind((HOST, 0))
    if kind is socket.SOCK_STREAM:
        sock.listen(8)
    return sock


async def test_datagrams_that_reach_a_deaf_socket_are_counted_and_forgotten() -> None:
    deafness = Deafness()
    udp, other = UdpSocket(bound(socket.SOCK_DGRAM), deafness), UdpSocket(bound(socket.SOCK_DGRAM))
    to = Address(*udp._sock.getsockname())
    heard: list[bytes] = []
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:

            def take(source: Address, data: bytes) -> None:
                heard.append(data)
                nursery.cancel_scope.cancel()

            nursery.start_soon(udp.receive, take)
            deafness.is_on = True
            other.send(to, b"lost")
            while udp.counters["received_datagrams"] == 0:  # noqa: ASYNC110 - a counter announces nothing
                await trio.sleep(0.005)
            deafness.is_on = False
            other.send(to, b"heard")
    assert heard == [b"heard"]
    assert udp.counters["received_datagrams"] == 2
    udp.close()
    other.close()


async def exchange(asker_deaf: bool, listener_deaf: bool) -> tuple[list[bytes], object]:
    """Ask one question; return what the answering side was asked, and the outcome."""
    asked: list[bytes] = []
    outcome: list[object] = []
    sock = bound(socket.SOCK_STREAM)
    deaf, hearing = Deafness(), Deafness()
    deaf.is_on = True

    def on_request(source: Address, data: bytes) -> bytes:
        asked.append(data)
        return b"reply"

    listener = Listener(
        sock,
        trio.current_time,
        on_request,
        print,
        deafness=deaf if listener_deaf else hearing,
    )
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:

            def on_reply(exchange_id: int, reply: bytes | TransportError) -> None:
                outcome.append(reply)
                nursery.cancel_scope.cancel()

            asker = Asker(
                nursery, trio.current_time, on_reply, deafness=deaf if asker_deaf else hearing
            )
            nursery.start_soon(listener.run)
            nursery.start_soon(asker.run)
            asker.ask(StartExchange(1, Address(*sock.getsockname()), b"question", 0.3))
    sock.close()
    return asked, outcome[0]


async def test_a_deaf_listener_neither_answers_nor_hangs_up() -> None:
    asked, outcome = await exchange(asker_deaf=False, listener_deaf=True)
    assert asked == []
    assert isinstance(outcome, TransportError)
    assert "did not answer within" in str(outcome)


async def test_a_deaf_asker_hears_no_reply() -> None:
    asked, outcome = await exchange(asker_deaf=True, listener_deaf=False)
    assert asked == [b"question"]
    assert isinstance(outcome, TransportError)


async def test_without_deafness_the_same_exchange_is_answered() -> None:
    asked, outcome = await exchange(asker_deaf=False, listener_deaf=False)
    assert (asked, outcome) == ([b"question"], b"reply")


async def test_the_signal_turns_it_on_and_off() -> None:
    deafness = Deafness()
    said: list[str] = []
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            await nursery.start(deafness.heed_signal, said.append)
            for expected in (True, False):
                os.kill(os.getpid(), SIGNAL)
                while deafness.is_on is not expected:  # noqa: ASYNC110 - a flag announces nothing
                    await trio.sleep(0.005)
            nursery.cancel_scope.cancel()
    assert len(said) == 2
