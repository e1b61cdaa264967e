"""A bad network on loopback: a program between nodes that delays, reorders, doubles and loses datagrams.

    python -m tests.net.proxy SEED FRONT:BACK …

Each node listens at its BACK port and advertises its FRONT port, where this program listens. What comes
from one node's back goes on to another's back from the first one's front, so that answers come the same
way. TCP passes unharmed.

What befalls the k-th datagram from one node to another depends on the seed, on these two and on k alone:
each direction has a generator of its own. The program ends when its standard input does, and then writes
how often it did what.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter

import trio

HOST = "127.0.0.1"
LOST, DOUBLED, LATE = 0.05, 0.10, 0.10
DELAY_S, LATE_S = 0.02, 0.10
"""Up to so long each datagram is delayed, and the late ones beyond that."""

_DATAGRAM_BYTES = 65_536


class Fates:
    """What befalls the datagrams of one direction, in the order in which they come."""

    def __init__(self, seed: int, sender: int, hearer: int) -> None:
        self._rng = random.Random(f"{seed}/{sender}/{hearer}")

    def next_delays_s(self) -> tuple[float, ...]:
        """Return after how long the next datagram arrives, for each time that it does."""
        draw = self._rng.random
        if draw() < LOST:
            return ()
        copies = 2 if draw() < DOUBLED else 1
        return tuple(draw() * (LATE_S if draw() < LATE else DELAY_S) for _ in range(copies))


class Proxy:
    """Stands between nodes numbered from 0, each with a front and a back port."""

    def __init__(self, seed: int, ports: list[tuple[int, int]]) -> None:
        self.counts: Counter[str] = Counter()
        self._backs = [back for _, back in ports]
        self._fronts = [front for front, _ in ports]
        self._sockets = [
            trio.socket.socket(trio.socket.AF_INET, trio.socket.SOCK_DGRAM) for _ in ports
        ]
        nodes = range(len(ports))
        self._fates = {(a, b): Fates(seed, a, b) for a in nodes for b in nodes}
        self._number = 0
        self._latest: dict[tuple[int, int], int] = {}

    async def run(self) -> None:
        """Pass everything on, for ever."""
        async with trio.open_nursery() as nursery:
            for node, front in enumerate(self._fronts):
                await self._sockets[node].bind((HOST, front))
                nursery.start_soon(self._hear, node, nursery)
                await nursery.start(self._serve, node)
            print("ready", flush=True)

    async def _hear(self, hearer: int, nursery: trio.Nursery) -> None:
        while True:
            try:
                data, (_, port) = await self._sockets[hearer].recvfrom(_DATAGRAM_BYTES)
            except ConnectionRefusedError:
                self.counts["refused"] += 1  # what was passed on before met nobody
                continue
            if port not in self._backs:
                self.counts["from strangers"] += 1
                continue
            sender = self._backs.index(port)
            delays_s = self._fates[sender, hearer].next_delays_s()
            self.counts["heard"] += 1
            self.counts["lost"] += not delays_s
            self.counts["doubled"] += len(delays_s) > 1
            self._number += 1
            for delay_s in delays_s:
                nursery.start_soon(self._deliver, (sender, hearer), self._number, delay_s, data)

    async def _deliver(
        self, link: tuple[int, int], number: int, delay_s: float, data: bytes
    ) -> None:
        await trio.sleep(delay_s)
        latest = self._latest.get(link, 0)
        self.counts["reordered"] += number < latest
        self._latest[link] = max(number, latest)
        sender, hearer = link
        try:
            await self._sockets[sender].sendto(data, (HOST, self._backs[hearer]))
        except ConnectionRefusedError:
            self.counts["refused"] += 1

    async def _serve(self, node: int, task_status: trio.TaskStatus[object]) -> None:
        async def relay(near: trio.SocketStream) -> None:
            try:
                far = await trio.open_tcp_stream(HOST, self._backs[node])
            except OSError:
                return  # nobody listens there: the one who asked is hung up on
            async with far, trio.open_nursery() as nursery:
                nursery.start_soon(_pump, near, far, nursery.cancel_scope)
                nursery.start_soon(_pump, far, near, nursery.cancel_scope)

        await trio.serve_tcp(relay, self._fronts[node], host=HOST, task_status=task_status)


async def _pump(source: trio.SocketStream, sink: trio.SocketStream, over: trio.CancelScope) -> None:
    """Pass on what comes until either side is done; then the connection is over both ways."""
    try:
        async for data in source:
            await sink.send_all(data)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass  # one end is gone, which ends the other below
    over.cancel()


async def main(seed: int, ports: list[tuple[int, int]]) -> None:
    """Run a proxy until standard input ends, then write what it did."""
    proxy = Proxy(seed, ports)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(proxy.run)
        await trio.to_thread.run_sync(sys.stdin.read)
        nursery.cancel_scope.cancel()
    print(json.dumps(proxy.counts), flush=True)


if __name__ == "__main__":
    pairs = [pair.split(":") for pair in sys.argv[2:]]
    trio.run(main, int(sys.argv[1]), [(int(front), int(back)) for front, back in pairs])
