"""What those who ask do, and what is wrong with what they were led to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.registers.proposal import Refused
from mesh.registers.trust import Hold
from mesh.wire.register_messages import (
    Accept,
    Accepted,
    Answer,
    Owner,
    Prepare,
    Promised,
    Renew,
    Renewed,
    Request,
    Standing,
)
from tests.exhaustive.cores import AskerAtWork, Cores, Times
from tests.exhaustive.scenarios import BEFORE, EPOCH, KEY, Kind, Scenario, created
from tests.exhaustive.state import Numbered, Phase, Shared, TurnState


class Wants(NamedTuple):
    """The answers that can still make a difference to somebody, and the writes not known to be chosen."""

    promises: frozenset[tuple[NodeId, Ballot]]
    heard: int
    chosen: int


class Asked(NamedTuple):
    """A request that was sent."""

    sender: NodeId
    name: str
    request: Request


class Askers:
    """The turns of a scenario."""

    def __init__(self, cores: Cores, scenario: Scenario) -> None:
        self._cores = cores
        self._scenario = scenario
        self.turns = scenario.turns
        self._work = [AskerAtWork(cores, place, turn) for place, turn in enumerate(self.turns)]
        nodes = list(dict.fromkeys(turn.node for turn in self.turns))
        self._chains = [[i for i, t in enumerate(self.turns) if t.node == node] for node in nodes]
        self._chain_of = {
            i: (c, k) for c, chain in enumerate(self._chains) for k, i in enumerate(chain)
        }
        self._heard: Numbered[tuple[NodeId, Answer]] = Numbered()
        self._writes: Numbered[Accept] = Numbered()
        self.before = Accept(KEY, EPOCH, BEFORE, 0, created(len(self.turns)))

    # Bits.

    def heard_bit(self, asker: NodeId, answer: Answer) -> int:
        return 1 << self._heard.number((asker, answer))

    def took_bit(self, accept: Accept) -> int:
        return 1 << self._writes.number(accept)

    def start(self) -> Shared:
        chosen = self.took_bit(self.before) if self._scenario.exists else 0
        return Shared((TurnState(),) * len(self.turns), (0,) * len(self._chains), chosen)

    # What was sent.

    def has_begun(self, shared: Shared, i: int) -> bool:
        chain, k = self._chain_of[i]
        return k <= shared.at[chain]

    def is_past(self, shared: Shared, i: int) -> bool:
        """Say whether the node has restarted since."""
        chain, _ = self._chain_of[i]
        return self.turns[i].boot < self.turns[self._chains[chain][shared.at[chain]]].boot

    def requests(self, shared: Shared) -> Iterator[Asked]:
        for i, (turn, state) in enumerate(zip(self.turns, shared.turns, strict=True)):
            if not self.has_begun(shared, i):
                continue
            node, name = turn.node, turn.name
            if turn.kind is not Kind.FIRST:
                yield Asked(node, f"the prepare of {name}", Prepare(KEY, turn.ballot, turn.boot))
            if state.accept is not None:
                yield Asked(node, f"the accept of {name}", state.accept)
            for round_ in range(1, state.times.started):
                renew = Renew(EPOCH, self._work[i].number(round_), ((KEY, turn.ballot),))
                yield Asked(node, f"renewal {round_} of {name}", renew)
            if state.done is not None:
                yield Asked(node, f"the result of {name}", state.done)

    def started(self, shared: Shared, ballot: Ballot, owner: Owner | None) -> Times:
        """Return the times of the claim that a lease is of."""
        for turn, state in zip(self.turns, shared.turns, strict=True):
            if turn.ballot == ballot and owner == (turn.node, turn.boot):
                return state.times
        return Times(0, 0, 0)

    # What happens.

    def moves(self, shared: Shared) -> Iterator[tuple[str, Shared]]:
        for chain, at in enumerate(shared.at):
            if at + 1 < len(self._chains[chain]):
                yield self._give_up(shared, chain)
        for i, (turn, state) in enumerate(zip(self.turns, shared.turns, strict=True)):
            times = state.times
            if times.ended < times.started:
                later = state._replace(times=times._replace(ended=times.ended + 1))
                text = f"T_owner has passed since round {times.ended} of {turn.name} was sent"
                yield text, self._put(shared, i, self._settled_times(i, later))
            if state.phase is not Phase.HOLDING or not self._is_owner(i, state) or state.done:
                continue
            if times.started <= self._scenario.renewals:
                more = state._replace(times=times._replace(started=times.started + 1))
                yield f"{turn.name} sends renewal {times.started}", self._put(shared, i, more)
            if state.is_granted and self._scenario.completes:
                assert state.accept is not None
                done = self._work[i].complete(state.accept, times)
                yield (
                    f"{turn.name} sends its result",
                    self._put(shared, i, state._replace(done=done)),
                )

    def reading(self, shared: Shared) -> list[tuple[int, NodeId, Ballot]]:
        """Return the turns that a majority of promises would take on."""
        return [
            (i, turn.node, turn.ballot)
            for i, turn in enumerate(self.turns)
            if shared.turns[i].phase is Phase.ASKING
            and turn.kind is not Kind.FIRST
            and self.has_begun(shared, i)
        ]

    def read(
        self, shared: Shared, i: int, answers: tuple[Promised, Promised]
    ) -> tuple[str, Shared]:
        """Let a turn read a majority of promises."""
        turn, state = self.turns[i], shared.turns[i]
        sent = self._work[i].ask(answers)
        if isinstance(sent, Refused):
            lost = self._lost_creation(shared, i) if sent.found is None else ""
            after = self._put(shared, i, state._replace(phase=Phase.OVER))
            return f"{turn.name} finds nothing to do", after._replace(fault=lost)
        is_claimed = sent.value.owner == (turn.node, turn.boot)
        times = Times(1, 0, 0) if is_claimed else state.times
        state = state._replace(phase=Phase.WRITING, accept=sent, times=times)
        text = f"{turn.name} was promised by a majority and writes {_words(sent)}"
        return text, self._put(shared, i, state)

    def send_first(self, shared: Shared, i: int, accept: Accept) -> Shared:
        """Take that a first voter asks the others."""
        state = shared.turns[i]._replace(phase=Phase.OVER, accept=accept)
        return self._put(shared, i, state)

    # What is heard.

    def wants(self, shared: Shared) -> Wants:
        promises = frozenset(
            (turn.node, turn.ballot)
            for turn, state in zip(self.turns, shared.turns, strict=True)
            if state.phase is Phase.ASKING
        )
        heard = 0
        for i, state in enumerate(shared.turns):
            for bit in self._awaited(i, state):
                heard |= bit
        return Wants(promises, heard, shared.chosen)

    def ready(self, shared: Shared) -> int:
        """Return the answers that somebody acts on at once."""
        ready = 0
        for i, state in enumerate(shared.turns):
            for bit, _ in self._acts(shared, i, state):
                ready |= bit
        return ready

    def hear(self, shared: Shared, bits: int) -> Shared:
        """Let all read what a majority has answered."""
        for i in range(len(self.turns)):
            while acts := [a for b, a in self._acts(shared, i, shared.turns[i]) if b & bits]:
                shared = self._hear_one(shared, i, acts[0])
        return shared

    # What is wrong.

    def fault(self, shared: Shared) -> str:
        """Say what is wrong with this state; nothing is: an empty text."""
        if shared.fault:
            return shared.fault
        sure = {
            (turn.node, turn.boot): turn.name
            for i, (turn, state) in enumerate(zip(self.turns, shared.turns, strict=True))
            if state.phase is Phase.HOLDING and self._hold(i, state) is Hold.SURE
        }
        if len(sure) > 1:
            return f"two are sure at once: {' and '.join(sure.values())}"
        sent = [a for state in shared.turns for a in (state.accept, state.done) if a is not None]
        for number, one in enumerate(self._writes.all):
            if shared.chosen >> number & 1:
                for other in sent:
                    if text := contradiction(one, other):
                        return text
        return ""

    # Inside.

    def _put(self, shared: Shared, i: int, state: TurnState) -> Shared:
        turns = (*shared.turns[:i], state, *shared.turns[i + 1 :])
        return shared._replace(turns=turns)

    def _give_up(self, shared: Shared, chain: int) -> tuple[str, Shared]:
        at = shared.at[chain]
        i, new = self._chains[chain][at], self._chains[chain][at + 1]
        state = shared.turns[i]
        is_other_boot = self.turns[i].boot != self.turns[new].boot
        if is_other_boot or self._cores.lets_go or state.phase is not Phase.HOLDING:
            times = state.times._replace(confirmed=0)
            state = TurnState(Phase.OVER, state.accept, times, done=state.done)
        after = self._put(shared, i, state)
        what = "restarts" if is_other_boot else "gives up"
        at_all = (*shared.at[:chain], at + 1, *shared.at[chain + 1 :])
        return f"{self.turns[i].name} {what}, {self.turns[new].name} begins", after._replace(
            at=at_all
        )

    def _is_owner(self, i: int, state: TurnState) -> bool:
        turn = self.turns[i]
        return state.accept is not None and state.accept.value.owner == (turn.node, turn.boot)

    def _hold(self, i: int, state: TurnState) -> Hold | None:
        if state.accept is None or not self._is_owner(i, state):
            return None
        return self._work[i].hold(state.accept, state.times)

    def _settled_times(self, i: int, state: TurnState) -> TurnState:
        """Forget which round it trusted, once it does not."""
        if state.phase is Phase.HOLDING and self._hold(i, state) is Hold.SURE:
            return state
        return state._replace(times=state.times._replace(confirmed=0))

    def _accepted_bit(self, i: int, seq: int) -> int:
        turn = self.turns[i]
        return self.heard_bit(turn.node, Accepted(KEY, EPOCH, turn.ballot, seq))

    def _renewed_bit(self, i: int, round_: int) -> int:
        answer = Renewed(EPOCH, self._work[i].number(round_), (0,), ())
        return self.heard_bit(self.turns[i].node, answer)

    def _awaited(self, i: int, state: TurnState) -> Iterator[int]:
        if state.phase is Phase.OVER or self.turns[i].kind is Kind.FIRST:
            return
        if state.phase is not Phase.HOLDING:
            yield self._accepted_bit(i, 0)
        if self.turns[i].kind is Kind.CLAIM and not state.is_settled:
            yield self._accepted_bit(i, 1)
        if self.turns[i].kind is Kind.CLAIM:
            for round_ in range(1, self._scenario.renewals + 1):
                if round_ >= state.times.started or self._is_news(i, state, round_):
                    yield self._renewed_bit(i, round_)

    def _is_news(self, i: int, state: TurnState, round_: int) -> bool:
        if round_ <= state.times.confirmed or state.accept is None:
            return False
        return self._work[i].hear(state.accept, state.times, round_) is Hold.SURE

    def _acts(self, shared: Shared, i: int, state: TurnState) -> Iterator[tuple[int, str | int]]:
        if not self.has_begun(shared, i) or self.turns[i].kind is Kind.FIRST:
            return
        if state.phase is Phase.WRITING:
            yield self._accepted_bit(i, 0), "accepted"
        elif state.phase is Phase.HOLDING and self._is_owner(i, state):
            for round_ in range(1, state.times.started):
                if self._is_news(i, state, round_):
                    yield self._renewed_bit(i, round_), round_
            if state.done is not None and not state.is_settled:
                yield self._accepted_bit(i, 1), "settled"

    def _hear_one(self, shared: Shared, i: int, what: str | int) -> Shared:
        turn, state = self.turns[i], shared.turns[i]
        assert state.accept is not None
        told: Accept | None = None
        if what == "settled":
            assert state.done is not None
            assert self._work[i].is_settled(state.done)
            told = state.done
            state = state._replace(is_settled=True)
        elif what == "accepted":
            told = state.accept
            state = state._replace(phase=Phase.HOLDING)
        elif isinstance(what, int):
            state = state._replace(times=state.times._replace(confirmed=what))
        is_sure = self._hold(i, state) is Hold.SURE
        is_late_grant = self._is_owner(i, state) and not self._cores.heeds_hold
        granted, fault = shared.granted, shared.fault
        if not state.is_granted and (is_sure or is_late_grant):
            state = state._replace(is_granted=True)
            if granted is not None and turn.ballot <= granted:
                fault = f"a granted token went back: that of {turn.name}"
            granted = turn.ballot
        if told is not None and not self.took_bit(told) & shared.chosen:
            fault = f"{turn.name} takes {_words(told)} for chosen, which it is not"
        return self._put(shared, i, state)._replace(granted=granted, fault=fault)

    def _lost_creation(self, shared: Shared, i: int) -> str:
        ballot = self.turns[i].ballot
        lower = [
            one
            for number, one in enumerate(self._writes.all)
            if shared.chosen >> number & 1 and one.ballot < ballot
        ]
        return (
            f"{self.turns[i].name} finds nothing where {_words(lower[0])} is chosen"
            if lower
            else ""
        )

    def coverage(self, reached: list[Shared]) -> dict[str, int]:
        """Count the turns that ever got somewhere."""
        phases = [[shared.turns[i] for shared in reached] for i in range(len(self.turns))]
        chosen = 0
        for shared in reached:
            chosen |= shared.chosen
        return {
            "wrote": sum(any(s.accept is not None for s in one) for one in phases),
            "granted": sum(any(s.is_granted for s in one) for one in phases),
            "completed": sum(any(s.is_settled for s in one) for one in phases),
            "chosen": chosen.bit_count(),
        }


def _words(accept: Accept) -> str:
    owner = "" if accept.value.owner is None else f" by boot {accept.value.owner.boot}"
    return f"n {accept.ballot.n}.{accept.seq} {accept.value.standing.name.lower()}{owner} ({accept.value.body.decode()})"


def contradiction(chosen: Accept, sent: Accept) -> str:
    """Say how a write contradicts what was chosen before it in the order of ballots."""
    if (sent.ballot, sent.seq) < (chosen.ballot, chosen.seq):
        return ""
    is_same = (sent.ballot, sent.seq) == (chosen.ballot, chosen.seq)
    is_final = chosen.value.standing is Standing.FINAL
    if (is_same or is_final) and sent.value != chosen.value:
        what = "final" if is_final else "chosen"
        return f"what is {what} is written over: {_words(chosen)} by {_words(sent)}"
    if sent.value.body.split(b",")[0] != chosen.value.body.split(b",")[0]:
        return f"one register, two creations: {_words(chosen)} and {_words(sent)}"
    return ""
