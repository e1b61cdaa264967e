"""What an observer makes of the end of a lifeline, and of what others have seen."""

from __future__ import annotations

import errno

import pytest

from mesh.core.address import Address
from mesh.core.effects import Emit, HangUp, KeepOpen, TryLine
from mesh.core.requests import Ask, Outgoing
from mesh.errors import TransportError
from mesh.membership.evidence import AGAIN_S, SPARE_S
from mesh.membership.observers import observers_of
from mesh.wire.packet import Packet
from mesh.wire.records import Cause, State
from mesh.wire.swim_messages import (
    Alive,
    Dead,
    Left,
    Lifeline,
    LifelineKept,
    Ping,
    Seen,
    Suspect,
)
from tests.unit.membership.observer import (
    BOTH,
    LINE,
    REFUSAL,
    Observer,
    ack,
    asks,
    pings,
    suspicions,
)
from tests.unit.membership.pump import address, card_bytes, node_id


def test_end_of_a_lifeline_is_asked_about_over_tcp_and_accuses_nobody_yet() -> None:
    observer = Observer()
    (ask,) = observer.hang_up()
    assert ask.to == address(2)
    assert isinstance(ask.message, Ping)
    assert observer.state[0] is State.ALIVE


def test_lifeline_that_was_opened_anew_replaces_the_one_before_whose_end_may_never_be_heard() -> (
    None
):
    observer = Observer()
    again = Address("10.0.0.99", 40_000)
    reply = observer.swim.lines.evidence.on_lifeline(node_id(2), again, Lifeline(1))
    assert reply == LifelineKept()
    done = [o for o in observer.swim.handle_timeout(0.0) if isinstance(o, KeepOpen | HangUp)]
    assert done == [HangUp(LINE), KeepOpen(again)]
    assert observer.swim.lines.evidence.held == 1
    assert observer.hang_up(source=LINE) == []
    assert len(observer.hang_up(source=again)) == 1


def test_refusal_after_it_is_told_to_everybody_and_one_more_vantage_point_makes_it_a_crash() -> (
    None
):
    observer = Observer()
    (ask,) = observer.hang_up()
    outputs = observer.answers(1.0, ask, REFUSAL)
    assert observer.state[0] is State.SUSPECT
    assert suspicions(outputs) == {Suspect(node_id(2), 1, 0, node_id(1), BOTH)}
    outputs = observer.hears(1.1, 3, Suspect(node_id(2), 1, 0, node_id(3), int(Seen.REFUSED)))
    assert observer.state == (State.DEAD, Cause.CRASHED)
    (event,) = [output.event for output in outputs if isinstance(output, Emit)]
    assert set(event.evidence) == {
        "its lifeline ended, its host refuses connections, as host-1 saw",
        "its host refuses connections, as host-3 saw",
    }


def test_the_only_other_member_needs_nobody_to_agree() -> None:
    observer = Observer(size=2)
    (ask,) = observer.hang_up()
    observer.answers(1.0, ask, REFUSAL)
    assert observer.state == (State.DEAD, Cause.CRASHED)


def test_member_that_answers_is_suspected_by_nobody() -> None:
    observer = Observer(size=2)
    (ask,) = observer.hang_up()
    observer.answers(1.0, ask, ack())
    assert observer.state[0] is State.ALIVE
    observer.hears(1.2, 2, Alive(card_bytes(2)))
    assert observer.state[0] is State.ALIVE


@pytest.mark.parametrize("reply", [ack(boot=2), ack(number=3)])
def test_answer_of_another_session_or_member_says_nothing_for_this_one(reply: Packet) -> None:
    observer = Observer(size=3)
    (ask,) = observer.hang_up()
    observer.answers(1.0, ask, reply)
    assert observer.state[0] is State.ALIVE


def test_silence_after_it_is_a_suspicion_like_any_other() -> None:
    observer = Observer(size=2)
    (ask,) = observer.hang_up()
    outputs = observer.answers(2.0, ask, TransportError("no answer in time", errno.ETIMEDOUT))
    assert observer.state[0] is State.SUSPECT
    (event,) = [output.event for output in outputs if isinstance(output, Emit)]
    assert event.evidence == ("its lifeline ended", "no answer over TCP")


def test_connection_that_broke_is_asked_again_and_not_for_ever() -> None:
    observer = Observer(size=2)
    (ask,) = observer.hang_up()
    for _ in range(2):
        outputs = observer.answers(1.0, ask, TransportError("reset", errno.ECONNRESET))
        (ask,) = [output for output in outputs if isinstance(output, Ask)]
        assert observer.state[0] is State.ALIVE
    outputs = observer.answers(1.0, ask, TransportError("reset", errno.ECONNRESET))
    assert not [output for output in outputs if isinstance(output, Ask)]
    assert observer.state[0] is State.SUSPECT


@pytest.mark.parametrize("number", [None, errno.EMFILE, errno.ENOBUFS])
def test_member_that_could_not_be_asked_is_not_suspected_for_it(number: int | None) -> None:
    observer = Observer(size=2)
    (ask,) = observer.hang_up()
    observer.answers(1.0, ask, TransportError("was not asked", number))
    assert observer.state[0] is State.ALIVE


def test_refusals_alone_are_no_crash() -> None:
    observer = Observer(size=5)
    for number in (3, 4, 5):
        observer.hears(1.0, number, Suspect(node_id(2), 1, 0, node_id(number), int(Seen.REFUSED)))
    assert observer.state[0] is State.SUSPECT


def test_one_witness_however_often_is_one_vantage_point() -> None:
    observer = Observer(size=5)
    for _ in range(5):
        observer.hears(1.0, 3, Suspect(node_id(2), 1, 0, node_id(3), BOTH))
    assert observer.state[0] is State.SUSPECT


def test_member_that_does_not_observe_the_subject_believes_two_witnesses() -> None:
    observer = Observer(size=5)
    observer.hears(1.0, 3, Suspect(node_id(4), 1, 0, node_id(3), BOTH))
    observer.hears(1.0, 5, Suspect(node_id(4), 1, 0, node_id(5), BOTH))
    assert observer.state_of(4) == (State.DEAD, Cause.CRASHED)


def test_who_keeps_the_lifeline_believes_two_witnesses_only_if_refused_itself() -> None:
    observer = Observer(size=5)
    outputs = observer.hears(1.0, 3, Suspect(node_id(2), 1, 0, node_id(3), BOTH))
    outputs += observer.hears(1.0, 4, Suspect(node_id(2), 1, 0, node_id(4), BOTH))
    assert observer.state[0] is State.SUSPECT
    (ask,) = asks(outputs)
    assert TryLine(LINE) in outputs
    observer.answers(1.1, ask, REFUSAL)
    assert observer.state == (State.DEAD, Cause.CRASHED)


def test_verdict_on_whose_lifeline_is_kept_is_a_suspicion_until_it_was_looked_into() -> None:
    observer = Observer(size=5)
    outputs = observer.hears(1.0, 3, Dead(node_id(2), 1, 0, Cause.CRASHED, node_id(3)))
    assert observer.state[0] is State.SUSPECT
    assert pings(outputs) == [address(2)]
    outputs = observer.refused(1.1)
    assert observer.state == (State.DEAD, Cause.CRASHED)
    events = [output.event for output in outputs if isinstance(output, Emit)]
    assert [event.evidence for event in events if event.state == "dead"] == [
        ("its port refuses datagrams, as host-1 saw", "declared dead by host-3")
    ]


def test_verdict_on_whose_lifeline_is_kept_and_who_answers_is_not_believed() -> None:
    observer = Observer(size=5)
    outputs = observer.hears(1.0, 3, Dead(node_id(2), 1, 0, Cause.CRASHED, node_id(3)))
    (ask,) = asks(outputs)
    observer.answers(1.1, ask, ack())
    assert observer.state[0] is State.SUSPECT
    observer.hears(1.2, 2, Alive(card_bytes(2, incarnation=1)))
    assert observer.state_of(2)[0] is State.ALIVE


@pytest.mark.parametrize(
    ("number", "cause"), [(2, Cause.ENDED), (4, Cause.CRASHED)], ids=["proof", "not observed"]
)
def test_other_verdicts_are_believed_as_ever(number: int, cause: Cause) -> None:
    observer = Observer(size=5)
    observer.hears(1.0, 3, Dead(node_id(number), 1, 0, cause, node_id(3)))
    assert observer.state_of(number) == (State.DEAD, cause)


def test_session_that_refuted_a_crash_is_left_to_silence_for_a_while() -> None:
    observer = Observer(size=5)

    def witnesses(now: float, incarnation: int) -> None:
        for number in (3, 5):
            suspect = Suspect(node_id(4), 1, incarnation, node_id(number), BOTH)
            observer.hears(now, number, suspect)

    witnesses(1.0, 0)
    assert observer.state_of(4) == (State.DEAD, Cause.CRASHED)
    observer.hears(1.1, 4, Alive(card_bytes(4, incarnation=1)))
    assert observer.state_of(4)[0] is State.ALIVE
    witnesses(2.0, 1)
    assert observer.state_of(4)[0] is State.SUSPECT
    observer.hears(3.0, 4, Alive(card_bytes(4, incarnation=2)))
    witnesses(1.0 + AGAIN_S, 2)
    assert observer.state_of(4) == (State.DEAD, Cause.CRASHED)


def test_next_session_of_one_that_crashed_is_believed_to_crash_as_well() -> None:
    observer = Observer(size=5)
    for boot in (1, 2):
        observer.hears(float(boot), 4, Alive(card_bytes(4, boot=boot)))
        for number in (3, 5):
            suspect = Suspect(node_id(4), boot, 0, node_id(number), BOTH)
            observer.hears(float(boot), number, suspect)
        assert observer.state_of(4) == (State.DEAD, Cause.CRASHED)


def test_lifeline_of_another_session_of_a_stranger_or_of_somebody_gone_is_not_kept() -> None:
    observer = Observer()
    assert observer.keeps(Lifeline(2), Address("10.0.0.9", 40_001)) is None
    stranger = observer.swim.lines.evidence.on_lifeline(node_id(9), LINE, Lifeline(1))
    assert stranger is None
    observer.hears(1.0, 2, Left(node_id(2), 1, 0))
    assert observer.keeps(Lifeline(1), Address("10.0.0.9", 40_002)) is None


def test_no_more_lifelines_are_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mesh.membership.evidence.HELD_MAX", 2)
    evidence = Observer(size=4).swim.lines.evidence  # which keeps one of host 2
    third, fourth = (Address("10.0.0.8", port) for port in (40_003, 40_004))
    assert evidence.on_lifeline(node_id(3), third, Lifeline(1)) == LifelineKept()
    assert evidence.on_lifeline(node_id(4), fourth, Lifeline(1)) is None
    assert evidence.held == 2
    again = Address("10.0.0.8", 40_005)
    assert evidence.on_lifeline(node_id(3), again, Lifeline(1)) == LifelineKept(), (
        "in place of its own"
    )
    assert evidence.held == 2


def test_who_leaves_is_hung_up_on_and_never_asked_about() -> None:
    observer = Observer()
    outputs = observer.hears(1.0, 2, Left(node_id(2), 1, 0))
    assert HangUp(LINE) in outputs
    assert observer.hang_up(1.1) == []


def test_end_of_a_lifeline_of_an_earlier_session_means_nothing() -> None:
    observer = Observer()
    observer.hears(1.0, 2, Alive(card_bytes(2, boot=2)))
    assert observer.hang_up(1.1) == []


def test_what_a_witness_said_first_may_come_last() -> None:
    observer = Observer(size=5)
    observer.hears(1.0, 3, Suspect(node_id(4), 1, 0, node_id(3), BOTH))
    observer.hears(1.1, 3, Suspect(node_id(4), 1, 0, node_id(3), int(Seen.REFUSED)))
    observer.hears(1.2, 5, Suspect(node_id(4), 1, 0, node_id(5), int(Seen.REFUSED)))
    assert observer.state_of(4) == (State.DEAD, Cause.CRASHED)


def ranked(low: int, high: int) -> Observer:
    """Return host 1 where its rank among the observers of host 2 lies between these."""
    for size in range(3, 60):
        others = [node_id(number) for number in range(1, size + 1)]
        observers = observers_of(node_id(2), others, 4)
        if node_id(1) in observers and low <= observers.index(node_id(1)) <= high:
            return Observer(size=size)
    raise AssertionError("no mesh has it there")


def refused_after_the_end(observer: Observer) -> list[Outgoing]:
    (ask,) = observer.hang_up()
    return observer.answers(1.0, ask, REFUSAL)


def test_first_two_in_rank_speak_at_once() -> None:
    assert suspicions(refused_after_the_end(ranked(0, 1)))


def test_the_others_speak_only_if_nobody_else_did() -> None:
    observer = ranked(2, 3)
    assert not suspicions(refused_after_the_end(observer))
    assert observer.state[0] is State.ALIVE
    assert not suspicions(observer.waits(1.0 + SPARE_S / 2))
    (told,) = suspicions(observer.waits(1.0 + SPARE_S))
    assert told == Suspect(node_id(2), 1, 0, node_id(1), BOTH)


def test_what_the_others_have_seen_themselves_counts_beside_one_word() -> None:
    observer = ranked(2, 3)
    refused_after_the_end(observer)
    observer.hears(1.001, 3, Suspect(node_id(2), 1, 0, node_id(3), BOTH))
    assert observer.state == (State.DEAD, Cause.CRASHED)
    assert not suspicions(observer.waits(1.0 + SPARE_S))


def test_what_a_witness_saw_before_a_member_refuted_it_counts_no_more() -> None:
    observer = Observer(size=5)
    observer.hears(1.0, 3, Suspect(node_id(4), 1, 0, node_id(3), BOTH))
    observer.hears(1.1, 4, Alive(card_bytes(4, incarnation=1)))
    observer.hears(60.0, 5, Suspect(node_id(4), 1, 1, node_id(5), BOTH))
    assert observer.state_of(4)[0] is State.SUSPECT
    observer.hears(60.1, 3, Suspect(node_id(4), 1, 0, node_id(3), BOTH))  # a copy that comes late
    assert observer.state_of(4)[0] is State.SUSPECT
    observer.hears(60.2, 3, Suspect(node_id(4), 1, 1, node_id(3), BOTH))
    assert observer.state_of(4) == (State.DEAD, Cause.CRASHED)


def test_witnesses_whom_nobody_knows_are_not_kept() -> None:
    observer = Observer(size=5)
    for number in range(100, 200):
        accused = Suspect(node_id(4), 1, 0, node_id(number), BOTH)
        observer.hears(1.0, 3, accused)
    assert observer.state_of(4)[0] is State.SUSPECT
    (case,) = observer.swim.lines.evidence._cases.values()
    assert len(case.witnesses) <= 5


def test_verdict_that_was_refuted_before_it_came_is_no_evidence() -> None:
    observer = Observer(size=5)
    observer.hears(1.0, 2, Alive(card_bytes(2, incarnation=1)))
    observer.hears(1.1, 3, Dead(node_id(2), 1, 0, Cause.CRASHED, node_id(3)))
    outputs = observer.hears(1.2, 4, Suspect(node_id(2), 1, 1, node_id(4), int(Seen.REFUSED)))
    (ask,) = asks(outputs)
    observer.answers(1.3, ask, REFUSAL)
    assert observer.state[0] is State.SUSPECT  # nobody has seen a lifeline end


def test_lifeline_that_ended_and_was_not_opened_again_counts_after_a_refutation_too() -> None:
    observer = ranked(0, 1)
    (ask,) = observer.hang_up()
    outputs = observer.refused(1.0)
    assert suspicions(outputs)
    observer.hears(1.01, 2, Alive(card_bytes(2, incarnation=1)))  # refuted where it is still heard
    assert observer.state[0] is State.ALIVE
    observer.answers(1.02, ask, TransportError("no answer in time", errno.ETIMEDOUT))
    outputs = observer.refused(2.0)
    seen = int(Seen.CLOSED | Seen.REJECTED)
    assert Suspect(node_id(2), 1, 1, node_id(1), seen) in suspicions(outputs)
    observer.hears(2.1, 3, Suspect(node_id(2), 1, 1, node_id(3), int(Seen.REJECTED)))
    assert observer.state == (State.DEAD, Cause.CRASHED)


def test_lifeline_that_was_opened_again_does_not() -> None:
    observer = ranked(0, 1)
    observer.hang_up()
    observer.refused(1.0)
    observer.hears(1.01, 2, Alive(card_bytes(2, incarnation=1)))
    again = Address(LINE.host, LINE.port + 1)
    assert observer.swim.lines.evidence.on_lifeline(node_id(2), again, Lifeline(1))
    assert not suspicions(observer.refused(2.0))


def words(*numbers: int) -> list[Suspect]:
    return [Suspect(node_id(4), 1, 0, node_id(number), BOTH) for number in numbers]


def test_words_of_two_witnesses_in_one_packet_are_a_crash_and_a_suspicion_nowhere() -> None:
    observer = Observer(size=5)
    outputs = observer.hears(1.0, 3, *words(3, 5))
    assert observer.state_of(4) == (State.DEAD, Cause.CRASHED)
    assert [o.event.state for o in outputs if isinstance(o, Emit)] == ["dead"]


def test_words_about_several_members_in_one_packet_are_taken_one_by_one() -> None:
    observer = Observer(size=5)
    other = Suspect(node_id(2), 1, 0, node_id(5), BOTH)
    observer.hears(1.0, 3, *words(3), other)
    assert observer.state_of(4)[0] is State.SUSPECT
    assert observer.state_of(2)[0] is State.SUSPECT
