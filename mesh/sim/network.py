"""What lies between the hosts: delay, loss, copies, disorder, clogs and cuts, all from one seed.

A datagram is delayed by a fixed part and an exponential rest, which also reorders; it may be lost or
come twice. A *cut* lets nothing pass from one set of hosts to another (two cuts make a partition),
and may refuse whoever tries, as a firewall that rejects does.
A *clog* holds everything that a host sends, and lets it go at once when it ends.

Each sender and purpose draws from a stream of its own, so that one more packet of one host does not
change what happens to another's.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from mesh.core.rng import stream

_JITTER_CAP: Final = 8.0  # times the mean: an exponential tail is cut there
_RETRANSMIT_S: Final = 0.2  # TCP's smallest retransmission timeout on Linux
_RETRANSMITS_MAX: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """How a link behaves. Ratios from 0 to 1, delays one way."""

    delay_s: float = 0.0005
    jitter_s: float = 0.0001
    """The mean of the exponential part of the delay."""

    loss_ratio: float = 0.0
    copy_ratio: float = 0.0
    """How many datagrams come a second time, up to `copy_delay_s` later."""

    copy_delay_s: float = 0.05

    @property
    def delay_s_max(self) -> float:
        """The longest that a datagram takes which is neither lost, copied nor held."""
        return self.delay_s + _JITTER_CAP * self.jitter_s


@dataclass(frozen=True, slots=True)
class Cut:
    """Nothing passes from `senders` to `receivers` (indices of hosts); `is_of_streams`: datagrams do.

    `rejects`: whoever tries is told so, as by a port that nobody holds.
    """

    senders: frozenset[int]
    receivers: frozenset[int]
    is_of_streams: bool = False
    rejects: bool = False


class Network:
    """The fault model. It decides when bytes arrive, and never looks at them."""

    def __init__(self, seed: int, conditions: Conditions) -> None:
        self.conditions = conditions
        self.lost = 0
        self.era = 0
        """Counts healings. A datagram of an earlier era, still under way, is lost."""

        self._seed = seed
        self._cuts: list[Cut] = []
        self._links: dict[tuple[int, int], Conditions] = {}
        self._clogged_until_s: dict[int, float] = {}
        self._streams: dict[tuple[int, str], random.Random] = {}

    def set_link(self, sender: int, receiver: int, conditions: Conditions) -> None:
        """Let one direction of one link behave differently from the rest."""
        self._links[sender, receiver] = conditions

    def cut(self, senders: Iterable[int], receivers: Iterable[int]) -> Cut:
        """Let nothing pass from `senders` to `receivers` until the cut is mended."""
        made = Cut(frozenset(senders), frozenset(receivers))
        self._cuts.append(made)
        return made

    def cut_streams(self, senders: Iterable[int], receivers: Iterable[int]) -> Cut:
        """Let datagrams alone pass from `senders` to `receivers` until the cut is mended."""
        made = Cut(frozenset(senders), frozenset(receivers), is_of_streams=True)
        self._cuts.append(made)
        return made

    def reject(self, some: Iterable[int], others: Iterable[int]) -> Cut:
        """Let nothing pass between some hosts and others until the cut is mended, and refuse whoever tries.

        What a refusal says gets through, whatever else does not.
        """
        some, others = frozenset(some), frozenset(others)
        made = Cut(some, others, rejects=True)
        self._cuts += [made, replace(made, senders=others, receivers=some)]
        return made

    def rejects(self, sender: int, receiver: int) -> bool:
        """Say whether what one host sends to the other is refused on the way just now."""
        return any(
            cut.rejects and sender in cut.senders and receiver in cut.receivers
            for cut in self._cuts
        )

    def mend(self, cut: Cut) -> None:
        """Take a cut back; nothing happens if it was mended before."""
        if cut in self._cuts:
            self._cuts.remove(cut)
            if cut.rejects:
                self._cuts.remove(replace(cut, senders=cut.receivers, receivers=cut.senders))

    def clog(self, sender: int, until_s: float) -> None:
        """Hold all that `sender` sends before `until_s`, until then."""
        self._clogged_until_s[sender] = max(until_s, self._clogged_until_s.get(sender, 0.0))

    def heal(self, conditions: Conditions) -> None:
        """End every fault. Datagrams still under way, held or copied, are lost: no late harm."""
        self.era += 1
        self.conditions = conditions
        self._cuts.clear()
        self._links.clear()
        self._clogged_until_s.clear()

    def passes(self, sender: int, receiver: int, *, is_stream: bool = False) -> bool:
        """Say whether a datagram, or a stream, gets from one host to the other just now."""
        return not any(
            sender in cut.senders
            and receiver in cut.receivers
            and (is_stream or not cut.is_of_streams)
            for cut in self._cuts
        )

    def datagram_arrivals(self, now_s: float, sender: int, receiver: int) -> tuple[float, ...]:
        """Return when a datagram sent now arrives: never, once, or more often."""
        if self._cuts and not self.passes(sender, receiver):
            self.lost += 1
            return ()
        link = self._conditions(sender, receiver)
        if link.loss_ratio and self._stream(sender, "drop").random() < link.loss_ratio:
            self.lost += 1
            return ()
        first_s = self._depart(now_s, sender) + self._delay(sender, link)
        if link.copy_ratio:
            copies = self._stream(sender, "copy")
            if copies.random() < link.copy_ratio:
                return (first_s, first_s + copies.random() * link.copy_delay_s)
        return (first_s,)

    def stream_arrival(self, now_s: float, sender: int, receiver: int) -> float:
        """Return when bytes sent now on an open connection arrive; loss costs retransmissions."""
        link = self._conditions(sender, receiver)
        arrival_s = self._depart(now_s, sender) + self._delay(sender, link)
        if link.loss_ratio:
            drops = self._stream(sender, "stream drop")
            for attempt in range(_RETRANSMITS_MAX):
                if drops.random() >= link.loss_ratio:
                    break
                arrival_s += _RETRANSMIT_S * 2**attempt
        return arrival_s

    def _conditions(self, sender: int, receiver: int) -> Conditions:
        if self._links:
            return self._links.get((sender, receiver), self.conditions)
        return self.conditions

    def _depart(self, now_s: float, sender: int) -> float:
        return (
            max(now_s, self._clogged_until_s.get(sender, 0.0)) if self._clogged_until_s else now_s
        )

    def _delay(self, sender: int, link: Conditions) -> float:
        if not link.jitter_s:
            return link.delay_s
        rest = -math.log(1.0 - self._stream(sender, "delay").random())
        return link.delay_s + link.jitter_s * min(rest, _JITTER_CAP)

    def _stream(self, sender: int, purpose: str) -> random.Random:
        found = self._streams.get((sender, purpose))
        if found is None:
            found = self._streams[sender, purpose] = stream(
                self._seed, f"network/{sender}/{purpose}"
            )
        return found
