"""Wrong variants of the machines, and of their hosts: each drops one rule, and each has to be found out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from mesh.core.ballot import NO_BALLOT, Ballot
from mesh.core.ids import NodeId
from mesh.registers.leases import LeaseTimes, lan
from mesh.registers.proposal import Chosen, Proposal, Sent
from mesh.registers.record import Record
from mesh.registers.trust import Trust
from mesh.registers.voter import Step, Voter
from mesh.wire.register_messages import Answer, Leased, Owner, Prepare, Promised, Standing, Value
from tests.exhaustive import scenarios
from tests.exhaustive.cores import NOW, Cores
from tests.exhaustive.scenarios import Scenario

RIGHT = Cores()


class RenewsAfterPromise(Voter):
    """Arms a lease anew although it has promised a higher ballot."""

    def _may_renew(self, record: Record, token: Ballot) -> bool:
        return super()._may_renew(replace(record, promised=record.ballot), token)


class AcceptsBelowPromise(Voter):
    """Accepts whatever it is sent."""

    def _may_accept(self, record: Record, ballot: Ballot, seq: int) -> bool:
        return (ballot, seq) != (record.ballot, record.seq) or record.ballot == ballot


class AcceptsEarlierWrites(Voter):
    """Lets a copy of an earlier write under the same ballot take the place of a later one."""

    def _may_accept(self, record: Record, ballot: Ballot, seq: int) -> bool:
        return ballot >= record.promised


class PromisesBesideLease(Voter):
    """Promises while another's lease lives."""

    def _other_lease_s(self, now: float, key: bytes, asker: Owner) -> float | None:
        return None


class PromisesTheRefused(Voter):
    """Refuses who asks while another's lease lives, but keeps the promise."""

    def _on_prepare(self, now: float, request: Prepare) -> list[Step]:
        steps = super()._on_prepare(now, request)
        if not isinstance(steps[0], Leased):
            return steps
        promised = replace(self.record(request.key), promised=request.ballot)
        return [self._store(request.key, promised), *steps]


class ArmsNothing(Voter):
    """Starts again without arming the leases that it has accepted."""

    def __init__(
        self,
        own_id: NodeId,
        times: LeaseTimes,
        *,
        epoch: int,
        now: float,
        records: Iterable[tuple[bytes, Record]] = (),
    ) -> None:
        super().__init__(own_id, times, epoch=epoch, now=now, records=records)
        self._armed.clear()


class CountsFromReply(Trust):
    """Trusts a round from when it was answered."""

    def renewed(self, sender: NodeId, number: int, epoch: int) -> None:
        if (found := self._rounds.get(number)) is not None:
            found.sent_at = NOW
        super().renewed(sender, number, epoch)


class GrantsFromReply(Proposal):
    """Trusts a grant from when it was answered."""

    def handle(self, now: float, sender: NodeId, answer: Answer) -> Sent:
        sent = super().handle(now, sender, answer)
        if isinstance(self.result, Chosen):
            self.result = replace(self.result, sent_at=now)
        return sent


class TakesAnyReport(Proposal):
    """Goes on from any of the reported values, not from the latest."""

    def handle(self, now: float, sender: NodeId, answer: Answer) -> Sent:
        if isinstance(answer, Promised):
            answer = replace(answer, accepted=NO_BALLOT, seq=0)
        return super().handle(now, sender, answer)


class ChangesFinal(Proposal):
    """Changes a final value as if it were any other."""

    def handle(self, now: float, sender: NodeId, answer: Answer) -> Sent:
        if isinstance(answer, Promised) and answer.value is not None:
            answer = replace(answer, value=Value(Standing.OPEN, answer.value.body))
        return super().handle(now, sender, answer)


class NoMargin(LeaseTimes):
    """Times in which a voter waits no longer than the owner trusts, by clocks that may differ."""

    def __post_init__(self) -> None:
        """Refuse nothing."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One rule less, and a scenario in which that shows."""

    name: str
    cores: Cores
    scenario: Scenario
    shows: str
    """Part of what is found."""

    minds_traces: bool = False


def _variant(name: str, scenario: Scenario, shows: str, **dropped: Any) -> Variant:  # noqa: ANN401 - any field of Cores
    return Variant(name, replace(RIGHT, **dropped), scenario, shows)


_BARE = {name: getattr(lan(), name) for name in ("renew_s", "owner_s", "grace_s", "rho")}
_EACH = scenarios.ONE_CLAIM_EACH
_SLOW = scenarios.SLOW_COMMITS
VARIANTS = [
    _variant("renewals are trusted from the reply", _EACH, "sure", trust=CountsFromReply),
    _variant("a grant is trusted from the reply", _EACH, "sure", proposal=GrantsFromReply),
    _variant("no margin between the clocks", _EACH, "sure", times=NoMargin(voter_s=10, **_BARE)),
    _variant("a voter forgets at restart", _EACH, "sure", remembers=False),
    _variant("a voter that restarts arms nothing", _EACH, "sure", voter=ArmsNothing),
    _variant("a renewal after a promise", _EACH, "went back", voter=RenewsAfterPromise),
    _variant("an accept below the promise", _EACH, "", voter=AcceptsBelowPromise),
    _variant("an earlier write in place of a later", _EACH, "over", voter=AcceptsEarlierWrites),
    _variant("any report instead of the latest", _EACH, "over", proposal=TakesAnyReport),
    _variant("a final value is changed", _EACH, "over", proposal=ChangesFinal),
    replace(
        _variant("a refused claimant leaves a promise", _EACH, "trace", voter=PromisesTheRefused),
        minds_traces=True,
    ),
    _variant("promises while a lease lives", _EACH, "sure", voter=PromisesBesideLease),
    _variant("late acceptances are a grant", _EACH, "went back", heeds_hold=False),
    _variant(
        "an old lease is kept beside a new ballot", scenarios.CLAIMS_AGAIN, "sure", lets_go=False
    ),
    _variant(
        "rounds are numbered anew in each boot",
        scenarios.RETURNS_TO_RENEW,
        "sure",
        rounds_differ=False,
    ),
    _variant("a proof without its boot", scenarios.PROVED, "sure", proofs_name_boots=False),
    _variant("answers leave before their commit", _SLOW, "not", answers_wait=False),
    _variant("a copy's answer overtakes the commit", _SLOW, "not", copies_wait=False),
    _variant(
        "a renewal's answer overtakes the commit",
        scenarios.SLOW_RENEWALS,
        "sure",
        renewals_wait=False,
    ),
    _variant(
        "a creation is sent before its own commit",
        scenarios.FIRST_RETURNS,
        "over",
        logs_first=False,
    ),
    Variant("two voters create without asking", RIGHT, scenarios.TWO_FIRSTS, "two creations"),
    Variant("one ballot in two boots", RIGHT, scenarios.SAME_BALLOT, "not"),
]
