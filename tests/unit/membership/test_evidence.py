"""What an observer makes of the end of a lifeline, and of what others have seen."""

from __future__ import annotations

import errno
import random

import pytest

from mesh.core.address import Address
from mesh.core.effects import Emit, HangUp, KeepOpen, SendDatagram
from mesh.core.ids import MeshId, low32
from mesh.core.lines import HungUp
from mesh.core.requests import Ask, Outgoing
from mesh.errors import TransportError
from mesh.membership.identity import Identity
from mesh.membership.profile import lan
from mesh.membership.swim import Swim
from mesh.wire.packet import Packet, decode_packet
from mesh.wire.records import Cause, State, Vitals
from mesh.wire.swim_messages import Ack, Alive, Left, Lifeline, LifelineKept, Ping, Seen, Suspect
from tests.unit.membership.pump import address, card, card_bytes, node_id

MESH = MeshId(7)
BOTH = int(Seen.CLOSED | Seen.REFUSED)
REFUSAL = TransportError("refused", errno.ECONNREFUSED)
LINE = Address("10.0.0.9", 40_000)


class Observer:
    """Host 1 in a mesh of `size`; host 2 is whom it observes."""

    def __init__(self, size: int = 3) -> None:
        self.swim = Swim(config=lan(), identity=Identity(card(1), MESH), rng=random.Random(1))
        self.swim.start(0.0, is_founder=False)
        for number in range(2, size + 1):
            self.hears(0.0, number, Alive(card_bytes(number)))
        self.swim.take_changes()
        assert self.keeps(Lifeline(1)) == LifelineKept()

    def hears(self, now: float, sender: int, *messages: object) -> list[Outgoing]:
        packet = Packet(MESH, node_id(sender), messages)
        return self.swim.handle_packet(now, address(sender), packet)

    def keeps(self, message: Lifeline, source: Address = LINE) -> LifelineKept | None:
        reply = self.swim.lines.evidence.on_lifeline(node_id(2), source, message)
        kept = [output for output in self.swim.handle_timeout(0.0) if isinstance(output, KeepOpen)]
        assert kept == ([KeepOpen(source)] if reply else [])
        return reply

    def hang_up(self, now: float = 1.0, source: Address = LINE) -> list[Ask]:
        self.swim.lines.handle(now, HungUp(source))
        return [output for output in self.swim.handle_timeout(now) if isinstance(output, Ask)]

    def answers(self, now: float, ask: Ask, reply: Packet | Exception) -> list[Outgoing]:
        return self.swim.handle_reply(now, ask.tag, reply)

    @property
    def state(self) -> tuple[State, Cause]:
        member = self.swim.table.get(node_id(2))
        assert member is not None
        return member.state, member.cause


def suspicions(outputs: list[Outgoing]) -> set[Suspect]:
    packets = [decode_packet(o.data) for o in outputs if isinstance(o, SendDatagram)]
    return {m for packet in packets for m in packet.messages if isinstance(m, Suspect)}


def ack(boot: int = 1, number: int = 2) -> Packet:
    message = Ack(0, node_id(0) if number == 0 else node_id(number), low32(boot), Vitals(1, 0))
    return Packet(MESH, node_id(number), (message,))


def test_end_of_a_lifeline_is_asked_about_over_tcp_and_accuses_nobody_yet() -> None:
    observer = Observer()
    (ask,) = observer.hang_up()
    assert ask.to == address(2)
    assert isinstance(ask.message, Ping)
    assert observer.state[0] is State.ALIVE


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


def test_member_that_could_not_be_asked_is_not_suspected_for_it() -> None:
    observer = Observer(size=2)
    (ask,) = observer.hang_up()
    observer.answers(1.0, ask, TransportError("was not asked: all connections are busy"))
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


def test_member_that_observes_nobody_believes_two_witnesses() -> None:
    observer = Observer(size=5)
    observer.hears(1.0, 3, Suspect(node_id(2), 1, 0, node_id(3), BOTH))
    observer.hears(1.0, 4, Suspect(node_id(2), 1, 0, node_id(4), BOTH))
    assert observer.state == (State.DEAD, Cause.CRASHED)


def test_lifeline_of_another_session_of_a_stranger_or_of_somebody_gone_is_not_kept() -> None:
    observer = Observer()
    assert observer.keeps(Lifeline(2), Address("10.0.0.9", 40_001)) is None
    stranger = observer.swim.lines.evidence.on_lifeline(node_id(9), LINE, Lifeline(1))
    assert stranger is None
    observer.hears(1.0, 2, Left(node_id(2), 1, 0))
    assert observer.keeps(Lifeline(1), Address("10.0.0.9", 40_002)) is None


def test_who_leaves_is_hung_up_on_and_never_asked_about() -> None:
    observer = Observer()
    outputs = observer.hears(1.0, 2, Left(node_id(2), 1, 0))
    assert HangUp(LINE) in outputs
    assert observer.hang_up(1.1) == []


def test_end_of_one_of_two_lifelines_of_a_member_means_nothing() -> None:
    observer = Observer()
    second = Address("10.0.0.9", 40_005)
    assert observer.keeps(Lifeline(1), second) == LifelineKept()
    assert observer.hang_up(1.0, LINE) == []
    assert len(observer.hang_up(1.1, second)) == 1


def test_end_of_a_lifeline_of_an_earlier_session_means_nothing() -> None:
    observer = Observer()
    observer.hears(1.0, 2, Alive(card_bytes(2, boot=2)))
    assert observer.hang_up(1.1) == []
