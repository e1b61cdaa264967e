"""One register while its voters change, and those who ask, in every order in which messages may come.

In every state:

- a turn reads a majority of the promises it was given, and writes what follows; an owner writes its result, to
  the voters of its own epoch, or moves it to those of the next;
- a voter gets any request that was ever sent, a seal among them once its epoch has a successor;
- a voter of the next epoch installs from any majority that has sealed, by what each held when it sealed, or by
  what it holds now;
- what a voter has to store becomes durable (at once, unless the scenario holds it back), or is lost by a restart.

Leases are not here: every one has lapsed, so whoever asks is promised. Voters, proposals, writers and
installations are the real ones, set up anew for each step.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise, product
from typing import NamedTuple

from mesh.core.ballot import NO_BALLOT
from mesh.core.ids import NodeId
from mesh.registers.proposal import Proposal, Refused, majority
from mesh.registers.record import Record
from mesh.wire.register_messages import (
    Accept,
    Accepted,
    Owner,
    Prepare,
    Standing,
    Value,
)
from tests.exhaustive.askers import contradiction
from tests.exhaustive.epoch_voters import (
    ASKER,
    BEFORE,
    NAMES,
    NO_ANSWERS,
    NODES,
    Answers,
    EpochCores,
    EpochScenario,
    EpochVoters,
    Kept,
    NodeState,
    Write,
    ballot_of,
)
from tests.exhaustive.scenarios import KEY
from tests.exhaustive.state import Numbered


class AskState(NamedTuple):
    """One turn."""

    accept: Accept | None = None
    is_granted: bool = False
    done: Accept | None = None
    moved_to: int = 0
    is_settled: bool = False
    is_over: bool = False


class EpochState(NamedTuple):
    """Everything. Voters by their numbers."""

    turns: tuple[AskState, ...]
    nodes: tuple[int, ...]
    chosen: frozenset[Write]
    """A majority of an epoch's voters has accepted it."""

    held: frozenset[Write] = frozenset()
    """A majority has accepted or installed it: whoever reads that is told of it."""

    fault: str = ""


class EpochWorld:
    """All states of one scenario."""

    def __init__(self, cores: EpochCores, scenario: EpochScenario) -> None:
        self._cores = cores
        self._scenario = scenario
        self._rosters = {roster.epoch: roster for roster in scenario.rosters}
        self._last = max(self._rosters)
        self._voters = EpochVoters(cores, scenario)
        self._nodes = self._voters.states
        self.states: Numbered[EpochState] = Numbered()
        self._trimmed: dict[object, int] = {}

    # What a search asks.

    def start(self) -> int:
        owned = None
        if self._scenario.is_owned:
            value = self._change(0, BEFORE.value)
            assert value is not None
            owned = Accept(KEY, 1, ballot_of(self._scenario, 0), 0, value)
        kept = [Kept() for _ in NODES]
        before = Record(BEFORE.ballot, BEFORE.ballot, 0, BEFORE.value)
        for voter in self._rosters[1].voters:
            record = before if self._scenario.exists else None
            if owned is not None:
                record = Record(owned.ballot, owned.ballot, 0, owned.value)
            kept[NODES.index(voter)] = Kept(1, 0, record)
        nodes = tuple(self._nodes.number(NodeState(one, one)) for one in kept)
        turns = [AskState()] * len(self._scenario.turns)
        chosen: frozenset[Write] = frozenset()
        if owned is not None:
            turns[0], chosen = AskState(owned, is_granted=True), frozenset({(0, 0, 1)})
        return self.states.number(EpochState((*turns,), nodes, chosen, chosen))

    def after(self, state: int) -> list[int]:
        return [self.states.number(new) for _, new in self._moves(self.states.all[state])]

    def fault(self, state: int) -> str:
        return self.states.all[state].fault

    def tell(self, path: list[int]) -> list[str]:
        told = []
        for state, after in pairwise(path):
            wanted = self.states.all[after]
            told += [t for t, new in self._moves(self.states.all[state]) if new == wanted][:1]
        return told

    def coverage(self) -> dict[str, int]:
        """Count what ever happened: turns that wrote, were granted and settled, and voters of the last epoch."""
        turns = range(len(self._scenario.turns))
        seen = [[state.turns[i] for state in self.states.all] for i in turns]
        epochs = {
            (i, self._nodes.all[n].disk.epoch)
            for s in self.states.all
            for i, n in enumerate(s.nodes)
        }
        return {
            "wrote": sum(any(one.accept is not None for one in all_) for all_ in seen),
            "granted": sum(any(one.is_granted for one in all_) for all_ in seen),
            "settled": sum(any(one.is_settled for one in all_) for all_ in seen),
            "voting last": sum(epoch == self._last for _, epoch in epochs),
        }

    # What may happen.

    def _moves(self, state: EpochState) -> Iterator[tuple[str, EpochState]]:
        for i, turn in enumerate(state.turns):
            yield from self._turn_moves(state, i, turn)
        requests = list(self._requests(state))
        for place, number in enumerate(state.nodes):
            node, name = self._nodes.all[number], "ABCD"[place]
            for text, i, request in requests:
                after = self._voters.handled(place, number, i, request)
                if after is not node:
                    yield f"{name} gets {text}", self._put(state, place, after)
            for epoch in self._rosters:
                if epoch < self._last and self._has_successor(state, epoch):
                    after = self._voters.sealed(place, number, epoch)
                    if after is not node:
                        yield f"{name} is asked to seal {epoch}", self._put(state, place, after)
                    yield from self._installations(state, place, node, epoch)
            if node.memory != node.disk or node.waiting != NO_ANSWERS:
                yield (
                    f"{name} commits",
                    self._put(state, place, self._voters.committed(place, node)),
                )
            if self._scenario.restarts:
                after = self._voters.restarted(node)
                if after != node:
                    yield f"{name} restarts", self._put(state, place, after)

    def _requests(self, state: EpochState) -> Iterator[tuple[str, int, Prepare | Accept]]:
        for i, (turn, one) in enumerate(zip(self._scenario.turns, state.turns, strict=True)):
            if one.accept is None and not one.is_over:
                yield f"the prepare of turn {i}", i, Prepare(KEY, ballot_of(self._scenario, i), 1)
            if one.accept is not None:
                yield f"the accept of turn {i}", i, one.accept
            if one.done is not None:
                yield f"the result of turn {i}", i, one.done
                for epoch in (e for e in turn.ends_in[1:] if e <= one.moved_to):
                    yield f"the result of turn {i}, moved to {epoch}", i, _in(one.done, epoch)

    def _has_successor(self, state: EpochState, epoch: int) -> bool:
        """Say whether one can be chosen by now: a majority of the epoch's voters has installed it."""
        voters = self._rosters[epoch].voters
        disks = [self._nodes.all[state.nodes[NODES.index(voter)]].disk for voter in voters]
        return sum(max(disk.epoch, disk.sealed) >= epoch for disk in disks) >= majority(len(voters))

    # Turns.

    def _change(self, i: int, found: Value | None) -> Value | None:
        if not self._scenario.turns[i].claims:
            return found or Value(Standing.OPEN, b"made by turn %d" % i)
        owner = Owner(NodeId(ASKER + i), 1)
        return None if found is None else Value(Standing.LEASED, found.body, owner)

    def _turn_moves(
        self, state: EpochState, i: int, turn: AskState
    ) -> Iterator[tuple[str, EpochState]]:
        what = self._scenario.turns[i]
        if turn.accept is None and not turn.is_over:
            yield from self._reads(state, i)
        if turn.accept is None or not turn.is_granted or not what.ends_in:
            return
        if turn.accept.value.owner != (NodeId(ASKER + i), 1):
            return  # it found the end, and only wrote it back
        if turn.done is None:
            writer = self._cores.writer(KEY, turn.accept.ballot)
            final = Value(Standing.FINAL, turn.accept.value.body + b", done by turn %d" % i)
            first = what.ends_in[0]
            (_, done), *_ = writer.write(0.0, final, first, self._rosters[first].voters)
            after = turn._replace(done=done, moved_to=first)
            yield f"turn {i} sends its result", self._put_turn(state, i, after)
        elif turn.moved_to < what.ends_in[-1] and not turn.is_settled:
            after = turn._replace(moved_to=turn.moved_to + 1)
            text = f"turn {i} moves its result to {after.moved_to}"
            yield text, self._put_turn(state, i, after)

    def _reads(self, state: EpochState, i: int) -> Iterator[tuple[str, EpochState]]:
        what, ballot = self._scenario.turns[i], ballot_of(self._scenario, i)
        voters = self._rosters[what.epoch].voters
        given = [
            (voter, answer)
            for voter in voters
            for j, answer in self._nodes.all[state.nodes[NODES.index(voter)]].out.promised
            if j == i
        ]
        for some in combinations(given, majority(len(voters))):
            if len({voter for voter, _ in some}) < len(some):
                continue
            proposal = Proposal(
                key=KEY,
                ballot=ballot,
                boot=1,
                voters=voters,
                change=lambda found: self._change(i, found),
            )
            proposal.start(0.0)
            for voter, answer in some:
                proposal.handle(0.0, voter, answer)
            names = " and ".join(NAMES[voter] for voter, _ in some)
            accept = proposal._accept
            if accept is None:
                assert isinstance(proposal.result, Refused)
                lost = any(self._write(state, one).ballot < ballot for one in state.chosen)
                fault = f"turn {i} finds nothing of what is chosen" if lost else ""
                over = self._put_turn(state, i, AskState(is_over=True), fault=fault)
                yield f"turn {i} finds nothing at {names}", over
                continue
            text = f"turn {i}, promised by {names}, writes {accept.value.body.decode()}"
            yield text, self._put_turn(state, i, AskState(accept))

    def _write(self, state: EpochState, write: Write) -> Accept:
        turn = state.turns[write[0]]
        found = turn.done if write[1] else turn.accept
        assert found is not None
        return found

    def _installations(
        self, state: EpochState, place: int, node: NodeState, epoch: int
    ) -> Iterator[tuple[str, EpochState]]:
        before, roster = self._rosters[epoch], self._rosters[epoch + 1]
        if NODES[place] not in roster.voters or node.memory.epoch > epoch:
            return
        for some in combinations(before.voters, majority(len(before.voters))):
            told = [
                self._voters.told(state.nodes[NODES.index(voter)], voter, epoch) for voter in some
            ]
            for pages in product(*told):
                after = self._voters.installed(
                    place, node, before, roster, tuple(zip(some, pages, strict=True))
                )
                if after is not None:
                    names = " and ".join(NAMES[voter] for voter in some)
                    text = f"{'ABCD'[place]} installs {epoch + 1} from {names}"
                    yield text, self._put(state, place, after)

    # What follows.

    def _put_turn(self, state: EpochState, i: int, turn: AskState, fault: str = "") -> EpochState:
        turns = (*state.turns[:i], turn, *state.turns[i + 1 :])
        return self._settled(state._replace(turns=turns, fault=fault or state.fault))

    def _put(self, state: EpochState, place: int, node: NodeState) -> EpochState:
        number = self._nodes.number(node)
        nodes = (*state.nodes[:place], number, *state.nodes[place + 1 :])
        return self._settled(state._replace(nodes=nodes))

    def _settled(self, state: EpochState) -> EpochState:
        """See what is chosen, let the turns hear it, look for faults, and forget what makes no difference."""
        nodes = [self._nodes.all[number].out for number in state.nodes]
        chosen = state.chosen | self._by_majority([out.took for out in nodes])
        held = state.held | self._by_majority([out.held for out in nodes])
        state = state._replace(chosen=chosen, held=held)
        turns = [self._heard(state, i, turn) for i, turn in enumerate(state.turns)]
        state = state._replace(turns=tuple(turns))
        if not state.fault:
            state = state._replace(fault=self._wrong(state))
        wants = (
            tuple(one.accept is None and not one.is_over for one in turns),
            tuple((one.is_granted, one.is_settled) for one in turns),
            (state.chosen, state.held),
        )
        return state._replace(nodes=tuple(self._trim(number, wants) for number in state.nodes))

    def _by_majority(self, writes: list[frozenset[Write]]) -> set[Write]:
        counts: dict[Write, int] = {}
        for place, those in enumerate(writes):
            for write in those:
                if NODES[place] in self._rosters[write[2]].voters:
                    counts[write] = counts.get(write, 0) + 1
        return {
            write
            for write, count in counts.items()
            if count >= majority(len(self._rosters[write[2]].voters))
        }

    def _heard(self, state: EpochState, i: int, turn: AskState) -> AskState:
        if turn.accept is None:
            return turn
        ballot = turn.accept.ballot
        answers = [
            (NODES[place], write)
            for place, number in enumerate(state.nodes)
            for write in sorted(self._nodes.all[number].out.accepted)
            if write[0] == i
        ]
        what = self._scenario.turns[i]
        if not turn.is_granted:
            voters = self._rosters[what.epoch].voters
            heard = {v for v, (_, seq, epoch) in answers if seq == 0 and epoch == what.epoch}
            if len(heard.intersection(voters)) >= majority(len(voters)):
                turn = turn._replace(is_granted=True)
        if turn.done is not None and not turn.is_settled:
            writer = self._cores.writer(KEY, ballot)
            for epoch in (e for e in what.ends_in if e <= turn.moved_to):
                voters = self._rosters[epoch].voters
                if epoch == what.ends_in[0]:
                    writer.write(0.0, turn.done.value, epoch, voters)
                else:
                    writer.move(0.0, epoch, voters)
                for voter, (_, seq, at) in answers:
                    writer.handle(voter, Accepted(KEY, at, ballot, seq))
            turn = turn._replace(is_settled=writer.is_settled)
        return turn

    def _wrong(self, state: EpochState) -> str:
        for i, turn in enumerate(state.turns):
            for is_told, seq in ((turn.is_granted, 0), (turn.is_settled, 1)):
                if is_told and not any(write[:2] == (i, seq) for write in state.chosen):
                    return f"turn {i} takes its write {seq} for chosen, which it is not"
        sent = [BEFORE] if self._scenario.exists else []
        sent += [a for turn in state.turns for a in (turn.accept, turn.done) if a is not None]
        for write in state.chosen:
            for other in sent:
                if text := contradiction(self._write(state, write), other):
                    return text
        known = [self._write(state, write) for write in state.held]
        for one, other in product(known, known):
            if text := contradiction(one, other):
                return text
        return self._not_carried(state) if self._cores.minds_carrying else ""

    def _not_carried(self, state: EpochState) -> str:
        for place, number in enumerate(state.nodes):
            disk = self._nodes.all[number].disk
            record = disk.record
            held = (NO_BALLOT, 0) if record is None else (record.ballot, record.seq)
            for write in state.chosen:
                one = self._write(state, write)
                if write[2] < disk.epoch and held < (one.ballot, one.seq):
                    return f"{'ABCD'[place]} votes in {disk.epoch} without what is chosen in {write[2]}"
        return ""

    def _trim(self, number: int, wants: tuple[object, ...]) -> int:
        key = (number, wants)
        if key not in self._trimmed:
            node = self._nodes.all[number]
            waiting, out = self._kept(node.waiting, wants), self._kept(node.out, wants)
            self._trimmed[key] = self._nodes.number(node._replace(waiting=waiting, out=out))
        return self._trimmed[key]

    def _kept(self, answers: Answers, wants: tuple[object, ...]) -> Answers:
        asking, heard, known = wants
        assert isinstance(asking, tuple)
        assert isinstance(heard, tuple)
        assert isinstance(known, tuple)
        return Answers(
            frozenset(one for one in answers.promised if asking[one[0]]),
            frozenset(one for one in answers.accepted if not heard[one[0]][one[1]]),
            answers.took - known[0],
            answers.held - known[1],
        )


def _in(accept: Accept, epoch: int) -> Accept:
    return Accept(accept.key, epoch, accept.ballot, accept.seq, accept.value)
