"""The voters of one register through its epochs: real ones, set up anew for each step from what counts of them.

Leases are not here: every one has lapsed, so whoever asks is promised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.registers.installation import Installation
from mesh.registers.leases import lan
from mesh.registers.record import Record
from mesh.registers.voter import Step, StoreEpoch, Voter
from mesh.registers.writer import Writer
from mesh.wire.register_messages import Accept, Accepted, Prepare, Promised, Standing, Value
from mesh.wire.roster_messages import Fetch, Page, Roster, Seal, Sealed
from tests.exhaustive.scenarios import KEY
from tests.exhaustive.state import Numbered

NODES: Final = (NodeId(11), NodeId(12), NodeId(13), NodeId(14))
NAMES: Final = dict(zip(NODES, "ABCD", strict=True))
_TIMES: Final = lan()
_LONG_AGO: Final = -1000.0
ASKER: Final = 21
BEFORE: Final = Accept(
    KEY, 1, Ballot(1, 1, 0, NODES[0]), 0, Value(Standing.OPEN, b"made before all")
)

Write = tuple[int, int, int]
"""A turn, the number of its write, and the epoch in which it was accepted."""


@dataclass(frozen=True, slots=True)
class EpochTurn:
    """One ballot of one asker, in one epoch."""

    epoch: int
    n: int
    claims: bool = True
    """Else it creates."""

    ends_in: tuple[int, ...] = ()
    """Once it was granted, it writes its result to the voters of the first of these epochs, then moves it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochScenario:
    """Who votes, who asks, and what may go wrong."""

    name: str
    rosters: tuple[Roster, ...]
    turns: tuple[EpochTurn, ...]
    exists: bool = False
    """The register was created: all voters of the first epoch have it."""

    is_owned: bool = False
    """It exists, and turn 0 owns it."""

    holds_back: bool = False
    restarts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochCores:
    """The machines at work."""

    voter: type[Voter] = Voter
    installation: type[Installation] = Installation
    writer: type[Writer] = Writer
    keeps_seals: bool = True
    """A voter that restarts knows what it has sealed."""

    minds_carrying: bool = True
    """What was chosen in an epoch and is missing where the next is installed is a fault, whatever comes of it."""


def ballot_of(scenario: EpochScenario, i: int) -> Ballot:
    """Return the ballot of a turn."""
    turn = scenario.turns[i]
    return Ballot(1, turn.epoch, turn.n, NodeId(ASKER + i))


class Kept(NamedTuple):
    """What is on a disk."""

    epoch: int = 0
    sealed: int = 0
    record: Record | None = None


class Answers(NamedTuple):
    """What a voter has answered, and accepted."""

    promised: frozenset[tuple[int, Promised]] = frozenset()
    accepted: frozenset[Write] = frozenset()
    took: frozenset[Write] = frozenset()
    held: frozenset[Write] = frozenset()
    """Installed, or taken."""

    def joined(self, other: Answers) -> Answers:
        return Answers(
            self.promised | other.promised,
            self.accepted | other.accepted,
            self.took | other.took,
            self.held | other.held,
        )


NO_ANSWERS: Final = Answers()


class NodeState(NamedTuple):
    """One node as a voter."""

    memory: Kept = Kept()
    disk: Kept = Kept()
    waiting: Answers = NO_ANSWERS
    out: Answers = NO_ANSWERS
    report: Page | None = None
    """What it told when it had sealed."""


class EpochVoters:
    """Steps of the voters of one scenario."""

    def __init__(self, cores: EpochCores, scenario: EpochScenario) -> None:
        self._cores = cores
        self._scenario = scenario
        self.states: Numbered[NodeState] = Numbered()
        self._steps: dict[object, NodeState] = {}
        self._installs: dict[object, NodeState | None] = {}

    def _voter(self, place: int, kept: Kept) -> Voter:
        records = [] if kept.record is None else [(KEY, kept.record)]
        return self._cores.voter(
            NODES[place],
            _TIMES,
            epoch=kept.epoch,
            sealed=kept.sealed,
            now=_LONG_AGO,
            records=records,
        )

    def handled(self, place: int, number: int, i: int, request: Prepare | Accept) -> NodeState:
        key = (place, number, request)
        if key not in self._steps:
            node = self.states.all[number]
            voter = self._voter(place, node.memory)
            steps = voter.handle(0.0, request)
            answers = NO_ANSWERS
            for step in steps:
                if isinstance(step, Promised):
                    answers = answers.joined(Answers(promised=frozenset({(i, step)})))
                elif isinstance(step, Accepted):
                    write = frozenset({(i, step.seq, step.epoch)})
                    answers = answers.joined(Answers(accepted=write, took=write, held=write))
            self._steps[key] = self._stepped(place, node, voter, answers)
        return self._steps[key]

    def sealed(self, place: int, number: int, epoch: int) -> NodeState:
        key = (place, number, epoch)
        if key not in self._steps:
            node = self.states.all[number]
            voter = self._voter(place, node.memory)
            voter.seal(0.0, Seal(epoch))
            self._steps[key] = self._stepped(place, node, voter, NO_ANSWERS)
        return self._steps[key]

    def told(self, number: int, voter: NodeId, epoch: int) -> list[Page]:
        """Return what a voter tells of an epoch: what it held when it sealed, what it holds on its disk."""
        place = NODES.index(voter)
        node = self.states.all[number]
        pages = [] if node.report is None or node.report.epoch != epoch else [node.report]
        now = _page(self._voter(place, node.disk), epoch)
        return pages if now is None or now in pages else [*pages, now]

    def installed(
        self,
        place: int,
        node: NodeState,
        before: Roster,
        roster: Roster,
        pages: tuple[tuple[NodeId, Page], ...],
    ) -> NodeState | None:
        key = (place, node, roster.epoch, pages)
        if key not in self._installs:
            installation = self._cores.installation(before, roster)
            installation.start(0.0)
            for voter, page in pages:
                installation.handle(voter, Sealed(before.epoch, 1))
                installation.handle(voter, page)
            assert installation.result is not None
            core = self._voter(place, node.memory)
            steps: list[Step] = core.install(0.0, roster.epoch, installation.result)
            has_stored = any(isinstance(step, StoreEpoch) for step in steps)
            held = self._held(core.record(KEY), roster.epoch)
            self._installs[key] = self._stepped(place, node, core, held) if has_stored else None
        return self._installs[key]

    def _held(self, record: Record, epoch: int) -> Answers:
        turns = range(len(self._scenario.turns))
        held = [
            (i, record.seq, epoch) for i in turns if ballot_of(self._scenario, i) == record.ballot
        ]
        return Answers(held=frozenset(held))

    def _stepped(self, place: int, node: NodeState, voter: Voter, answers: Answers) -> NodeState:
        """Return a node after its voter's step; the same one, if nothing came of it."""
        voter.check_invariants()
        memory = Kept(voter.epoch, voter.sealed, dict(voter).get(KEY))
        after = node._replace(memory=memory, waiting=node.waiting.joined(answers))
        is_waiting = memory != node.disk
        if not self._scenario.holds_back or not is_waiting:
            after = self.committed(place, after)
        return node if after == node else after

    def committed(self, place: int, node: NodeState) -> NodeState:
        disk, report = node.memory, node.report
        if disk.sealed > node.disk.sealed and not disk.epoch:
            report = _page(self._voter(place, disk), disk.sealed)
        out = node.out.joined(node.waiting)
        return node._replace(disk=disk, waiting=NO_ANSWERS, out=out, report=report)

    def restarted(self, node: NodeState) -> NodeState:
        disk = node.disk
        if not self._cores.keeps_seals and not disk.epoch and disk.sealed:
            disk = disk._replace(epoch=disk.sealed, sealed=disk.sealed - 1)
        return node._replace(memory=disk, disk=disk, waiting=NO_ANSWERS)


def _page(voter: Voter, epoch: int) -> Page | None:
    """Return what a voter tells of an epoch that it has sealed; None: it has not."""
    return next((one for one in voter.seal(0.0, Fetch(epoch, b"")) if isinstance(one, Page)), None)
