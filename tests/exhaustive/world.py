"""One register, three voters and those who ask, in every order in which messages and timers may come.

In every state:

- a turn reads a majority of the promises it was given, and writes what follows;
- an owner renews, completes, or gives up for its node's next turn; T_owner passes since one of its rounds;
- a voter gets any request that was ever sent, restarts, or lets a lease lapse that may lapse by now;
- what a voter has to store becomes durable (at once, unless the scenario holds it back).

An owner reads acceptances and renewals as soon as a majority has answered: to read later is to be sure for
less long. Voters that differ in nothing but their names are put in order, so that a state is met once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from tests.exhaustive.askers import Askers, Wants
from tests.exhaustive.cores import Cores
from tests.exhaustive.scenarios import Scenario
from tests.exhaustive.state import Numbered, Shared, VoterState
from tests.exhaustive.voters import Voters

_WIDTH: Final = 20
_MASK: Final = (1 << _WIDTH) - 1
_NAMES: Final = "ABC"

Trio = tuple[int, int, int]
Move = tuple[str, int, tuple[int, ...]]


class RegisterWorld:
    """All states of one scenario. A state is four numbers: of what is shared, and of each voter."""

    def __init__(self, cores: Cores, scenario: Scenario, *, minds_traces: bool = True) -> None:
        """Begin; `minds_traces`: a refused claimant's trace is a fault, whatever comes of it."""
        self._minds_traces = minds_traces
        self._alike = scenario.alike
        self.askers = Askers(cores, scenario)
        self._voters = Voters(cores, scenario, self.askers)
        self.shared: Numbered[Shared] = Numbered()
        self._voter_states: Numbered[VoterState] = Numbered()
        self._wants_all: Numbered[Wants] = Numbered()
        # By number, worked out when first met.
        self._ready: list[int] = []
        self._wants: list[int] = []
        self._shared_faults: list[str] = []
        self._reading: list[list[tuple[int, object, object]]] = []
        self._heard: list[int] = []
        self._took: list[int] = []
        self._voter_faults: list[str] = []
        self._shared_moves: dict[int, list[tuple[str, int]]] = {}
        self._voter_moves: dict[tuple[int, int, int], list[tuple[str, int, int]]] = {}
        self._reads: dict[object, tuple[str, int]] = {}
        self._hears: dict[tuple[int, int, int], int] = {}
        self._trimmed: dict[tuple[int, int], int] = {}

    # What a search asks.

    def start(self) -> int:
        shared = self._number_shared(self.askers.start())
        voter = self._number_voter(self._voters.start())
        return self._settled(shared, (voter, voter, voter))[0]

    def after(self, state: int) -> list[int]:
        """Return the states that may be next: what `_moves` yields, without the words."""
        shared, voters = _unpacked(state)
        found = [self._settled(new, voters)[0] for _, new in self._moves_of_shared(shared)]
        for turn in self._reading[shared]:
            for _, new, _ in self._reads_of(shared, voters, turn):
                found.append(self._settled(new, voters)[0])
        fixed, heard, took = self._alike, self._heard, self._took
        ready = self._ready[shared]
        for place, voter in enumerate(voters):
            if place > fixed and voter == voters[place - 1]:
                continue  # they are in order: its twin has had its turn
            key = (shared, voter, place if place < fixed else -1)
            moves = self._voter_moves.get(key) or self._moves_of_voter(*key)
            one, other = voters[:place] + voters[place + 1 :]
            both_heard, both_took = heard[one] & heard[other], took[one] & took[other]
            any_heard, any_took = (heard[one] | heard[other]) & ready, took[one] | took[other]
            for _, new, changed in moves:
                is_quiet = not (any_heard & heard[changed] or both_heard & ready)
                if new == shared and is_quiet and not (any_took & took[changed] or both_took):
                    trio = [one, other]
                    trio.insert(place, changed)
                    if fixed == 0:
                        trio.sort()
                    elif fixed == 1 and trio[1] > trio[2]:
                        trio[1:] = trio[2], trio[1]
                    a, b, c = trio
                    found.append(((shared << _WIDTH | a) << _WIDTH | b) << _WIDTH | c)
                else:
                    trio = [one, other]
                    trio.insert(place, changed)
                    found.append(self._settled(new, (*trio,))[0])
        return found

    def fault(self, state: int) -> str:
        shared, voters = _unpacked(state)
        if self._shared_faults[shared]:
            return self._shared_faults[shared]
        a, b, c = voters
        return self._voter_faults[a] or self._voter_faults[b] or self._voter_faults[c]

    def tell(self, path: list[int]) -> list[str]:
        """Return what happened on a path, each step in words; a voter keeps its name all the way."""
        names, told = list(_NAMES), []
        for state, after in pairwise(path):
            for text, shared, voters in self._moves(state):
                packed, order = self._settled(shared, voters)
                if packed == after:
                    told.append(_named(text, names))
                    names = [names[place] for place in order]
                    break
        return told

    def coverage(self) -> dict[str, int]:
        """Count the turns that ever got somewhere."""
        return self.askers.coverage(self.shared.all)

    # Inside.

    def _moves(self, state: int) -> Iterator[Move]:
        shared, voters = _unpacked(state)
        for text, new in self._moves_of_shared(shared):
            yield text, new, voters
        for i, node, ballot in self._reading[shared]:
            yield from self._reads_of(shared, voters, (i, node, ballot))
        for place, voter in enumerate(voters):
            known_as = place if place < self._alike else -1
            for text, new, changed in self._moves_of_voter(shared, voter, known_as):
                trio = (*voters[:place], changed, *voters[place + 1 :])
                yield text.replace("{}", f"{{{place}}}"), new, trio

    def _moves_of_shared(self, shared: int) -> list[tuple[str, int]]:
        found = self._shared_moves.get(shared)
        if found is None:
            moves = self.askers.moves(self.shared.all[shared])
            found = [(text, self._number_shared(new)) for text, new in moves]
            self._shared_moves[shared] = found
        return found

    def _moves_of_voter(self, shared: int, voter: int, place: int) -> list[tuple[str, int, int]]:
        key = (shared, voter, place)
        found = self._voter_moves.get(key)
        if found is None:
            found = []
            whole, state = self.shared.all[shared], self._voter_states.all[voter]
            for text, new, changed in self._voters.moves(whole, state, place):
                after = self._number_shared(new)
                trimmed = self._trim(self._number_voter(changed), self._wants[after])
                if (after, trimmed) != (shared, voter):
                    found.append((text, after, trimmed))
            self._voter_moves[key] = found
        return found

    def _reads_of(
        self, shared: int, voters: tuple[int, ...], turn: tuple[int, object, object]
    ) -> Iterator[Move]:
        i, node, ballot = turn
        given = [
            (place, answer)
            for place, voter in enumerate(voters)
            for asker, answer in self._voter_states.all[voter].out.promised
            if asker == node and answer.ballot == ballot
        ]
        for number, (place, one) in enumerate(given):
            for other_place, other in given[number + 1 :]:
                if place == other_place:
                    continue
                key = (shared, i, one, other)
                if key not in self._reads:
                    text, new = self.askers.read(self.shared.all[shared], i, (one, other))
                    self._reads[key] = text, self._number_shared(new)
                text, after = self._reads[key]
                yield f"{text} ({{{place}}} and {{{other_place}}})", after, voters

    def _settled(self, shared: int, voters: tuple[int, ...]) -> tuple[int, list[int]]:
        """Let all read what is there to be read, and put the voters in order; return also that order."""
        a, b, c = voters
        while True:
            heard, took = self._heard, self._took
            chosen = took[a] & took[b] | took[b] & took[c] | took[a] & took[c]
            chosen &= ~self.shared.all[shared].chosen
            bits = heard[a] & heard[b] | heard[b] & heard[c] | heard[a] & heard[c]
            if not chosen and not bits & self._ready[shared]:
                break
            key = (shared, chosen, bits)
            if key not in self._hears:
                whole = self.shared.all[shared]
                whole = self.askers.hear(whole._replace(chosen=whole.chosen | chosen), bits)
                self._hears[key] = self._number_shared(whole)
            shared = self._hears[key]
        wants = self._wants[shared]
        a, b, c = self._trim(a, wants), self._trim(b, wants), self._trim(c, wants)
        trio = (a, b, c)
        fixed = self._alike
        order = [*range(fixed), *sorted(range(fixed, 3), key=trio.__getitem__)]
        packed = shared
        for place in order:
            packed = packed << _WIDTH | trio[place]
        return packed, order

    def _trim(self, voter: int, wants: int) -> int:
        key = (voter, wants)
        found = self._trimmed.get(key)
        if found is None:
            trimmed = self._voters.trim(self._voter_states.all[voter], self._wants_all.all[wants])
            found = self._trimmed[key] = self._number_voter(trimmed)
        return found

    def _number_shared(self, whole: Shared) -> int:
        number = self.shared.number(whole)
        if number == len(self._ready):
            self._ready.append(self.askers.ready(whole))
            self._wants.append(self._wants_all.number(self.askers.wants(whole)))
            self._shared_faults.append(self.askers.fault(whole))
            self._reading.append(list(self.askers.reading(whole)))
        return number

    def _number_voter(self, state: VoterState) -> int:
        number = self._voter_states.number(state)
        if number == len(self._heard):
            self._heard.append(state.out.heard)
            self._took.append(state.out.took)
            self._voter_faults.append(self._voters.fault(state) if self._minds_traces else "")
        assert number <= _MASK
        return number


def _unpacked(state: int) -> tuple[int, tuple[int, ...]]:
    a, b, c = state >> 2 * _WIDTH & _MASK, state >> _WIDTH & _MASK, state & _MASK
    return state >> 3 * _WIDTH, (a, b, c)


def _named(text: str, names: list[str]) -> str:
    for place, name in enumerate(names):
        text = text.replace(f"{{{place}}}", name)
    return text
