"""Requests and replies on streams between simulated hosts: reliable, and slow where packets are lost.

A connection costs a round trip before the request. Where a cut is in the way the kernel tries again,
ever more rarely, until the asker's own timeout. A host without the process refuses at once; one that
is paused or deaf takes the connection (its kernel does) and answers when it goes on; one without power
is silent. A connection ends with the process at either end; no request outlives it. The asker hears of
each exchange exactly once.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mesh.core.address import Address
from mesh.core.effects import StartExchange
from mesh.errors import TransportError
from mesh.sim.host import Host
from mesh.sim.loop import Loop
from mesh.sim.network import Network

_FIRST_RETRY_S: Final = 0.2


@dataclass(slots=True)
class _Exchange:
    asker: Host
    session: int
    source: Address
    effect: StartExchange
    deadline_s: float
    target_session: int = 0
    retry_s: float = _FIRST_RETRY_S


class Exchanges:
    """All exchanges under way. Bytes go in and come out; it looks at none of them."""

    def __init__(
        self,
        loop: Loop,
        network: Network,
        host_at: Callable[[Address], Host | None],
        ask: Callable[[Host, Address, bytes], bytes],
        report: Callable[[Host, int, bytes | TransportError], None],
    ) -> None:
        self._loop = loop
        self._network = network
        self._host_at = host_at
        self._ask = ask
        self._report = report

    def start(self, asker: Host, effect: StartExchange) -> None:
        """Carry out one `StartExchange`."""
        deadline_s = self._loop.now_s + effect.timeout_s / asker.clock.rate
        exchange = _Exchange(asker, asker.session, asker.spec.address, effect, deadline_s)
        asker.exchanges.add(effect.exchange_id)
        asker.traffic.frames_sent += 1
        asker.traffic.frame_bytes_sent += len(effect.data)
        self._loop.schedule(deadline_s, self._expire, exchange)
        self._connect(exchange)

    def _connect(self, exchange: _Exchange) -> None:
        now_s = self._loop.now_s
        target = self._host_at(exchange.effect.to)
        asker = exchange.asker
        is_rejected = target is not None and self._network.rejects(asker.index, target.index)
        if target is None or not (is_rejected or self._is_in_reach(asker, target)):
            self._retry(exchange, self._connect, exchange)
            return
        knocked_s = self._network.stream_arrival(now_s, asker.index, target.index)
        opened_s = self._network.stream_arrival(knocked_s, target.index, asker.index)
        if target.node is None or is_rejected:
            refusal = TransportError("refused the connection", errno.ECONNREFUSED)
            self._loop.schedule(opened_s, self._deliver, (exchange, refusal))
            return
        exchange.target_session = target.session
        arrival_s = self._network.stream_arrival(opened_s, asker.index, target.index)
        self._loop.schedule(arrival_s, self._arrive, (exchange, target))

    def _is_in_reach(self, asker: Host, target: Host) -> bool:
        passes = self._network.passes
        there_and_back = passes(asker.index, target.index, is_stream=True) and passes(
            target.index, asker.index, is_stream=True
        )
        return target.is_powered and there_and_back

    def _arrive(self, item: tuple[_Exchange, Host]) -> None:
        exchange, target = item
        if exchange.asker.session != exchange.session:
            return
        if target.node is None or target.session != exchange.target_session:
            reset = TransportError("reset the connection", errno.ECONNRESET)
            self._reply((exchange, target, reset))
            return
        if not target.takes_messages:
            target.inbox.append((self._arrive, item))
            return
        reply = self._ask(target, exchange.source, exchange.effect.data)
        if reply:
            target.traffic.frames_sent += 1
            target.traffic.frame_bytes_sent += len(reply)
            self._reply((exchange, target, reply))
        else:
            closed = TransportError("connection closed without a reply", errno.ECONNRESET)
            self._reply((exchange, target, closed))

    def _reply(self, item: tuple[_Exchange, Host, bytes | TransportError]) -> None:
        exchange, target, reply = item
        asker = exchange.asker
        if not self._network.passes(target.index, asker.index, is_stream=True):
            self._retry(exchange, self._reply, item)
            return
        arrival_s = self._network.stream_arrival(self._loop.now_s, target.index, asker.index)
        self._loop.schedule(arrival_s, self._deliver, (exchange, reply))

    def _retry(self, exchange: _Exchange, action: Callable[..., None], argument: object) -> None:
        again_s = self._loop.now_s + exchange.retry_s
        exchange.retry_s *= 2
        if again_s < exchange.deadline_s:
            self._loop.schedule(again_s, action, argument)

    def _deliver(self, item: tuple[_Exchange, bytes | TransportError]) -> None:
        exchange, reply = item
        if self._is_open(exchange) and not exchange.asker.takes_messages:
            exchange.asker.inbox.append((self._deliver, item))
            return
        self._finish(exchange, reply)

    def _expire(self, exchange: _Exchange) -> None:
        """End an exchange by the asker's own timer, which runs in a deaf node too."""
        if self._is_open(exchange) and exchange.asker.is_paused:
            exchange.asker.inbox.append((self._expire, exchange))
            return
        timeout_s = exchange.effect.timeout_s
        self._finish(exchange, TransportError(f"no reply within {timeout_s:g} s", errno.ETIMEDOUT))

    def _is_open(self, exchange: _Exchange) -> bool:
        asker = exchange.asker
        is_same = asker.session == exchange.session
        return is_same and exchange.effect.exchange_id in asker.exchanges

    def _finish(self, exchange: _Exchange, reply: bytes | TransportError) -> None:
        if self._is_open(exchange):
            exchange.asker.exchanges.discard(exchange.effect.exchange_id)
            self._report(exchange.asker, exchange.effect.exchange_id, reply)
