"""One node's whole part in registers: its voter, what it asks, what it owns; in one order, in batches.

    create, propose, read ──► asker ────┐                      ┌──► Commit   to the store, one at each take
    hold, write, drop ──────► owning ───┼──► outbox ──► take ──┼──► Post     to a node, all at once
    messages of others ─────► voter ────┘       ▲              └──► Done, Held, Written, Fenced, Changed
    committed ──────────────────────────────────┘
    all that is heard ► succession, which says what to ask, to install, to adopt
    all that is stored, and what voters say of it ► keeping, which says what to ship, to take, to forget

The rule of all of it: what a voter answers, and what is asked under a number that was just set aside, leaves
only when everything that was to be stored before it is durable. Renewals, and what is asked under numbers
that are durable, rest on nothing stored and leave at once; so do changes of leases, which are about time.

A voter's messages to itself take the same way, without a network.

Composition only: what is decided is decided in the machines. Pure: `now` is this node's own clock, in seconds,
which runs while the host sleeps.

Source: our own.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable
from enum import Enum

from mesh.core.ballot import first_ballot
from mesh.core.effects import Persist
from mesh.core.ids import NodeId
from mesh.registers.asker import NOBODY, Asked, Asker, Done
from mesh.registers.handover import Adopt, Install, Move, Propose, SetAside, Succession
from mesh.registers.holder import Holder
from mesh.registers.keeping import Keeping
from mesh.registers.leases import LeaseTimes
from mesh.registers.numbers import Numbers
from mesh.registers.outbox import Message, Outbox, Output
from mesh.registers.owning import Owning
from mesh.registers.proposal import Change
from mesh.registers.record import NOTHING, Record
from mesh.registers.roster import ROSTERS
from mesh.registers.seating import Seating
from mesh.registers.upkeep import Fill, UpkeepMove
from mesh.registers.voter import Forget, Step, Store, StoreEpoch, Voter
from mesh.wire.register_messages import (
    Accept,
    Accepted,
    Outbid,
    Owner,
    Prepare,
    Read,
    Renew,
    Renewed,
    Request,
    Value,
)
from mesh.wire.repair_messages import RepairMessage
from mesh.wire.roster_messages import AskRoster, Fetch, Page, Roster, Seal, Sealed


class _Tag(Enum):
    ROSTER = "roster"
    """Of the succession's questions, whose ends are said to it alone."""

    KEEPING = "keeping"
    """Of what is written back; nobody asks how that ends."""


class Desk(Holder):
    """All that one session of a node has to do with registers. `take` after every call."""

    def __init__(
        self,
        *,
        own_id: NodeId,
        boot: int,
        domain: int,
        times: LeaseTimes,
        numbers: Numbers,
        rng: random.Random,
        voter: Voter,
        roster: Roster | None,
    ) -> None:
        """Begin a session.

        Args:
            own_id: this node.
            boot: this session's number; no other session of this node has it.
            domain: of all ballots of this mesh now.
            times: of all leases of this mesh.
            numbers: after those that earlier sessions have set aside durably.
            rng: for pauses and jitter.
            voter: made of what the store held.
            roster: the latest that is known; None: none yet.
        """
        seating = Seating(own_id, roster)
        outbox = Outbox(own_id, self._deliver_own)
        super().__init__(seating, Owning(Owner(own_id, boot), times, rng, seating, outbox))
        self.voter = voter
        """Its records and leases may be looked at; only the desk changes them."""

        self.has_room = True
        """Whether the store takes on more; without room this node's own voter takes no new register, and no claim."""

        self._own_id = own_id
        self._domain = domain
        self._now = float("-inf")
        self._outbox = outbox
        self.succession: Succession | None = None
        """Hears everything, and has its moves carried out; None: nobody sees to rosters. Set before the first call."""

        self.keeping: Keeping | None = None
        """Compares what is kept with other voters, and purges; None: nobody does. Set before the first call."""

        self._asker = Asker(
            boot=boot,
            own_id=own_id,
            domain=domain,
            numbers=numbers,
            seats=seating.seats,
            rng=rng,
        )

    # Asking. Each ends as one Done with its tag.

    def create(
        self,
        now: float,
        key: bytes,
        value: Value,
        tag: Hashable,
        timeout_s: float,
        *,
        first: Value | None = None,
        is_new: bool = False,
    ) -> None:
        """Create a register, unless it exists: Chosen, or Exists with what a majority holds.

        The first voter of a register that it knows nothing of accepts it by itself, stores that, and asks the
        others to: one round. All others ask first, unless the key is new (`is_new`): drawn by the asker just now.

        `first` is what a first voter writes so in place of `value`: it may name an owner (Record.is_named), for a new
        key alone. Of a register that was purged the same ballot, and so the same token, may have been granted before.
        """
        steps: list[Step] | None = None
        epoch, first = self._seating.seats(key).epoch, first or value
        if self.has_room and self._seating.place(key) == 0 and epoch == self.voter.epoch:
            steps = self.voter.create(now, key, self._domain, first)
        if steps is None:
            asked = self._asker.create(now, key, value, tag, timeout_s, is_new=is_new)
            self._ask(now, asked)
        else:
            self._answer(now, self._own_id, steps)
            ballot = first_ballot(self._domain, epoch, self._own_id)
            asked = self._asker.finish_creation(
                now, key, value, ballot, first=first, tag=tag, timeout_s=timeout_s
            )
            self._ask(now, asked, waits=True)
        self._finish(now)

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
    ) -> None:
        """Change a register: `change` gets what a majority reports, and returns what to write, or None.

        It may be called for each ballot that is tried, so it may not do anything by itself. Ends as Chosen, as
        Refused where another's lease lives or `change` returned None, or as Late.

        `as_owner` is for claims: a lease that this session has, perhaps without knowing, is not in its way, and
        is given up. Any other question leaves it alone, as it does everybody's. `above` is the number of a ballot
        that was heard of: a first one below it would be outbid.
        """
        asked = self._asker.propose(
            now, key, change, tag, timeout_s, as_owner=as_owner, above=above
        )
        self._ask(now, asked)
        self._finish(now)

    def read(self, now: float, key: bytes, tag: Hashable, timeout_s: float) -> None:
        """Ask a majority what it holds: Seen, or Late."""
        self._ask(now, self._asker.read(now, key, tag, timeout_s))
        self._finish(now)

    # Events.

    def handle(self, now: float, sender: NodeId, message: Message) -> None:
        """Take one message of registers or rosters from a node."""
        self._deliver(now, sender, message)
        self._finish(now)

    def committed(self, now: float, number: int) -> None:
        """Take that the store holds a Commit, and all before it.

        Raises:
            LocalProtocolError: no such Commit was taken; nothing changed.
        """
        self._outbox.committed(number)
        self._finish(now)

    def end(self, now: float, node_id: NodeId, boot: int) -> None:
        """Take the proof that a session of a node, and those before, run nothing any more: their leases are over."""
        self.voter.end(node_id, boot)
        self._finish(now)

    def adopt(self, now: float, roster: Roster) -> None:
        """Take a later roster: from now on its voters are asked. One that is not later changes nothing."""
        self._adopt(now, roster)
        self._finish(now)

    def handle_timeout(self, now: float) -> None:
        """Do what is due; too early, twice or late does no harm."""
        self._owning.handle_timeout(now)
        self._ask(now, self._asker.handle_timeout(now))
        if self.succession is not None:
            self._carry_out(now, self.succession.handle_timeout(now))
        if self.keeping is not None:
            self._keep(now, self.keeping.handle_timeout(now))
        self._finish(now)

    def next_deadline(self) -> float | None:
        """Return when `handle_timeout` is due, unless something happens before."""
        others = (self.succession, self.keeping)
        deadlines = [self._asker.next_deadline(), self._owning.next_deadline()]
        deadlines += [one.next_deadline() for one in others if one is not None]
        return min((at for at in deadlines if at is not None), default=None)

    def carry_out(self, now: float, moves: Iterable[Move]) -> None:
        """Do what the succession wants to be done, where it was told of something by another way than through here."""
        self._carry_out(now, moves)
        self._finish(now)

    def take(self) -> list[Output]:
        """Return everything since the last take: what to store, then what to send, then what happened, each in order."""
        return self._outbox.take()

    def check_invariants(self) -> None:
        """Raise AssertionError if one of the machines contradicts itself, or a message is stuck."""
        self.voter.check_invariants()
        self._outbox.check_invariants()
        self._owning.check_invariants(self._now)
        if self.succession is not None:
            self.succession.check_invariants()
        if self.keeping is not None:
            self.keeping.check_invariants()

    # Inside.

    def _finish(self, now: float) -> None:
        self._now = max(self._now, now)
        self._outbox.flush(now)

    def _deliver_own(self, now: float, message: Message) -> None:
        if self.has_room or not self._takes_room(message):
            self._deliver(now, self._own_id, message)

    def _takes_room(self, message: Message) -> bool:
        """Say whether a message of this node's to its own voter takes on something new: a register, or a claim.

        Voters to be are asked all the same: they are what may help.
        """
        if not isinstance(message, Prepare | Accept) or message.key.startswith(ROSTERS):
            return False
        if isinstance(message, Accept):
            return self.voter.record(message.key).promised < message.ballot
        return message.boot != NOBODY or not self.voter.holds(message.key)

    def _deliver(self, now: float, sender: NodeId, message: Message) -> None:
        if isinstance(message, Prepare | Accept | Renew | Read):
            self._answer(now, sender, self.voter.handle(now, message))
        elif isinstance(message, Seal | Fetch):
            self._answer(now, sender, self.voter.seal(now, message))
        elif isinstance(message, Sealed | Page | Roster | AskRoster):
            pass  # the succession's own
        elif isinstance(message, RepairMessage):
            if self.keeping is not None:
                self._keep(now, self.keeping.handle(now, sender, message))
        elif isinstance(message, Renewed):
            self._owning.handle(now, sender, message)
        else:
            if isinstance(message, Accepted | Outbid):
                self._owning.handle(now, sender, message)
            self._ask(now, self._asker.handle(now, sender, message))
        if self.succession is not None:
            self._carry_out(now, self.succession.handle(now, sender, message))

    def _carry_out(self, now: float, moves: Iterable[Move]) -> None:
        for move in moves:
            if isinstance(move, Install):
                self._store(now, self.voter.install(now, move.epoch, move.records))
            elif isinstance(move, SetAside):
                self._ask(now, self._asker.set_aside())
            elif isinstance(move, Adopt):
                self._adopt(now, move.roster)
            elif isinstance(move, Propose):
                self._ask(
                    now,
                    self._asker.propose(now, move.key, move.change, _Tag.ROSTER, move.timeout_s),
                )
            else:
                to, message = move
                # What it tells of an epoch may rest on what was just installed.
                self._outbox.send(to, message, waits=True)

    def _keep(self, now: float, moves: Iterable[UpkeepMove]) -> None:
        for move in moves:
            if isinstance(move, Fill):
                self._store(now, self.voter.fill(*move.entry))
            elif isinstance(move, Forget):
                self._store(now, self.voter.purge(move.keys, move.n))
            elif isinstance(move, Propose):
                asked = self._asker.propose(
                    now, move.key, move.change, _Tag.KEEPING, move.timeout_s
                )
                self._ask(now, asked)
            else:
                to, message = move
                self._outbox.send(to, message, waits=True)

    def _adopt(self, now: float, roster: Roster) -> None:
        if self._seating.adopt(roster):
            self._owning.move(now, roster)
            self._asker.move(now)
            if self.keeping is not None:
                self.keeping.adopt(now, roster)

    def _answer(self, now: float, sender: NodeId, steps: list[Step]) -> None:
        for answer in self._store(now, steps):
            self._outbox.send(sender, answer, waits=True)

    def _store(self, now: float, steps: Iterable[Step]) -> list[Message]:
        """See that what a voter wants to be stored is; return its answers, which wait for that."""
        answers: list[Message] = []
        changed: list[tuple[bytes, Record]] = []
        for step in steps:
            if isinstance(step, Store):
                self._outbox.store(step.key, step.record)
                changed.append((step.key, step.record))
            elif isinstance(step, StoreEpoch):
                self._outbox.store_epoch(step)
                changed += [*((key, NOTHING) for key in step.forget), *step.records]
            elif isinstance(step, Forget):
                self._outbox.forget(step)
                changed += [(key, NOTHING) for key in step.keys]
            else:
                answers.append(step)
        if self.keeping is not None:
            self.keeping.note(now, changed)
        return answers

    def _ask(self, now: float, asked: Iterable[Asked], *, waits: bool = False) -> None:
        for one in asked:
            if isinstance(one, Persist):
                self._outbox.set_aside(one.values)
            elif isinstance(one, Done):
                if not isinstance(one.tag, _Tag):
                    self._outbox.say(one)
                elif one.tag is _Tag.ROSTER and self.succession is not None:
                    self._carry_out(now, self.succession.proposed(now, one.outcome))
            else:
                to, request = one
                self._outbox.send(to, request, waits=waits or self._rests_on_a_commit(request))

    def _rests_on_a_commit(self, request: Request) -> bool:
        """Say whether a request tells of what may not be durable yet: a ballot's number, or this voter's own creation."""
        if isinstance(request, Prepare):
            return self._outbox.is_setting_aside
        return isinstance(request, Accept) and request.ballot.n == 0
