"""Rounds of gossip: while there is news, tell the next few members of a shuffled list.

Fresh news goes out at once (after a moment in which more may come in), then again after pauses that double
up to the gossip interval, until each rumour was told often enough: who is missed by the first round is
reached by the next two, hundredths of a second later, for as many packets. Without news there are no
rounds: an idle mesh sends nothing but probes. The recently dead are told too, since they may only have been
cut off.

Source: infection-style dissemination [SWIM §4.1]; separate gossip rounds and gossip to the dead
follow [memberlist]. Deviation: the first pauses are short.
"""

from __future__ import annotations

import random
from typing import Final

from mesh.core.ids import NodeId
from mesh.core.pace import Pace
from mesh.membership.dissemination import Dissemination
from mesh.membership.member import Member
from mesh.membership.outbox import Outbox
from mesh.membership.probe_order import ProbeOrder
from mesh.membership.profile import SwimConfig
from mesh.membership.table import MemberTable

ROUNDS: Final = 5
ROUNDS_BURST: Final = 20
"""Rounds are held as soon as there is news; in the long run, at most so many in a gossip interval."""

DEAD_WINDOW: Final = 10
"""How many pause tolerances after its death a member is still told of news."""


class Gossip:
    """Decides when to gossip, and to whom."""

    def __init__(
        self,
        *,
        config: SwimConfig,
        table: MemberTable,
        news: Dissemination,
        outbox: Outbox,
        rng: random.Random,
    ) -> None:
        self._config = config
        self._table = table
        self._news = news
        self._outbox = outbox
        self._rng = rng
        self._order = ProbeOrder(rng)
        self._deadline: float | None = None
        self._last_round = float("-inf")
        self._pause_s = config.gossip_interval_s
        self.pace = Pace(rate_s=ROUNDS / config.gossip_interval_s, burst=ROUNDS_BURST)
        """A storm of news makes no storm of packets."""

    def next_deadline(self) -> float | None:
        """Return when the next round is due."""
        return self._deadline

    def hurry(self, now: float) -> None:
        """If there is fresh news, bring the next round forward; if there is some that all were told, plan one."""
        if not len(self._news) or not self._table.living:
            return
        if not self._news.has_fresh:
            if self._deadline is None:
                self._pause_s = self._config.gossip_interval_s
                self._deadline = now + self._pause_s
            return
        self._pause_s = self._config.news_delay_s
        soon = max(now, self._last_round + self._config.news_delay_s)
        soon += self._rng.random() * self._config.news_delay_s
        if self._deadline is None or soon < self._deadline:
            self._deadline = soon

    def handle_timeout(self, now: float) -> None:
        """Hold a round if one is due."""
        if self._deadline is None or now < self._deadline:
            return
        if not self.pace.allows(now):
            self._deadline = self.pace.next_at(now)
            return
        self._last_round = now
        targets = self._targets(now)
        for member in targets:
            # What the dead are told is told to nobody else for it: it uses up none of the tellings.
            counts = member.is_living or not self._table.living
            if not self._outbox.gossip(member.address, counts=counts):
                break
        has_more = targets and len(self._news)
        self._pause_s = min(2 * self._pause_s, self._config.gossip_interval_s)
        self._deadline = now + self._pause_s if has_more else None

    def tell_all(self, message: object, about: NodeId, count_max: int) -> None:
        """Tell up to `count_max` members at once: a farewell cannot wait for rounds."""
        for member in self._table.choose(self._rng, count_max):
            self._outbox.send(member.address, message, about=about)

    def _next(self, count: int) -> list[Member]:
        """Return the next living members of a shuffled round: nobody is told twice before all are told once."""
        chosen: dict[NodeId, Member] = {}
        for _ in range(min(count, len(self._table.living))):
            member = self._order.next(self._table)
            if member is not None:
                chosen[member.node_id] = member
        return list(chosen.values())

    def _targets(self, now: float) -> list[Member]:
        config = self._config
        window_s = DEAD_WINDOW * config.pause_tolerance_s
        dead = self._table.recently_dead(now, window_s, config.told_dead_max)
        return dead + self._next(config.gossip_fanout)
