"""Wrong variants of the machines and their hosts: each drops one rule, and has to be seen within some seeds."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from mesh.core.ids import NodeId
from mesh.registers.leases import LeaseTimes
from tests.exhaustive import variants as rules
from tests.sim.registers.hosts import Habits, HasClock

RIGHT: Final = Habits()


class RenewsFromReply(HasClock):
    """Trusts a round from when it was answered."""

    def renewed(self, sender: NodeId, number: int, epoch: int) -> None:
        if (found := self._rounds.get(number)) is not None:
            found.sent_at = self.now
        super().renewed(sender, number, epoch)


NO_MARGIN: Final[LeaseTimes] = rules.NoMargin(renew_s=0.5, owner_s=2, voter_s=2, grace_s=0)

VARIANTS: Final = {
    "the first three of the view vote": replace(RIGHT, asks_roster=False),
    "renewals are trusted from the reply": replace(RIGHT, trust=RenewsFromReply),
    "a grant is trusted from the reply": replace(RIGHT, proposal=rules.GrantsFromReply),
    "no margin between the clocks": replace(RIGHT, times=NO_MARGIN),
    "a voter forgets at restart": replace(RIGHT, remembers=False),
    "a voter that restarts arms nothing": replace(RIGHT, voter=rules.ArmsNothing),
    "a renewal after a promise": replace(RIGHT, voter=rules.RenewsAfterPromise),
    "an accept below the promise": replace(RIGHT, voter=rules.AcceptsBelowPromise),
    "an earlier write in place of a later": replace(RIGHT, voter=rules.AcceptsEarlierWrites),
    "promises while a lease lives": replace(RIGHT, voter=rules.PromisesBesideLease),
    "a ballot used by two boots": replace(RIGHT, keeps_numbers=False),
    "rounds are numbered anew in each boot": replace(RIGHT, rounds_differ=False),
    "late acceptances are a grant": replace(RIGHT, heeds_hold=False),
    "answers leave before their commit": replace(RIGHT, answers_wait=False),
    "one voter renews a lease": replace(RIGHT, counts_majority=False),
    "anybody creates without asking": replace(RIGHT, first_alone=False),
    "any report instead of the latest": replace(RIGHT, proposal=rules.TakesAnyReport),
    "a final value is changed": replace(RIGHT, proposal=rules.ChangesFinal),
}
