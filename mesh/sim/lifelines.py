"""Streams between simulated hosts that are kept open, and whose end is told: at once where a kernel is left to tell.

A process that ends closes its streams; the other end hears of it after a delay, unless the network is
cut. A host without power, or one behind a cut, says nothing; a paused process keeps its streams.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, assert_never

from mesh.core.address import Address
from mesh.core.effects import CloseLifeline, HangUp, KeepOpen, LineEffect, OpenLifeline, TryLine
from mesh.core.lines import HungUp, LineEvent, LineKept, LineLost
from mesh.sim.host import Host
from mesh.sim.loop import Loop
from mesh.sim.network import Network

_GIVE_UP_S: Final = 5.0
_PORTS_FROM: Final = 10_000


@dataclass(slots=True, eq=False)
class _Line:
    subject: Host
    session: int
    effect: OpenLifeline
    source: Address
    observer: Host | None = None
    observer_session: int = 0


class SimLifelines:
    """All lines between hosts. Bytes go in and come out; it looks at none of them."""

    def __init__(
        self,
        loop: Loop,
        network: Network,
        host_at: Callable[[Address], Host | None],
        ask: Callable[[Host, Address, bytes], bytes],
        report: Callable[[Host, LineEvent], None],
    ) -> None:
        self._loop = loop
        self._network = network
        self._host_at = host_at
        self._ask = ask
        self._report = report
        self._by_id: dict[tuple[int, int, int], _Line] = {}  # subject, session, lifeline id
        self._by_source: dict[Address, _Line] = {}
        self._last = 0

    def carry_out(self, host: Host, effect: LineEffect) -> None:
        """Carry out one effect of a host's node."""
        match effect:
            case OpenLifeline():
                self.open(host, effect)
            case CloseLifeline(lifeline_id):
                self.close(host, lifeline_id)
            case KeepOpen():
                pass  # it was when the request was answered
            case TryLine(source):
                self.try_line(host, source)
            case HangUp(source):
                self.hang_up(source)
            case _:
                assert_never(effect)

    def open(self, subject: Host, effect: OpenLifeline) -> None:
        """Carry out one `OpenLifeline`: two round trips until it is answered."""
        self._last += 1
        port = _PORTS_FROM + self._last % (65_536 - _PORTS_FROM)
        source = Address(subject.spec.address.host, port)
        line = _Line(subject, subject.session, effect, source)
        self._by_id[subject.index, subject.session, effect.lifeline_id] = line
        target = self._host_at(effect.to)
        now_s = self._loop.now_s
        is_rejected = target is not None and self._network.rejects(subject.index, target.index)
        if (
            target is None
            or not target.is_powered
            or not (is_rejected or self._both_ways(subject, target))
        ):
            self._loop.schedule(now_s + _GIVE_UP_S, self._lose, line)
            return
        opened_s = self._network.stream_arrival(now_s, subject.index, target.index)
        if target.node is None or is_rejected:
            refused_s = self._network.stream_arrival(opened_s, target.index, subject.index)
            self._loop.schedule(refused_s, self._lose, line)
            return
        line.observer, line.observer_session = target, target.session
        subject.traffic.frames_sent += 1
        subject.traffic.frame_bytes_sent += len(effect.data)
        self._loop.schedule(opened_s, self._arrive, line)

    def close(self, subject: Host, lifeline_id: int) -> None:
        """Carry out one `CloseLifeline`."""
        line = self._by_id.pop((subject.index, subject.session, lifeline_id), None)
        if line is not None:
            self._tell_observer(line)

    def try_line(self, observer: Host, source: Address) -> None:
        """Carry out one `TryLine`: a host that runs resets a stream whose end it does not have."""
        line = self._by_source.get(source)
        if line is None:
            return
        if self._network.rejects(observer.index, line.subject.index):
            # The firewall resets this end alone; the other finds out when it is tried from there.
            there_s = self._network.stream_arrival(
                self._loop.now_s, observer.index, line.subject.index
            )
            back_s = self._network.stream_arrival(there_s, line.subject.index, observer.index)
            self._loop.schedule(back_s, self._hung_up, line)
            return
        if self._is_subject_there(line):
            return
        if line.subject.is_powered and self._both_ways(observer, line.subject):
            at_s = self._network.stream_arrival(
                self._loop.now_s, observer.index, line.subject.index
            )
            self._loop.schedule(at_s, self._tell_observer, line)

    def hang_up(self, source: Address) -> None:
        """Carry out one `HangUp`."""
        line = self._by_source.pop(source, None)
        if line is not None and line.observer is not None:
            self._tell_subject(line, line.observer)

    def cut_all(self) -> None:
        """Reset every stream that is open, as a middlebox does that was restarted; both ends hear of it."""
        for line in list(self._by_id.values()):
            if line.observer is not None:
                self._tell_observer(line)
                self._tell_subject(line, line.observer)

    def end_session(self, host: Host, session: int, *, is_told: bool) -> None:
        """The process on a host has ended: its kernel closes its streams, if it is left to do so."""
        for line in list(self._by_id.values()):
            if line.subject is host and line.session == session:
                del self._by_id[host.index, session, line.effect.lifeline_id]
                if is_told:
                    self._tell_observer(line)
            elif line.observer is host and line.observer_session == session:
                self._by_source.pop(line.source, None)
                if is_told:
                    self._tell_subject(line, host)

    def _both_ways(self, a: Host, b: Host) -> bool:
        passes = self._network.passes
        return passes(a.index, b.index, is_stream=True) and passes(b.index, a.index, is_stream=True)

    def _is_subject_there(self, line: _Line) -> bool:
        key = (line.subject.index, line.session, line.effect.lifeline_id)
        return self._by_id.get(key) is line and line.subject.session == line.session

    def _is_observer_there(self, line: _Line) -> bool:
        observer = line.observer
        return observer is not None and observer.session == line.observer_session

    def _arrive(self, line: _Line) -> None:
        observer = line.observer
        if observer is None or not self._is_subject_there(line):
            return
        if observer.node is None or not self._is_observer_there(line):
            self._tell_subject(line, observer)
            return
        if not observer.takes_messages:
            observer.inbox.append((self._arrive, line))
            return
        self._by_source[line.source] = line
        reply = self._ask(observer, line.source, line.effect.data)
        if not reply:
            self._by_source.pop(line.source, None)
            self._tell_subject(line, observer)
            return
        observer.traffic.frames_sent += 1
        observer.traffic.frame_bytes_sent += len(reply)
        back_s = self._network.stream_arrival(self._loop.now_s, observer.index, line.subject.index)
        self._loop.schedule(back_s, self._kept, line)

    def _kept(self, line: _Line) -> None:
        if not self._is_subject_there(line):
            return
        if not line.subject.takes_messages:
            line.subject.inbox.append((self._kept, line))
            return
        self._report(line.subject, LineKept(line.effect.lifeline_id))

    def _tell_observer(self, line: _Line) -> None:
        observer = line.observer
        if observer is None or not self._network.passes(
            line.subject.index, observer.index, is_stream=True
        ):
            return
        at_s = self._network.stream_arrival(self._loop.now_s, line.subject.index, observer.index)
        self._loop.schedule(at_s, self._hung_up, line)

    def _hung_up(self, line: _Line) -> None:
        observer = line.observer
        if observer is None or not self._is_observer_there(line) or observer.node is None:
            return
        if not observer.takes_messages:
            observer.inbox.append((self._hung_up, line))
            return
        if self._by_source.pop(line.source, None) is not None:
            self._report(observer, HungUp(line.source))

    def _tell_subject(self, line: _Line, observer: Host) -> None:
        if self._network.passes(observer.index, line.subject.index, is_stream=True):
            at_s = self._network.stream_arrival(
                self._loop.now_s, observer.index, line.subject.index
            )
            self._loop.schedule(at_s, self._lose, line)

    def _lose(self, line: _Line) -> None:
        if not self._is_subject_there(line):
            return
        if not line.subject.takes_messages:
            line.subject.inbox.append((self._lose, line))
            return
        del self._by_id[line.subject.index, line.session, line.effect.lifeline_id]
        self._report(line.subject, LineLost(line.effect.lifeline_id))
