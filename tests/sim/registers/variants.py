"""Wrong variants of the machines and their hosts: each drops one rule, and has to be seen within some seeds."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from mesh.core.ids import NodeId
from mesh.registers.leases import LeaseTimes
from tests.exhaustive import variants as rules
from tests.sim.registers.process import HasClock
from tests.sim.registers.surroundings import Habits

RIGHT: Final = Habits()


class RenewsFromReply(HasClock):
    """Trusts a round from when it was answered."""

    def renewed(self, sender: NodeId, number: int, epoch: int) -> None:
        if (found := self._rounds.get(number)) is not None:
            found.sent_at = self.now
        super().renewed(sender, number, epoch)


NO_MARGIN: Final[LeaseTimes] = rules.NoMargin(renew_s=0.5, owner_s=2, voter_s=2, grace_s=0)

OFTEN: Final = {
    "the first three of the view vote": replace(RIGHT, asks_roster=False),
    "a voter forgets at restart": replace(RIGHT, remembers=False),
    "an accept below the promise": replace(RIGHT, voter=rules.AcceptsBelowPromise),
    "promises while a lease lives": replace(RIGHT, voter=rules.PromisesBesideLease),
    "answers leave before their commit": replace(RIGHT, answers_wait=False),
    "any report instead of the latest": replace(RIGHT, proposal=rules.TakesAnyReport),
    "a final value is changed": replace(RIGHT, proposal=rules.ChangesFinal),
}
"""Seen in one seed of ten, or more."""

SELDOM: Final = {
    "renewals are trusted from the reply": replace(RIGHT, trust=RenewsFromReply),
    "no margin between the clocks": replace(RIGHT, times=NO_MARGIN),
    "a voter that restarts arms nothing": replace(RIGHT, voter=rules.ArmsNothing),
    "a renewal after a promise": replace(RIGHT, voter=rules.RenewsAfterPromise),
    "one voter renews a lease": replace(RIGHT, counts_majority=False),
    "anybody creates without asking": replace(RIGHT, first_alone=False),
}
"""Seen in one seed of a hundred. What is rarer is left to the exhaustive schedules, which see all of them."""
