"""One node's part in the roster: it learns who votes, takes its seat, and, voting, sees to the next roster.

    a voter of E ── enough members have stood long enough ──► proposes E + 1 in the register of E's voters
                 └─ somebody has begun a change ────────────► completes it
    chosen ──► whoever learns it asks the voters of E + 1 from now on, and, being one or a voter of E, tells
               them until each has said that it knows
    a voter of E + 1 ──► seals E, fetches, installs in one commit (installation.py), and votes

A mesh begins with its founder alone, and goes from one voter to three, once; every other change begins with
another choice of voters, and goes on from there in the same way.

Nothing is stored for this. The roster of epoch E is the record of `successor_key(E - 1)`, the founder's being
one that follows none; an installation carries those records along, so that whoever votes in E has it on its
disk. A session that ends at any point begins again with that, and asks others for what it has not.

Rosters travel by `Roster`, the one before first, for without it nothing can be sealed. It is believed of a voter
that was asked, and else a reason to ask (hearsay.py). `AskRoster` asks for what is later than the asker knows; one
that knows the latest says just that. So it is also the answer of a voter that was told. What is lost is sent again,
what comes twice changes nothing.

Source: our own.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Final

from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.errors import LocalProtocolError
from mesh.registers.admission import Admission, Member, Pace
from mesh.registers.asker import Outcome
from mesh.registers.handover import Adopt, Install, Move, Propose
from mesh.registers.hearsay import Hearsay
from mesh.registers.installation import RESEND_S_MAX, Installation
from mesh.registers.outbox import Message
from mesh.registers.proposal import RESEND_S, Chosen
from mesh.registers.record import Record
from mesh.registers.roster import (
    FIRST,
    FULL,
    chosen_roster,
    founding,
    proposing,
    successor_key,
    successor_of,
)
from mesh.registers.voter import Voter
from mesh.wire.register_messages import (
    Accept,
    Prepare,
    Read,
    Renew,
    Renewed,
    Value,
    WrongEpoch,
)
from mesh.wire.roster_messages import (
    AskRoster,
    Page,
    Roster,
    Seal,
    SealAnswer,
    Sealed,
)

PROPOSE_S: Final = 5.0
"""A proposal is given up after this, and made again after a pause."""

PAUSE_S: Final = 1.0


def held_rosters(own_id: NodeId, voter: Voter) -> list[Roster]:
    """Return the last two rosters that a voter's own records prove to be chosen, in order."""
    last = voter.epoch or voter.sealed
    values = (voter.record(successor_key(epoch)).value for epoch in (last - 2, last - 1))
    rosters = [chosen_roster(value) for value in values if value is not None]
    accepted = voter.record(successor_key(last)).value
    # What one of several has accepted may not be chosen; who votes alone is a majority.
    if accepted is not None and rosters and rosters[-1] == Roster(last, (own_id,)):
        rosters.append(chosen_roster(accepted))
    return rosters[-2:]


class Succession:
    """What one session of a node does for the roster. It looks at the voter and never changes it."""

    def __init__(
        self, own_id: NodeId, voter: Voter, pace: Pace, rng: random.Random, now: float
    ) -> None:
        """Begin with what the voter's disk proves.

        Raises:
            DecodeError: a roster's record is no roster.
        """
        self.roster: Roster | None = None
        """The latest that is known; None: none yet."""

        self._own_id = own_id
        self._voter = voter
        self._pace = pace
        self._rng = rng
        self._hearsay = Hearsay(own_id, rng)
        self._before: Roster | None = None
        self._admission = Admission(own_id, pace)
        self._installation: Installation | None = None
        self._installed = 0  # Install was handed out for this epoch
        self._is_proposing = False
        self._propose_after = now
        self._ask_at = now
        self._ask_s = RESEND_S
        self._untold: tuple[NodeId, ...] = ()
        self._tell_at = now
        self._tell_s = RESEND_S
        self._first: list[Move] = []
        for roster in held_rosters(own_id, voter):
            self._first += self._learn(now, roster)

    # What is told.

    def found(self, now: float) -> list[Move]:
        """Begin a mesh, with this node as the one voter of its first epoch.

        Raises:
            LocalProtocolError: this node knows of a mesh already; nothing changed.
        """
        if self.roster is not None or self._voter.epoch or self._voter.sealed:
            raise LocalProtocolError(
                f"a node that knows no roster is expected to found a mesh, found {self.roster}"
            )
        first = founding(self._own_id)
        ballot = Ballot(0, FIRST, 0, self._own_id)
        value = proposing(first)(None)
        self._installed = FIRST
        kept = {successor_key(FIRST - 1): (Record(ballot, ballot, 0, value), False)}
        return [Install(FIRST, kept), *self._learn(now, first)]

    def note_members(self, now: float, members: Iterable[Member]) -> list[Move]:
        """Take all members that are alive and unsuspected now; who is missing has to stand anew."""
        had_any = bool(self._admission.nodes)
        self._admission.note(now, members)
        if not had_any and self._lacks():
            self._ask_at = min(self._ask_at, now)
        return self.handle_timeout(now)

    def handle(self, now: float, sender: NodeId, message: Message) -> list[Move]:
        """Take any message of registers or rosters, after the voter has."""
        if isinstance(message, Sealed | Page):
            return self._on_seal_answer(sender, message)
        if isinstance(message, Roster):
            return self._on_roster(now, sender, message)
        if isinstance(message, AskRoster):
            return self._on_ask(now, sender, message.epoch)
        if isinstance(message, Seal):
            return self._ask_once(now, sender) if self._lacks() else []
        if isinstance(message, Prepare):
            return self._on_epoch(now, sender, message.ballot.epoch)
        if isinstance(message, Accept | Renew | Read | WrongEpoch | Renewed):
            return self._on_epoch(now, sender, message.epoch)
        return []

    def proposed(self, now: float, outcome: Outcome) -> list[Move]:
        """Take how a proposal ended.

        Raises:
            DecodeError: what is chosen is no roster.
        """
        self._is_proposing = False
        self._propose_after = now + PAUSE_S * self._rng.uniform(1, 2)
        return self._learn(now, chosen_roster(outcome.value)) if isinstance(outcome, Chosen) else []

    # Time.

    def handle_timeout(self, now: float) -> list[Move]:
        """Do what is due; too early, twice or late does no harm."""
        out, self._first = self._first, []
        if self._installation is not None:
            out += self._installation.handle_timeout(now)
        if self._untold and now >= self._tell_at:
            self._tell_s = min(2 * self._tell_s, RESEND_S_MAX)
            self._tell_at = now + self._tell_s
            for voter in self._untold:
                out += self._tell(voter, 0)
        due = self._propose_at()
        if due is not None and now >= due:
            out += self._propose(self._next_roster())
        if now >= self._ask_at:
            out += self._ask(now)
        return out

    def next_deadline(self) -> float | None:
        """Return when `handle_timeout` is due; it is from the start."""
        deadlines = [self._ask_at, self._propose_at()]
        if self._installation is not None:
            deadlines.append(self._installation.next_deadline())
        if self._untold:
            deadlines.append(self._tell_at)
        if self._first:
            deadlines.append(float("-inf"))
        return min(at for at in deadlines if at is not None)

    def check_invariants(self) -> None:
        """Raise AssertionError if what is known or under way contradicts itself."""
        roster = self.roster
        if self._before is not None:
            assert roster is not None
            assert self._before.epoch == roster.epoch - 1, roster
        if self._installation is not None:
            assert self._installation.roster == roster, roster
            assert self._installation.result is None
        assert roster is not None or not self._untold
        self._hearsay.check_invariants()

    # Learning.

    def _learn(self, now: float, roster: Roster) -> list[Move]:
        known = self.roster
        if known is not None and roster.epoch <= known.epoch:
            if self._before is not None or roster.epoch != known.epoch - 1:
                return []
            self._before = roster
            return self._install(now)
        follows = known is not None and known.epoch == roster.epoch - 1
        self._before = known if follows else None
        self.roster = roster
        self._installation = None
        is_concerned = self._own_id in {*roster.voters, *(self._before or roster).voters}
        others = tuple(voter for voter in roster.voters if voter != self._own_id)
        self._untold = others if is_concerned else ()
        self._tell_at, self._tell_s = now, RESEND_S
        self._ask_at, self._ask_s = now + self._pause_s(RESEND_S), RESEND_S
        return [Adopt(roster), *self._install(now)]

    def _on_roster(self, now: float, sender: NodeId, roster: Roster) -> list[Move]:
        out: list[Move] = []
        if self._is_news(roster):
            known = self._known_voters()
            is_voter = sender in known or sender in roster.voters
            if not is_voter or not self._hearsay.is_answer(now, sender):
                asked = self._hearsay.ask(now, sender, known, roster.voters)
                return [(node, AskRoster(self._asks_above())) for node in asked]
            out += self._learn(now, roster)
        if self.roster == roster and self._own_id in roster.voters and sender != self._own_id:
            self._untold = tuple(voter for voter in self._untold if voter != sender)
            out.append((sender, AskRoster(roster.epoch)))  # so that it need not tell again
        return out

    def _is_news(self, roster: Roster) -> bool:
        known = self.roster
        if known is None or roster.epoch > known.epoch:
            return True
        return self._before is None and roster.epoch == known.epoch - 1

    def _known_voters(self) -> list[NodeId]:
        """Return the voters of the rosters that are known, each once."""
        known = [roster for roster in (self._before, self.roster) if roster is not None]
        return list(dict.fromkeys(voter for roster in known for voter in roster.voters))

    def _on_ask(self, now: float, sender: NodeId, epoch: int) -> list[Move]:
        known = 0 if self.roster is None else self.roster.epoch
        if epoch > known:
            return self._ask_once(now, self._hearsay.better(now, sender, self._known_voters()))
        if epoch == known:
            self._untold = tuple(voter for voter in self._untold if voter != sender)
        return self._tell(sender, epoch)

    def _on_epoch(self, now: float, sender: NodeId, epoch: int) -> list[Move]:
        """See what follows from the epoch in which a node asks, or votes; 0: it votes in none."""
        known = 0 if self.roster is None else self.roster.epoch
        if epoch > known or epoch == 0:
            return self._ask_once(now, self._hearsay.better(now, sender, self._known_voters()))
        is_over = epoch < known and epoch != self._voter.epoch
        return self._tell(sender, epoch) if is_over and self._hearsay.is_new(now, sender) else []

    def _lacks(self) -> bool:
        """Say whether this node is in want of a roster, and does not only wonder whether there is another."""
        roster, voter = self.roster, self._voter
        if roster is None:
            return True
        if self._before is None and self._is_to_install():
            return roster.epoch > FIRST
        return voter.epoch == 0 and voter.sealed >= roster.epoch

    def _ask(self, now: float) -> list[Move]:
        """Ask one node, whoever it is; and complete what somebody began and may have left."""
        if self._lacks():
            self._ask_at = now + self._pause_s(self._ask_s)
            self._ask_s = min(2 * self._ask_s, RESEND_S_MAX)
        else:
            self._ask_at = now + self._pause_s(self._pace.ask_s)
        out: list[Move] = []
        if self._has_begun() and not self._is_proposing and now >= self._propose_after:
            out += self._propose(None)
        asked = [
            node
            for node in dict.fromkeys([*self._admission.nodes, *self._known_voters()])
            if node != self._own_id
        ]
        if asked:
            out.append(self._question(now, self._rng.choice(asked)))
        return out

    def _question(self, now: float, node: NodeId) -> Move:
        """Return the question to one node; if it is a voter's, its answer counts."""
        if node in self._known_voters():
            self._hearsay.note(now, node)
        return node, AskRoster(self._asks_above())

    def _asks_above(self) -> int:
        if self.roster is None:
            return 0
        is_half = self._before is None and self._is_to_install()
        return self.roster.epoch - 2 if is_half and self.roster.epoch > FIRST else self.roster.epoch

    def _ask_once(self, now: float, node: NodeId) -> list[Move]:
        if node == self._own_id or not self._hearsay.is_new(now, node):
            return []
        return [self._question(now, node)]

    def _tell(self, node: NodeId, above: int) -> list[Move]:
        if node == self._own_id:
            return []
        known = (self._before, self.roster)
        return [(node, one) for one in known if one is not None and one.epoch > above]

    def _pause_s(self, seconds: float) -> float:
        return seconds * self._rng.uniform(0.75, 1.25)

    # Installing.

    def _is_to_install(self) -> bool:
        roster, voter = self.roster, self._voter
        if roster is None or self._own_id not in roster.voters:
            return False
        return max(voter.epoch, voter.sealed, self._installed) < roster.epoch

    def _install(self, now: float) -> list[Move]:
        if self._before is None or self.roster is None or not self._is_to_install():
            return []
        self._installation = Installation(self._before, self.roster)
        return [*self._installation.start(now)]

    def _on_seal_answer(self, sender: NodeId, answer: SealAnswer) -> list[Move]:
        installation = self._installation
        if installation is None:
            return []
        out: list[Move] = [*installation.handle(sender, answer)]
        if installation.result is not None:
            self._installation = None
            self._installed = installation.roster.epoch
            out.append(Install(installation.roster.epoch, installation.result))
        return out

    # Proposing.

    def _is_voting(self) -> bool:
        return self.roster is not None and self._voter.epoch == self.roster.epoch

    def _has_begun(self) -> bool:
        """Say whether this voter has accepted a successor of its epoch, which it does not know to be chosen."""
        key = successor_key(self._voter.epoch)
        return self._is_voting() and self._voter.record(key).value is not None

    def _missing(self) -> int:
        """Return how many voters are to be added: from one to three, and no other change."""
        alone = self.roster is not None and self.roster.voters == (self._own_id,)
        return FULL - 1 if alone and self._is_voting() else 0

    def _propose_at(self) -> float | None:
        missing = self._missing()
        stand_at = self._admission.due_at(missing) if missing else None
        if self._is_proposing or stand_at is None:
            return None
        return max(self._propose_after, stand_at)

    def _next_roster(self) -> Roster:
        assert self.roster is not None
        added = self._admission.longest(self._missing())
        return successor_of(self.roster, [*self.roster.voters, *added])

    def _propose(self, successor: Roster | None) -> list[Move]:
        """Propose a successor, or complete the one that was begun."""
        self._is_proposing = True
        change = _found if successor is None else proposing(successor)
        return [Propose(successor_key(self._voter.epoch), change, PROPOSE_S)]


def _found(found: Value | None) -> Value | None:
    return found
