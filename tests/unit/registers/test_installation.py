"""From one epoch to the next: what a majority of the voters before held is held, and nothing is given away."""

from __future__ import annotations

import pytest

from mesh.core.ballot import NO_BALLOT, Ballot
from mesh.core.ids import NodeId
from mesh.registers.installation import Installation, merge
from mesh.registers.leases import local
from mesh.registers.record import NOTHING, Record
from mesh.registers.roster import (
    chosen_roster,
    founding,
    proposing,
    successor_of,
)
from mesh.registers.voter import StoreEpoch, Voter
from mesh.wire.register_messages import (
    Accept,
    Accepted,
    Leased,
    Outbid,
    Owner,
    Prepare,
    Promised,
    Renew,
    Renewed,
    Standing,
    Value,
    WrongEpoch,
)
from mesh.wire.roster_messages import (
    PAGE_MAX,
    Entry,
    Fetch,
    Page,
    Roster,
    Seal,
    Sealed,
    SealRequest,
)

A, B, C, D = (NodeId(number) for number in (1, 2, 3, 4))
OPEN = Value(Standing.OPEN, b"ready")
OWNED = Value(Standing.LEASED, b"runs", Owner(D, 1))
TIMES = local()


def ballot(n: int, epoch: int = 1, node_id: NodeId = D) -> Ballot:
    return Ballot(0, epoch, n, node_id)


def entry(n: int, *, seq: int = 0, promised: int | None = None, is_live: bool = False) -> Entry:
    value = OWNED if is_live else OPEN
    accepted = ballot(n) if n else NO_BALLOT
    return Entry(
        b"k",
        ballot(promised or n) if promised or n else NO_BALLOT,
        accepted,
        seq,
        value if n else None,
        is_live,
    )


def voter(own_id: NodeId, epoch: int = 1) -> Voter:
    return Voter(own_id, TIMES, epoch=epoch, now=0.0)


def holding(own_id: NodeId, value: Value = OPEN, n: int = 5) -> Voter:
    found = voter(own_id)
    found.handle(0.0, Accept(b"k", 1, ballot(n), 0, value))
    return found


def carried(now: float, installation: Installation, voters: dict[NodeId, Voter]) -> None:
    """Let every request reach the voters that are there, and every answer come back."""
    asked: list[tuple[NodeId, SealRequest]] = installation.start(now)
    while asked:
        to, request = asked.pop(0)
        for step in voters[to].seal(now, request) if to in voters else []:
            if isinstance(step, Sealed | Page):
                asked += installation.handle(to, step)


def test_voter_that_sealed_votes_no_more_in_that_epoch() -> None:
    found = holding(A)
    stored, sealed = found.seal(0.0, Seal(1))
    assert stored == StoreEpoch(0, 1)
    assert sealed == Sealed(1, 1)
    (answer,) = found.handle(0.0, Prepare(b"k", ballot(9), 1))
    assert answer == WrongEpoch(b"k", ballot(9), 0)
    (answer,) = found.handle(0.0, Accept(b"k", 1, ballot(9), 0, OPEN))
    assert isinstance(answer, WrongEpoch)
    assert found.create(0.0, b"other", 0, OPEN) is None
    (renewed,) = found.handle(0.0, Renew(1, 1, ((b"k", ballot(5)),)))
    assert isinstance(renewed, Renewed)
    assert not renewed.renewed


def test_seal_survives_a_restart() -> None:
    found = Voter(
        A,
        TIMES,
        epoch=0,
        sealed=1,
        now=0.0,
        records=[(b"k", Record(ballot(5), ballot(5), 0, OPEN))],
    )
    assert found.seal(0.0, Seal(1)) == [Sealed(1, 1)]
    (answer,) = found.handle(0.0, Prepare(b"k", ballot(9), 1))
    assert isinstance(answer, WrongEpoch)


def test_epoch_that_was_not_installed_is_not_sealed() -> None:
    assert voter(A, epoch=1).seal(0.0, Seal(2)) == []
    assert voter(A, epoch=0).seal(0.0, Seal(1)) == []


def test_what_is_not_sealed_is_not_told() -> None:
    assert holding(A).seal(0.0, Fetch(1, b"")) == []


def test_founder_hands_over_to_three_and_is_one_of_them() -> None:
    before, after = founding(A), Roster(2, (A, B, C))
    voters = {A: holding(A)}
    for own_id in (A, B, C):
        installation = Installation(before, after)
        carried(1.0, installation, voters)
        assert installation.result is not None
        target = voters.setdefault(own_id, voter(own_id, epoch=0))
        (stored,) = target.install(1.0, 2, installation.result)
        assert isinstance(stored, StoreEpoch)
        assert (stored.epoch, stored.sealed) == (2, 1)
        assert target.record(b"k").value == OPEN
        target.check_invariants()
        (answer,) = target.handle(1.0, Prepare(b"k", ballot(9), 1))
        assert isinstance(answer, WrongEpoch)
    for target in voters.values():
        _, answer = target.handle(1.0, Prepare(b"k", ballot(1, epoch=2), 1))
        assert isinstance(answer, Promised)


def test_live_lease_goes_along_in_full_and_its_owner_renews_under_its_token() -> None:
    source = holding(A, OWNED)
    installation = Installation(founding(A), Roster(2, (A, B, C)))
    carried(2.0, installation, {A: source})
    assert installation.result is not None
    target = voter(B, epoch=0)
    target.install(2.0, 2, installation.result)
    assert target.remaining_s(2.0, b"k") == pytest.approx(TIMES.voter_s + TIMES.grace_s)
    (answer,) = target.handle(2.0, Prepare(b"k", ballot(1, epoch=2, node_id=C), 1))
    assert isinstance(answer, Leased)
    (renewed,) = target.handle(2.1, Renew(2, 1, ((b"k", ballot(5)),)))
    assert isinstance(renewed, Renewed)
    assert renewed.renewed == (0,)


def test_lapsed_lease_is_not_revived_by_a_change_of_epoch() -> None:
    source = holding(A, OWNED)
    at = TIMES.voter_s + TIMES.grace_s
    installation = Installation(founding(A), Roster(2, (A, B, C)))
    carried(at, installation, {A: source})
    assert installation.result is not None
    target = voter(B, epoch=0)
    target.install(at, 2, installation.result)
    assert target.remaining_s(at, b"k") is None


def test_first_write_of_an_earlier_epoch_is_refused_in_the_next_and_later_ones_are_not() -> None:
    target = voter(B, epoch=0)
    target.install(0.0, 2, {b"k": (Record(ballot(5), ballot(5), 0, OWNED), True)})
    (answer,) = target.handle(0.0, Accept(b"k", 2, ballot(5), 0, OWNED))
    assert isinstance(answer, WrongEpoch)
    _, answer = target.handle(0.0, Accept(b"k", 2, ballot(5), 1, OWNED))
    assert answer == Accepted(b"k", 2, ballot(5), 1)


def test_epoch_is_installed_once_and_none_before_it() -> None:
    target = voter(B, epoch=0)
    assert target.install(0.0, 2, {})
    assert target.install(0.0, 2, {b"k": (Record(ballot(5), ballot(5), 0, OPEN), False)}) == []
    assert target.install(0.0, 1, {}) == []
    assert target.record(b"k") is NOTHING


def test_voter_that_installs_the_next_epoch_has_sealed_the_one_before() -> None:
    target = holding(A)
    target.install(0.0, 2, {b"k": (target.record(b"k"), False)})
    (answer,) = target.handle(0.0, Accept(b"k", 1, ballot(9), 0, OPEN))
    assert isinstance(answer, WrongEpoch)
    assert target.seal(0.0, Seal(1)) == [Sealed(1, 1)]


def test_what_this_voter_holds_itself_is_not_lost_by_installing_less() -> None:
    target = holding(A, n=7)
    target.handle(0.0, Prepare(b"k", ballot(8), 1))
    target.install(0.0, 2, {b"k": (Record(ballot(5), ballot(5), 0, OWNED), True)})
    record = target.record(b"k")
    assert (record.promised, record.ballot, record.value) == (ballot(8), ballot(7), OPEN)
    assert target.remaining_s(0.0, b"k") is None, "the live lease was of a lower ballot"


def test_highest_ballot_and_write_wins() -> None:
    entries = [(A, entry(3, seq=2)), (B, entry(4)), (C, entry(4, seq=1))]
    record, _ = merge(entries, 3, 3)[b"k"]
    assert (record.ballot, record.seq) == (ballot(4), 1)


def test_promise_of_a_minority_is_left_behind_when_all_were_asked() -> None:
    entries = [(A, entry(3, promised=9)), (B, entry(3)), (C, entry(3))]
    record, _ = merge(entries, 3, 3)[b"k"]
    assert record.promised == ballot(3)


def test_promise_that_the_voter_not_asked_may_share_is_carried() -> None:
    entries = [(A, entry(3, promised=9)), (B, entry(3))]
    record, _ = merge(entries, 2, 3)[b"k"]
    assert record.promised == ballot(9)


def test_promise_of_a_majority_is_carried_by_whoever_gave_less_as_well() -> None:
    entries = [(A, entry(3, promised=9)), (B, entry(3, promised=8)), (C, entry(3))]
    record, _ = merge(entries, 3, 3)[b"k"]
    assert record.promised == ballot(8)


def test_lease_lives_if_it_does_anywhere_under_the_ballot_that_won() -> None:
    entries = [(A, entry(3, is_live=True)), (B, entry(3))]
    entries[1] = (B, Entry(b"k", ballot(3), ballot(3), 0, OWNED, is_live=False))
    assert merge(entries, 2, 3)[b"k"][1]
    over = [(A, entry(3, is_live=True)), (B, entry(4))]
    assert not merge(over, 2, 3)[b"k"][1]


def test_many_records_come_page_by_page_and_a_lost_page_is_asked_for_again() -> None:
    source = voter(A)
    for number in range(2 * PAGE_MAX + 1):
        source.handle(0.0, Accept(b"%06d" % number, 1, ballot(5), 0, OPEN))
    installation = Installation(founding(A), Roster(2, (A, B, C)))
    asked: list[tuple[NodeId, SealRequest]] = installation.start(0.0)
    lost, now = 0, 0.0
    while installation.result is None:
        if not asked:
            due = installation.next_deadline()
            assert due is not None
            now = due
            asked = installation.handle_timeout(now)
        _, request = asked.pop(0)
        for step in source.seal(now, request):
            if isinstance(step, Page) and step.after and not lost:
                lost = 1
            elif isinstance(step, Sealed | Page):
                asked += installation.handle(A, step)
    assert lost
    assert len(installation.result) == 2 * PAGE_MAX + 1


def test_minority_that_sealed_is_not_enough() -> None:
    installation = Installation(Roster(1, (A, B, C)), Roster(2, (A, B, D)))
    carried(0.0, installation, {A: holding(A)})
    assert installation.result is None
    carried(0.0, installation, {B: holding(B)})
    assert installation.result is not None


def test_answers_of_strangers_and_other_epochs_count_for_nothing() -> None:
    installation = Installation(founding(A), Roster(2, (A, B, C)))
    installation.start(0.0)
    assert installation.handle(B, Sealed(1, 0)) == []
    assert installation.handle(A, Sealed(2, 0)) == []
    assert installation.handle(A, Page(1, b"", (), is_last=True)) == []
    assert installation.result is None


def test_successor_is_written_once() -> None:
    first = successor_of(founding(A), [C, A, B])
    assert first == Roster(2, (A, B, C))
    value = proposing(first)(None)
    assert value is not None
    assert value.standing is Standing.FINAL
    assert chosen_roster(value) == first
    assert proposing(successor_of(founding(A), [A, D, B]))(value) == value


def test_refused_in_the_old_epoch_is_outbid_by_nobody() -> None:
    target = voter(B, epoch=0)
    target.install(0.0, 2, {b"k": (Record(ballot(5), ballot(5), 0, OPEN), False)})
    _, promised = target.handle(0.0, Prepare(b"k", ballot(1, epoch=2), 1))
    assert isinstance(promised, Promised), (
        "a ballot of a later epoch is higher, whatever its number"
    )
    (answer,) = target.handle(0.0, Accept(b"k", 2, ballot(5), 1, OPEN))
    assert isinstance(answer, Outbid)
