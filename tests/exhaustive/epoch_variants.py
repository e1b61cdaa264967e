"""Small scenarios of one register from epoch to epoch, and wrong variants of the machines that have to be found out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from mesh.core.ids import NodeId
from mesh.registers.installation import Installation
from mesh.registers.record import Record
from mesh.registers.voter import Step, Voter
from mesh.registers.writer import Writer
from mesh.wire.register_messages import Accept, Accepted, Answer
from mesh.wire.roster_messages import Fetch, Page, Roster, Sealed, SealRequest
from tests.exhaustive.epoch_voters import NODES, EpochCores, EpochScenario, EpochTurn

A, B, C, D = NODES
_ONE_TO_THREE: Final = (Roster(1, (A,)), Roster(2, (A, B, C)))
_THREE_TO_OTHERS: Final = (Roster(1, (A, B, C)), Roster(2, (B, C, D)))
_CREATE = EpochTurn(1, 1, claims=False)

GROWS = EpochScenario(
    name="one voter to three, a creation and a claim under way",
    rosters=_ONE_TO_THREE,
    turns=(_CREATE, EpochTurn(1, 2, ends_in=(1, 2)), EpochTurn(2, 1, claims=False)),
)
GROWS_SLOWLY = EpochScenario(
    name="one voter to three, a creation and a claim, commits that take time and crashes",
    rosters=_ONE_TO_THREE,
    turns=(_CREATE, EpochTurn(2, 1)),
    holds_back=True,
    restarts=True,
)
GROWS_CLAIMED_SLOWLY = EpochScenario(
    name="one voter to three, a claim that ends, commits that take time and crashes",
    rosters=_ONE_TO_THREE,
    turns=(EpochTurn(1, 1, ends_in=(1, 2)), EpochTurn(2, 1)),
    exists=True,
    holds_back=True,
    restarts=True,
)
GROWS_CLAIMED = EpochScenario(
    name="one voter to three, a claim that ends, then another",
    rosters=_ONE_TO_THREE,
    turns=(EpochTurn(1, 1, ends_in=(1, 2)), EpochTurn(2, 1, ends_in=(2,))),
    exists=True,
    restarts=True,
)
OWNED = EpochScenario(
    name="three voters to three others, an owner that ends, beside a claim",
    rosters=_THREE_TO_OTHERS,
    turns=(EpochTurn(1, 1, ends_in=(1, 2)), EpochTurn(1, 2)),
    is_owned=True,
)
CHANGES_SLOWLY = replace(
    OWNED,
    name="three voters to three others, an owner that ends, commits that take time and crashes",
    turns=(EpochTurn(1, 1, ends_in=(1, 2)),),
    holds_back=True,
    restarts=True,
)
OWNED_ENDS = replace(
    OWNED,
    name="three voters to three others, an owner that ends before, beside a claim",
    turns=(EpochTurn(1, 1, ends_in=(1,)), EpochTurn(1, 2)),
)
OWNED_ENDS_LATE = replace(
    OWNED,
    name="three voters to three others, an owner that ends after, beside a claim",
    turns=(EpochTurn(1, 1, ends_in=(2,)), EpochTurn(1, 2)),
)
OWNED_THEN_CLAIMED = replace(
    OWNED,
    name="three voters to three others, an owner that ends, and a claim after",
    turns=(EpochTurn(1, 1, ends_in=(1, 2)), EpochTurn(2, 1)),
)
CHANGES_OWNER = EpochScenario(
    name="three voters to three others, a claim that ends",
    rosters=_THREE_TO_OTHERS,
    turns=(EpochTurn(1, 1, ends_in=(1, 2)),),
    exists=True,
)
CHANGES_CLAIM = replace(
    CHANGES_OWNER,
    name="three voters to three others, a claim before and one after",
    turns=(EpochTurn(1, 1), EpochTurn(2, 1)),
)
TWICE = EpochScenario(
    name="one voter to three, and on to three others",
    rosters=(*_ONE_TO_THREE, Roster(3, (B, C, D))),
    turns=(EpochTurn(2, 1, claims=False), EpochTurn(3, 1, claims=False)),
)

RIGHT: Final = EpochCores()


class NeverSeals(Voter):
    """Says that it has sealed, and goes on."""

    def seal(self, now: float, request: SealRequest) -> list[Step]:
        if request.epoch not in {self.epoch, self.sealed}:
            return []
        if isinstance(request, Fetch):
            return [self._page(now, request)]
        return [Sealed(request.epoch, len(self))]


class SealsEarly(Voter):
    """Says that it has sealed what it has not installed, which it does later."""

    def seal(self, now: float, request: SealRequest) -> list[Step]:
        if request.epoch <= max(self.epoch, self.sealed):
            return super().seal(now, request)
        if isinstance(request, Fetch):
            return [self._page(now, request)]
        return [Sealed(request.epoch, len(self))]


class AcceptsFirstLater(Voter):
    """Accepts a ballot's first write of an earlier epoch."""

    def _on_accept(self, now: float, request: Accept) -> list[Step]:
        own = self.epoch
        if request.seq == 0 and 0 < request.epoch < own:
            self.epoch = request.epoch
        steps = super()._on_accept(now, request)
        self.epoch = own
        return steps


class Mixes(Writer):
    """Counts acceptances of two epochs together."""

    def move(self, now: float, epoch: int, voters: Iterable[NodeId]) -> list[tuple[NodeId, Accept]]:
        accepted = set(self._accepted)
        sent = super().move(now, epoch, voters)
        self._accepted |= accepted
        return sent

    def handle(self, sender: NodeId, answer: Answer) -> None:
        latest = self._latest
        if isinstance(answer, Accepted) and latest is not None:
            answer = replace(answer, epoch=latest.epoch)
        super().handle(sender, answer)


class DropsPromises(Installation):
    """Installs what was accepted, and no promise."""

    def handle(self, sender: NodeId, answer: Sealed | Page) -> list[tuple[NodeId, SealRequest]]:
        asked = super().handle(sender, answer)
        if self.result is not None:
            self.result = {
                key: (Record(one.ballot, one.ballot, one.seq, one.value), is_live)
                for key, (one, is_live) in self.result.items()
            }
        return asked


@dataclass(frozen=True, slots=True)
class EpochVariant:
    """One rule less, and a scenario in which that shows."""

    name: str
    cores: EpochCores
    scenario: EpochScenario


def _variant(name: str, scenario: EpochScenario, **dropped: Any) -> EpochVariant:  # noqa: ANN401 - any field of EpochCores
    return EpochVariant(name, replace(RIGHT, minds_carrying=False, **dropped), scenario)


VARIANTS: Final = [
    _variant("an unsealed roster change", GROWS, voter=NeverSeals),
    _variant("seq 0 of E accepted in E+1", OWNED_ENDS, voter=AcceptsFirstLater),
    _variant("a majority mixed over two epochs", CHANGES_OWNER, writer=Mixes),
    _variant("an epoch sealed before it was installed", TWICE, voter=SealsEarly),
    _variant("a seal forgotten at restart", GROWS_CLAIMED, keeps_seals=False),
    _variant("install without the promise", OWNED_ENDS_LATE, installation=DropsPromises),
]
