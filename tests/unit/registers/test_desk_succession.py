"""A desk and its succession: what is heard is handed on, and what comes back is done in the desk's own order."""

from collections.abc import Iterable

from mesh.core.ids import NodeId
from mesh.registers.asker import Outcome
from mesh.registers.handover import Adopt, Install, Move, Propose
from mesh.registers.installation import Installation
from mesh.registers.outbox import Commit, Message, Post
from mesh.registers.proposal import Chosen
from mesh.registers.record import Record
from mesh.registers.roster import chosen_roster, proposing, successor_key
from mesh.wire.register_messages import Accepted
from mesh.wire.roster_messages import AskRoster, Entry, Fetch, Page, Roster, Seal, Sealed
from tests.unit.registers.asked import EPOCH, KEY, OPEN, TIMES, VOTERS, A, B, Q, ballot
from tests.unit.registers.desks import ROSTER, desk, posts, three_desks


class Taking:
    """A succession that takes one epoch over, adopts its roster then, and asks the next to hold that."""

    def __init__(self, before: Roster, roster: Roster) -> None:
        self._installation = Installation(before, roster)
        self._has_begun = False
        self.heard: list[Message] = []
        self.outcomes: list[Outcome] = []

    def handle(self, now: float, sender: NodeId, message: Message) -> Iterable[Move]:
        self.heard.append(message)
        if not isinstance(message, Sealed | Page):
            return []
        before = self._installation.result
        moves: list[Move] = [*self._installation.handle(sender, message)]
        result, roster = self._installation.result, self._installation.roster
        if before is None and result is not None:
            moves += [Install(roster.epoch, result), Adopt(roster), (B, roster)]
            moves += [
                Propose(successor_key(roster.epoch), proposing(Roster(roster.epoch + 1, (Q,))), 5)
            ]
        return moves

    def proposed(self, now: float, outcome: Outcome) -> Iterable[Move]:
        self.outcomes.append(outcome)
        return []

    def handle_timeout(self, now: float) -> Iterable[Move]:
        if self._has_begun:
            return self._installation.handle_timeout(now)
        self._has_begun = True
        return self._installation.start(now)

    def next_deadline(self) -> float | None:
        return self._installation.next_deadline() if self._has_begun else 0.0

    def check_invariants(self) -> None:
        assert len(self.outcomes) <= 1


def test_a_new_voter_takes_over_what_the_epoch_before_held() -> None:
    desks = three_desks()
    granted = desks.claim(A, KEY, OPEN)
    desks.by_node[A].hold(0.0, KEY, granted)
    later = Roster(EPOCH + 1, (Q,))
    taking = Taking(ROSTER, later)
    desks.by_node[Q] = desk(Q, ROSTER, votes_in=0, succession=taking)
    new = desks.by_node[Q]
    assert new.next_deadline() == 0.0
    assert desks.wait(0.0)[Q] == []  # what it asked for its succession is said to that alone
    (outcome,) = taking.outcomes
    assert isinstance(outcome, Chosen)
    assert chosen_roster(outcome.value) == Roster(later.epoch + 1, (Q,))
    assert any(isinstance(message, Accepted) for message in taking.heard)
    assert new.roster == later
    assert (new.voter.epoch, new.voter.sealed) == (EPOCH + 1, EPOCH)
    assert new.voter.record(KEY).value == granted.value
    assert new.voter.remaining_s(0.0, KEY) is not None
    assert [desks.by_node[node].voter.epoch for node in VOTERS] == [0, 0, 0]
    desks.by_node[A].adopt(0.0, later)
    assert desks.wait(TIMES.owner_s + TIMES.doubt_s)[A] == []  # its lease goes on


def test_what_is_installed_is_stored_in_one_commit_with_its_epoch() -> None:
    before = Roster(EPOCH, (B,))
    new = desk(Q, before, votes_in=0, succession=Taking(before, Roster(EPOCH + 1, (Q,))))
    new.handle_timeout(0.0)
    assert new.take() == [Post(B, (Seal(EPOCH),))]
    new.handle(0.0, B, Sealed(EPOCH, 1))
    assert new.take() == [Post(B, (Fetch(EPOCH, b""),))]
    entry = Entry(KEY, ballot(7), ballot(5), 0, OPEN, is_live=False)
    new.handle(0.0, B, Page(EPOCH, b"", (entry,), is_last=True))
    (commit,) = new.take()
    record = Record(ballot(7), ballot(5), 0, OPEN)
    assert isinstance(commit, Commit)
    assert (commit.records, commit.epoch) == (((KEY, record),), (EPOCH + 1, EPOCH))
    new.committed(0.0, commit.number)
    assert posts(new.take()) == {B: (Roster(EPOCH + 1, (Q,)),)}  # not before it is durable


def test_what_a_succession_wants_is_carried_out_whenever_it_says_so() -> None:
    one = desk(A, None)
    one.carry_out(0.0, [Adopt(ROSTER), (B, AskRoster(EPOCH)), (A, Seal(EPOCH))])
    assert one.roster == ROSTER
    assert one.take() == [Commit(1, (), {}, (0, EPOCH)), Post(B, (AskRoster(EPOCH),))]


def test_without_a_succession_what_is_heard_of_rosters_is_dropped() -> None:
    one = desk(A)
    page = Page(EPOCH, b"", (), is_last=True)
    for message in (Sealed(EPOCH, 1), page, Roster(9, (B,)), AskRoster(EPOCH)):
        one.handle(0.0, B, message)
    assert one.take() == []
    assert one.roster == ROSTER
