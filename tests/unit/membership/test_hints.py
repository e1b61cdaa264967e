"""What an observer makes of refused datagrams, true and forged."""

from __future__ import annotations

import errno
import random
from dataclasses import replace

import pytest

from mesh.core.address import Address
from mesh.core.effects import Emit, TryLine
from mesh.core.lines import DatagramRefused, HungUp
from mesh.errors import TransportError
from mesh.membership.evidence import HINTS_BURST, HINTS_S, SPARE_S
from mesh.membership.identity import Identity
from mesh.membership.profile import lan
from mesh.membership.swim import Swim
from mesh.wire.packet import Packet
from mesh.wire.records import Cause, State
from mesh.wire.swim_messages import (
    Alive,
    Left,
    Lifeline,
    LifelineKept,
    Seen,
    Suspect,
)
from tests.unit.membership.observer import (
    LINE,
    MESH,
    REFUSAL,
    Observer,
    ack,
    asks,
    pings,
    suspicions,
)
from tests.unit.membership.pump import address, card, card_bytes, node_id

REJECTED = int(Seen.CLOSED | Seen.REJECTED)


def test_end_of_a_lifeline_is_asked_about_by_a_ping_as_well() -> None:
    observer = Observer()
    observer.swim.lines.handle(1.0, HungUp(LINE))
    outputs = observer.swim.handle_timeout(1.0)
    assert pings(outputs) == [address(2)]
    assert len(asks(outputs)) == 1


def test_refused_ping_after_the_end_of_a_lifeline_is_enough_to_be_a_witness() -> None:
    observer = Observer()
    observer.hang_up()
    outputs = observer.refused()
    assert suspicions(outputs) == {Suspect(node_id(2), 1, 0, node_id(1), REJECTED)}
    outputs = observer.hears(1.1, 3, Suspect(node_id(2), 1, 0, node_id(3), int(Seen.REFUSED)))
    assert observer.state == (State.DEAD, Cause.CRASHED)
    (event,) = [output.event for output in outputs if isinstance(output, Emit)]
    assert set(event.evidence) == {
        "its lifeline ended, its port refuses datagrams, as host-1 saw",
        "its host refuses connections, as host-3 saw",
    }


def test_second_refusal_in_the_other_way_is_not_told_again() -> None:
    observer = Observer()
    (ask,) = observer.hang_up()
    observer.refused()
    assert suspicions(observer.answers(1.0, ask, REFUSAL)) == set()
    assert suspicions(observer.refused(1.0)) == set()


def test_end_of_a_lifeline_after_a_refusal_is_told_and_not_asked_about_again() -> None:
    observer = Observer()
    (ask,) = asks(observer.refused())
    told = suspicions(observer.answers(1.0, ask, REFUSAL))
    assert {message.seen for message in told} == {int(Seen.REJECTED | Seen.REFUSED)}
    observer.swim.lines.handle(1.1, HungUp(LINE))
    outputs = observer.swim.handle_timeout(1.1)
    all_of_it = int(Seen.CLOSED | Seen.REJECTED | Seen.REFUSED)
    assert all_of_it in {message.seen for message in suspicions(outputs)}
    assert asks(outputs) == []


def test_refused_datagram_alone_makes_nobody_a_suspect_and_is_looked_into() -> None:
    observer = Observer(size=2)
    outputs = observer.refused()
    assert observer.state[0] is State.ALIVE
    assert suspicions(outputs) == set()
    assert [output for output in outputs if isinstance(output, TryLine)] == [TryLine(LINE)]
    (ask,) = asks(outputs)
    assert ask.to == address(2)
    observer.answers(1.1, ask, ack())
    assert observer.state[0] is State.ALIVE
    assert observer.hang_up(1.2), "what was forged is forgotten: the end is asked about as ever"


@pytest.mark.parametrize(
    "errors",
    [[errno.ETIMEDOUT], [errno.EMFILE], [errno.ECONNRESET] * 3],
    ids=["no answer", "no descriptor", "resets"],
)
def test_hint_that_nothing_follows_from_is_forgotten(errors: list[int]) -> None:
    observer = Observer(size=2)
    (ask,) = asks(observer.refused())
    for error in errors:
        outputs = observer.answers(1.5, ask, TransportError("nothing", error))
        ask = (asks(outputs) or [ask])[0]
    assert observer.state[0] is State.ALIVE
    (ask,) = observer.hang_up(2.0)
    assert observer.state[0] is State.ALIVE


def test_forged_refusals_of_the_living_cost_a_bounded_number_of_questions() -> None:
    observer = Observer(size=30)
    asked, tried = 0, 0
    for step in range(1_000):
        now = 1.0 + step / 1_000
        outputs = observer.refused(now, 2 + step % 29)
        tried += sum(isinstance(output, TryLine) for output in outputs)
        for ask in asks(outputs):
            number = next(n for n in range(2, 31) if address(n) == ask.to)
            asked += 1
            assert suspicions(observer.answers(now, ask, ack(number=number))) == set()
    assert 0 < asked <= HINTS_BURST + HINTS_S + 1
    assert tried <= 2
    assert all(member.state is State.ALIVE for member in observer.swim.table)


def test_storm_of_forged_refusals_does_not_hide_a_true_one() -> None:
    observer = Observer(size=30)
    for step in range(1_000):
        observer.refused(1.0, 3 + step % 28)
    observer.hang_up(1.0)
    outputs = observer.refused(1.0) + observer.waits(1.0 + SPARE_S)
    assert suspicions(outputs)


def test_refusal_from_where_no_living_member_is_means_nothing() -> None:
    observer = Observer()
    assert asks(observer.refused(1.0, 9)) == []
    observer.hears(1.0, 2, Left(node_id(2), 1, 0))
    assert asks(observer.refused(1.1, 2)) == []


def test_observer_that_hears_of_a_refusal_looks_and_tries_the_lifeline_it_keeps() -> None:
    observer = Observer(size=5)
    outputs = observer.hears(1.0, 3, Suspect(node_id(2), 1, 0, node_id(3), int(Seen.REFUSED)))
    assert TryLine(LINE) in outputs
    assert pings(outputs) == [address(2)]
    assert len(asks(outputs)) == 1


def test_without_lifelines_refusals_say_nothing() -> None:
    config = replace(lan(), lifeguard=replace(lan().lifeguard, has_lifelines=False))
    swim = Swim(config=config, identity=Identity(card(1), MESH), rng=random.Random(1))
    swim.start(0.0, is_founder=False)
    swim.handle_packet(0.0, address(2), Packet(MESH, node_id(2), (Alive(card_bytes(2)),)))
    swim.handle_timeout(0.05)  # it asks itself whether it hears
    swim.lines.handle(0.1, DatagramRefused(address(2)))
    assert asks(swim.handle_timeout(0.1)) == []


def test_new_lifeline_ends_what_was_seen_before_it() -> None:
    observer = Observer(size=2)
    (ask,) = observer.hang_up()
    observer.answers(1.0, ask, TransportError("no answer in time"))
    assert observer.keeps(Lifeline(1), Address("10.0.0.9", 40_009)) == LifelineKept()
    observer.refused(2.0)
    assert observer.state != (State.DEAD, Cause.CRASHED)


def test_refusals_of_the_dead_cost_the_living_nothing_of_their_pace() -> None:
    observer = Observer(size=30)
    for number in range(3, 31):
        observer.hears(0.5, number, Left(node_id(number), 1, 0))
    for step in range(1_000):
        observer.refused(1.0, 3 + step % 28)
    assert len(asks(observer.refused(1.0))) == 1
