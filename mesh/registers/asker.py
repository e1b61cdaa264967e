"""One node's questions to voters: each asked until it is answered, refused, or out of time.

    create   read ── a majority knows the register ──► it exists
                 └── none of it ──► propose the value if there is none ──► chosen
    propose  one ballot after another, each above all that were heard of, until one is chosen;
             a lease that lives, or a change that has no business there, ends it at once
    read     at a majority, without a ballot; what only some of it hold is written back first, so that nobody
             is told of what may yet vanish. What is leased is its owner's to write: it is read again first

Who is outbid waits for a random while, twice as long each time, so that of two that outbid each other one
gets through. Another epoch starts the question over with a ballot of that epoch, once its roster is known.

A question that runs out of time after an accept was sent may have been granted all the same: the result
says so, and whoever asked asks again, or lets the lease lapse. Nothing is trusted from it.

The voters may include this node itself; that message goes the way of all others, without a network.

Source: our own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from mesh.core.ballot import NO_BALLOT, Ballot
from mesh.core.effects import Persist
from mesh.core.ids import NodeId
from mesh.core.timers import Timers
from mesh.registers.numbers import Numbers
from mesh.registers.proposal import Change, Chosen, Proposal, Reason, Refused
from mesh.registers.reading import Reading, Seen
from mesh.wire.register_messages import Answer, Held, Renewed, Request, Standing, Value
from mesh.wire.roster_messages import Roster

PAUSE_S: Final = 0.02
PAUSE_S_MAX: Final = 1.0
"""Between two ballots of one question: a random while of at most this, doubled each time."""

PATIENCE: Final = 6
"""So often a lease that only some hold is read again, before it is asked whether it lives."""

NOBODY: Final = 0
"""The session of questions that are nobody's as an owner: a lease of this node's own is in their way like any other."""

SET_ASIDE: Final = "ballot_numbers"
"""The name of the stored number up to which ballots may have been used."""


@dataclass(frozen=True, slots=True)
class Exists:
    """The register is there already, for good; this is what a majority reported last."""

    value: Value


@dataclass(frozen=True, slots=True)
class Late:
    """No answer in time. `may_be_chosen`: an accept was sent, and a majority may have it, or get it yet."""

    may_be_chosen: bool


Outcome: TypeAlias = Chosen | Refused | Exists | Seen | Late


@dataclass(frozen=True, slots=True)
class Done:
    """The end of a question."""

    tag: Hashable
    outcome: Outcome


Asked: TypeAlias = Persist | tuple[NodeId, Request] | Done
Seats: TypeAlias = Callable[[bytes], Roster]
"""Returns the epoch that is asked now, with the voters of a register in it."""


class _Kind(Enum):
    CREATE = "create"
    PROPOSE = "propose"
    READ = "read"


@dataclass(slots=True)
class _Question:
    tag: Hashable
    key: bytes
    kind: _Kind
    change: Change
    deadline: float
    reads: bool
    """The step that is under way, or next: reading, or proposing."""

    boot: int = NOBODY
    """As whose session voters are asked for promises."""

    under_way: Proposal | Reading | None = None
    above: int = 0
    tries: int = 0
    may_be_chosen: bool = False


def _keep(found: Value | None) -> Value | None:
    """Write back what is there. A lease that is found so has lapsed at a majority; it is nobody's any more."""
    return found


class Asker:
    """Asks the voters whatever this node wants to know or to have."""

    def __init__(
        self,
        *,
        boot: int,
        own_id: NodeId,
        domain: int,
        numbers: Numbers,
        seats: Seats,
        rng: random.Random,
    ) -> None:
        self._boot = boot
        self._own_id = own_id
        self._domain = domain
        self._numbers = numbers
        self._seats = seats
        self._rng = rng
        self._questions: dict[int, _Question] = {}
        self._by_ballot: dict[tuple[bytes, Ballot], int] = {}
        self._by_key: dict[bytes, list[int]] = {}
        self._timers: Timers[int] = Timers()
        self._last = (
            boot << 32
        )  # no answer to another session's question is taken for one to its own

    def __len__(self) -> int:
        return len(self._questions)

    def set_aside(self) -> list[Asked]:
        """Set numbers aside before the first question: a disk that has filled up by then stops none for a while."""
        _, limit = self._numbers.take()
        return [] if limit is None else [Persist({SET_ASIDE: limit})]

    def propose(
        self,
        now: float,
        key: bytes,
        change: Change,
        tag: Hashable,
        timeout_s: float,
        *,
        as_owner: bool = False,
        above: int = 0,
    ) -> list[Asked]:
        """Change a register: `change` gets what a majority reports, and returns what to write, or None.

        `as_owner`: this session's own lease is not in its way, and is given up by asking. Only who claims may.
        `above`: the number of a ballot that was heard of, which the first one tries to exceed.
        """
        deadline = now + timeout_s
        question = _Question(tag, key, _Kind.PROPOSE, change, deadline, reads=False)
        question.boot = self._boot if as_owner else NOBODY
        if self._numbers.can_follow(above):
            question.above = above
        return self._begin(now, question)

    def create(
        self,
        now: float,
        key: bytes,
        value: Value,
        tag: Hashable,
        timeout_s: float,
        *,
        is_new: bool = False,
    ) -> list[Asked]:
        """Create a register, unless it exists: then that is the outcome, and it stays as it is.

        `is_new`: nobody but the asker knows the key yet, so nobody is asked first whether it exists.
        """
        question = self._creation(now, key, value, tag, timeout_s)
        question.reads = not is_new
        return self._begin(now, question)

    def finish_creation(
        self,
        now: float,
        key: bytes,
        value: Value,
        ballot: Ballot,
        *,
        first: Value,
        tag: Hashable,
        timeout_s: float,
    ) -> list[Asked]:
        """Create a register that this node, its first voter, has accepted by itself as `first`, under `ballot` (Voter.create).

        The acceptance is stored before anything of this is sent; then it is handed in like any other's answer.
        Where others know more, it is asked as ever, with `value`: `first` is written under no other ballot.
        """
        question = self._creation(now, key, value, tag, timeout_s)
        question.reads = False
        roster = self._seats(key)
        proposal = Proposal(
            key=key, ballot=ballot, boot=NOBODY, voters=roster.voters, change=question.change
        )
        question.under_way = proposal
        number = self._add(question)
        self._by_ballot[key, ballot] = number
        out: list[Asked] = list(proposal.start_created(now, self._own_id, first))
        self._arm(number, question)
        return out + self._look(now, number, question)

    def read(self, now: float, key: bytes, tag: Hashable, timeout_s: float) -> list[Asked]:
        """Ask a majority what it holds."""
        deadline = now + timeout_s
        return self._begin(now, _Question(tag, key, _Kind.READ, _keep, deadline, reads=True))

    def handle(self, now: float, sender: NodeId, answer: Answer) -> list[Asked]:
        """Take a voter's answer; those that nobody waits for are dropped."""
        numbers: list[int | None]
        if isinstance(answer, Renewed):
            return []
        if isinstance(answer, Held):
            numbers = [answer.tag]
        elif answer.ballot == NO_BALLOT:
            numbers = [*self._by_key.get(answer.key, ())]
        else:
            numbers = [self._by_ballot.get((answer.key, answer.ballot))]
        out: list[Asked] = []
        for number in numbers:
            question = self._questions.get(number) if number is not None else None
            if number is None or question is None:
                continue
            if isinstance(question.under_way, Reading):
                question.under_way.handle(sender, answer)
            elif isinstance(question.under_way, Proposal):
                out += question.under_way.handle(now, sender, answer)
            out += self._look(now, number, question)
        return out

    def move(self, now: float) -> None:
        """Begin anew what is under way: another epoch is asked from now on, and who was asked may answer no more."""
        for number, question in self._questions.items():
            if question.under_way is not None:
                self._again(now, number, question, reads=question.kind is not _Kind.PROPOSE)

    def next_deadline(self) -> float | None:
        """Return when something is to be asked again, or is out of time."""
        return self._timers.next_deadline()

    def handle_timeout(self, now: float) -> list[Asked]:
        """Ask again, begin anew after a pause, and end what is out of time."""
        out: list[Asked] = []
        for number in self._timers.take_due(now):
            question = self._questions[number]
            if now >= question.deadline:
                out += self._end(number, Late(question.may_be_chosen))
            elif question.under_way is None:
                out += self._ask(now, number, question)
            else:
                out += question.under_way.handle_timeout(now)
                self._arm(number, question)
                out += self._look(now, number, question)
        return out

    # Inside.

    def _creation(
        self, now: float, key: bytes, value: Value, tag: Hashable, timeout_s: float
    ) -> _Question:
        def change(found: Value | None) -> Value | None:
            # Seen by some of a majority only: written again, it is there for good.
            return value if found is None else found

        return _Question(tag, key, _Kind.CREATE, change, now + timeout_s, reads=True)

    def _begin(self, now: float, question: _Question) -> list[Asked]:
        return self._ask(now, self._add(question), question)

    def _add(self, question: _Question) -> int:
        self._last += 1
        self._questions[self._last] = question
        self._by_key.setdefault(question.key, []).append(self._last)
        return self._last

    def _ask(self, now: float, number: int, question: _Question) -> list[Asked]:
        roster = self._seats(question.key)
        question.tries += 1
        out: list[Asked] = []
        if question.reads:
            reading = Reading(question.key, roster.epoch, roster.voters, number)
            question.under_way = reading
            out += reading.start(now)
        else:
            n, set_aside = self._numbers.take(question.above)
            if set_aside is not None:
                out.append(Persist({SET_ASIDE: set_aside}))
            ballot = Ballot(self._domain, roster.epoch, n, self._own_id)
            proposal = Proposal(
                key=question.key,
                ballot=ballot,
                boot=question.boot,
                voters=roster.voters,
                change=question.change,
            )
            question.under_way = proposal
            self._by_ballot[question.key, ballot] = number
            out += proposal.start(now)
        self._arm(number, question)
        return out

    def _look(self, now: float, number: int, question: _Question) -> list[Asked]:
        """See whether what is under way has come to an end, and what follows."""
        under_way = question.under_way
        if isinstance(under_way, Reading):
            if under_way.result is not None:
                return self._on_seen(now, number, question, under_way.result)
            if under_way.epoch is not None:
                return self._again(now, number, question, reads=True)
        elif isinstance(under_way, Proposal):
            question.may_be_chosen = question.may_be_chosen or under_way.is_accepting
            if under_way.result is not None:
                return self._on_result(now, number, question, under_way.result)
            self._arm(number, question)
        return []

    def _on_seen(self, now: float, number: int, question: _Question, seen: Seen) -> list[Asked]:
        value = seen.value
        # That it exists is sure; of an end that only some hold nobody is told before a majority does.
        is_final = value is not None and value.standing is Standing.FINAL
        exists = value is not None and seen.is_known and (seen.is_chosen or not is_final)
        if question.kind is _Kind.CREATE and exists and value is not None:
            return self._end(number, Exists(value))
        if question.kind is _Kind.READ and seen.is_chosen:
            return self._end(number, seen)
        is_leased = value is not None and value.standing is Standing.LEASED
        if is_leased and question.tries < PATIENCE:
            return self._again(now, number, question, reads=True)
        question.reads = False
        return self._ask(now, number, question)

    def _on_result(
        self, now: float, number: int, question: _Question, result: Chosen | Refused
    ) -> list[Asked]:
        if isinstance(result, Chosen):
            is_read = question.kind is _Kind.READ
            outcome = Seen(result.value, is_chosen=True, is_known=True) if is_read else result
            return self._end(number, outcome)
        if self._numbers.can_follow(result.above.n):
            question.above = max(question.above, result.above.n)
        was_first = isinstance(question.under_way, Proposal) and not question.under_way.ballot.n
        if result.reason in {Reason.OUTBID, Reason.WRONG_EPOCH} and not was_first:
            return self._again(now, number, question, reads=False)
        if question.kind is not _Kind.PROPOSE:  # it is somebody's: a majority may know it by now
            return self._again(now, number, question, reads=True)
        return self._end(number, result)

    def _again(self, now: float, number: int, question: _Question, *, reads: bool) -> list[Asked]:
        """Begin anew after a pause, with one of the two steps."""
        self._forget(question)
        question.reads = reads
        pause_s = min(PAUSE_S_MAX, PAUSE_S * 2.0 ** min(question.tries, 16))
        self._timers.set(number, min(question.deadline, now + pause_s * self._rng.random()))
        return []

    def _end(self, number: int, outcome: Outcome) -> list[Asked]:
        question = self._questions.pop(number)
        self._by_key[question.key].remove(number)
        if not self._by_key[question.key]:
            del self._by_key[question.key]
        self._timers.cancel(number)
        self._forget(question)
        return [Done(question.tag, outcome)]

    def _forget(self, question: _Question) -> None:
        if isinstance(question.under_way, Proposal):
            self._by_ballot.pop((question.key, question.under_way.ballot), None)
        question.under_way = None

    def _arm(self, number: int, question: _Question) -> None:
        again = None if question.under_way is None else question.under_way.next_deadline()
        deadline = question.deadline if again is None else min(question.deadline, again)
        self._timers.set(number, deadline)
