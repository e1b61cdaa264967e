"""What others say of members: applied in its order, passed on, and refuted if it is about this node."""

import pytest

from mesh.core.effects import Emit, SendDatagram, Stop
from mesh.core.events import EventKind
from mesh.core.ids import MeshId, NodeId
from mesh.core.requests import Outgoing
from mesh.errors import DecodeError
from mesh.membership.identity import INCARNATION_MAX
from mesh.membership.rumours import HASTENED_MIN
from mesh.wire.packet import decode_packet, encode_message, encode_packet
from mesh.wire.records import Cause, Standing, State
from mesh.wire.swim_messages import Alive, Dead, Left, Suspect, SyncOffer
from tests.unit.membership.pump import (
    Host,
    Pump,
    address,
    are_equal,
    card_bytes,
    node_id,
    packet,
)


@pytest.fixture
def pump() -> Pump:
    return Pump()


@pytest.fixture
def hosts(pump: Pump) -> list[Host]:
    return pump.mesh(3)


def hear(pump: Pump, host: Host, source: Host, *messages: object) -> list[Outgoing]:
    outputs = host.swim.handle_packet(pump.now, source.address, packet(source, *messages))
    host.swim.check_invariants()
    return outputs


def events(outputs: list[Outgoing]) -> list[EventKind]:
    return [o.event.kind for o in outputs if isinstance(o, Emit)]


def incarnation(host: Host, other: Host) -> int:
    member = host.swim.table.get(other.node_id)
    assert member is not None
    return member.incarnation


def test_suspected_node_refutes_with_a_higher_incarnation(pump: Pump, hosts: list[Host]) -> None:
    first, second, third = hosts
    accusation = Suspect(second.node_id, 1, 0, third.node_id)
    pump.at_host(first, third, accusation)
    pump.at_host(second, third, accusation)
    assert first.state_of(second) is State.SUSPECT
    pump.run(1.0)
    assert incarnation(first, second) == 1
    assert first.kinds(second)[-2:] == [EventKind.SUSPECT, EventKind.REFUTE]
    assert are_equal(hosts)


def test_stale_accusation_of_this_node_is_not_answered(pump: Pump, hosts: list[Host]) -> None:
    first, second, third = hosts
    pump.at_host(second, third, Suspect(second.node_id, 1, 0, third.node_id))
    before = second.swim.identity.card
    pump.at_host(second, third, Suspect(second.node_id, 1, 0, third.node_id))
    pump.at_host(second, third, Dead(second.node_id, 0, 9, Cause.SILENT, first.node_id))
    assert second.swim.identity.card == before


def test_accusation_at_the_highest_incarnation_is_counted_and_no_crash(
    pump: Pump, hosts: list[Host]
) -> None:
    first, second, _ = hosts
    accusation = Suspect(second.node_id, 1, INCARNATION_MAX, first.node_id)
    assert events(hear(pump, second, first, accusation)) == []
    assert second.swim.counters["ignored_impossible"] == 1
    assert hear(pump, second, first, Suspect(second.node_id, 1, INCARNATION_MAX - 1, first.node_id))
    assert second.swim.identity.card.incarnation == INCARNATION_MAX
    hear(pump, second, first, accusation)
    assert second.swim.identity.card.incarnation == INCARNATION_MAX


def test_rumour_about_nobody_known_adds_nobody(pump: Pump, hosts: list[Host]) -> None:
    stranger = node_id(99)
    for message in (
        Suspect(stranger, 1, 0, hosts[1].node_id),
        Dead(stranger, 1, 0, Cause.SILENT, hosts[1].node_id),
        Left(stranger, 1, 0),
    ):
        assert events(hear(pump, hosts[0], hosts[1], message)) == []
        assert hosts[0].swim.table.get(stranger) is None


def test_news_is_emitted_once_however_often_it_is_told(pump: Pump, hosts: list[Host]) -> None:
    first, second, third = hosts
    message = Dead(third.node_id, 1, 0, Cause.CRASHED, second.node_id)
    assert events(hear(pump, first, second, message)) == [EventKind.DEAD]
    assert events(hear(pump, first, second, message)) == []


def test_many_suspects_at_once_are_no_reason_to_hurry(
    pump: Pump, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, accuser, *others = pump.mesh(8)
    hurried: list[NodeId] = []
    monkeypatch.setattr(first.swim._turns, "hasten", lambda _now, other: hurried.append(other))
    for other in others:
        hear(pump, first, accuser, Suspect(other.node_id, 1, 0, accuser.node_id))
    assert hurried == [other.node_id for other in others[:HASTENED_MIN]]


def test_older_card_of_a_suspect_does_not_give_it_more_time(pump: Pump, hosts: list[Host]) -> None:
    first, second, third = hosts
    outputs = hear(pump, first, second, Suspect(third.node_id, 1, 5, second.node_id))
    assert events(outputs) == [EventKind.SUSPECT]
    deadline = first.swim.rumours.suspicions.next_deadline()
    pump.now += 0.01
    outputs = hear(pump, first, second, Alive(card_bytes(3, incarnation=2)))
    assert EventKind.SUSPECT not in events(outputs)
    assert first.swim.rumours.suspicions.next_deadline() == deadline


def test_older_card_of_a_dead_member_is_no_second_death(pump: Pump, hosts: list[Host]) -> None:
    first, second, third = hosts
    hear(pump, first, second, Dead(third.node_id, 1, 5, Cause.SILENT, second.node_id))
    assert events(hear(pump, first, second, Alive(card_bytes(3, incarnation=2)))) == []


def test_refutation_of_a_suspicion_never_heard_of_is_no_event(
    pump: Pump, hosts: list[Host]
) -> None:
    first, second, _ = hosts
    assert events(hear(pump, first, second, Alive(card_bytes(3, incarnation=2)))) == []


def test_another_address_is_an_update(pump: Pump, hosts: list[Host]) -> None:
    first, second, _ = hosts
    moved = Alive(card_bytes(3, incarnation=2, address=address(50)))
    assert events(hear(pump, first, second, moved)) == [EventKind.UPDATE]


@pytest.mark.parametrize(
    "broken",
    [
        Alive(b"\x93\x01"),
        SyncOffer((0,), (Standing(1, 0, State.ALIVE, Cause.NONE, 0, b"nothing"),)),
        SyncOffer((0,), (Standing(2, 0, State.ALIVE, Cause.NONE, 0, card_bytes(77)),)),
    ],
)
def test_broken_cards_do_not_get_past_the_wire(broken: object) -> None:
    data = encode_packet(MeshId(1), node_id(2), [encode_message(broken)])
    with pytest.raises(DecodeError):
        decode_packet(data)


def test_later_session_of_this_id_at_another_address_stops_this_one(
    pump: Pump, hosts: list[Host]
) -> None:
    first, second, _ = hosts
    outputs = hear(pump, second, first, Alive(card_bytes(2, boot=2, address=address(60))))
    assert events(outputs) == [EventKind.CONFLICT]
    assert [o.exit_code for o in outputs if isinstance(o, Stop)] == [1]


def test_same_session_declared_by_another_process_stops_this_one(
    pump: Pump, hosts: list[Host]
) -> None:
    first, second, _ = hosts
    outputs = hear(pump, second, first, Alive(card_bytes(2, address=address(60))))
    assert [o.exit_code for o in outputs if isinstance(o, Stop)] == [1]


def test_earlier_session_of_this_id_is_ignored(pump: Pump, hosts: list[Host]) -> None:
    first = hosts[0]
    back = pump.restart(hosts[1], seeds=(1,))
    pump.run(1.0)
    assert hear(pump, back, first, Alive(card_bytes(2, address=address(60)))) == []


@pytest.mark.parametrize("news", ["card", "death", "farewell"])
def test_session_at_this_address_that_was_thought_later_is_outranked(
    pump: Pump, hosts: list[Host], news: str
) -> None:
    """The clock was set back, or the disk: this node is told of its own past."""
    first, second, _ = hosts
    message = {
        "card": Alive(card_bytes(2, boot=50)),
        "death": Dead(second.node_id, 50, 3, Cause.SILENT, first.node_id),
        "farewell": Left(second.node_id, 50, 3),
    }[news]
    outputs = hear(pump, second, first, message)
    assert not any(isinstance(o, Stop) for o in outputs)
    assert second.swim.identity.card.boot == 51
    pump._carry_out(second, outputs)
    assert second.persisted[-1] == {"boot": 51}


def test_absurdly_late_session_of_this_id_is_no_crash(pump: Pump, hosts: list[Host]) -> None:
    first, second, _ = hosts
    hear(pump, second, first, Dead(second.node_id, 2**48 - 1, 3, Cause.SILENT, first.node_id))
    assert second.swim.identity.card.boot == 1


def test_who_accuses_a_member_that_left_is_told_of_the_farewell(
    pump: Pump, hosts: list[Host]
) -> None:
    first, second, third = hosts
    pump.kill(third)
    hear(pump, first, third, Left(third.node_id, 1, 0))
    hear(pump, second, third, Left(third.node_id, 1, 0))
    pump.run(5.0)  # every rumour rests
    assert first.knows(third).state is State.LEFT
    outputs = hear(pump, first, second, Suspect(third.node_id, 1, 0, second.node_id))
    assert first.state_of(third) is State.LEFT
    pump._carry_out(first, outputs)
    first.sent.clear()
    pump.run(0.5)
    assert any(
        isinstance(message, Left)
        for sent in first.sent
        for message in decode_packet(sent.data).messages
    )


def test_death_learned_by_sync_is_only_a_suspicion(pump: Pump, hosts: list[Host]) -> None:
    first, second, third = hosts
    standing = Standing(1, 0, State.DEAD, Cause.SILENT, 9, card_bytes(3))
    first.swim.handle_request(pump.now, second.node_id, SyncOffer((0,), (standing,)))
    assert first.state_of(third) is State.SUSPECT
    pump.run(3.0)
    assert are_equal(hosts)


def test_death_of_somebody_unknown_is_not_learned_by_sync(pump: Pump, hosts: list[Host]) -> None:
    standing = Standing(1, 0, State.DEAD, Cause.SILENT, 9, card_bytes(77))
    hosts[0].swim.handle_request(pump.now, hosts[1].node_id, SyncOffer((0,), (standing,)))
    assert hosts[0].swim.table.get(node_id(77)) is None


@pytest.mark.parametrize("boot", [1, 4])
def test_farewell_learned_by_sync_is_believed(pump: Pump, hosts: list[Host], boot: int) -> None:
    first, second, third = hosts
    standing = Standing(boot, 0, State.LEFT, Cause.NONE, 9, card_bytes(3, boot=boot))
    _, outputs = first.swim.handle_request(pump.now, second.node_id, SyncOffer((0,), (standing,)))
    assert first.state_of(third) is State.LEFT
    assert events(outputs) == [EventKind.LEAVE]


def test_welcome_brings_the_dead_and_how_long_they_have_been(pump: Pump, hosts: list[Host]) -> None:
    first, _, third = hosts
    pump.kill(third)
    pump.run(30.0)
    newcomer = pump.add(4, 1)
    pump.run(0.1)
    member = newcomer.swim.table.get(third.node_id)
    assert member is not None
    assert member.state is State.DEAD
    known = first.swim.table.get(third.node_id)
    assert known is not None
    assert member.since == pytest.approx(known.since, abs=1.5)


def test_old_deaths_are_no_events_for_a_newcomer(pump: Pump, hosts: list[Host]) -> None:
    pump.kill(hosts[2])
    pump.run(30.0)
    newcomer = pump.add(4, 1)
    pump.run(2.0)
    assert newcomer.kinds(hosts[2]) == []
    assert newcomer.kinds(hosts[1]) == [EventKind.JOIN]


def test_restart_learned_by_welcome_ends_the_earlier_session(pump: Pump) -> None:
    hosts = pump.mesh(3)
    third = hosts[2]
    back = pump.restart(hosts[1], seeds=(1,))
    members = [Standing(2, 0, State.DEAD, Cause.SILENT, 5, card_bytes(3, boot=2))]
    back.swim.table.apply_card(pump.now, card_bytes(3))
    back.swim.take_changes()
    back.swim.rumours.welcome(pump.now, tuple(members))
    changes, _ = back.swim.take_changes()
    assert any(change.is_restart and change.before and change.before[0] == 1 for change in changes)
    assert back.state_of(third) is State.DEAD


def test_death_declared_here_says_why(pump: Pump, hosts: list[Host]) -> None:
    pump.kill(hosts[2])
    pump.run(5.0)
    deaths = [e for h in hosts[:2] for e in h.events if e.kind is EventKind.DEAD]
    assert {(e.state, e.cause) for e in deaths} == {("dead", "silent")}
    assert any("no answer to a ping" in " ".join(e.evidence) for e in deaths)


def test_two_living_members_of_one_name_are_reported_once(pump: Pump, hosts: list[Host]) -> None:
    first, second, _ = hosts
    double = Alive(card_bytes(70, name="host-3"))
    outputs = hear(pump, first, second, double)
    assert events(outputs) == [EventKind.JOIN, EventKind.CONFLICT]
    assert events(hear(pump, first, second, double)) == []


# A death that is told before its suspicion could be refuted.


def test_a_death_told_out_of_nowhere_is_a_suspicion_for_a_moment(
    pump: Pump, hosts: list[Host]
) -> None:
    first, second, third = hosts
    pump.kill(third)
    message = Dead(third.node_id, 1, 0, Cause.SILENT, second.node_id)
    assert events(hear(pump, first, second, message)) == [EventKind.SUSPECT]
    moment_s = pump.config.moment_s(3)
    pump.run(0.9 * moment_s)
    assert first.state_of(third) is State.SUSPECT
    pump.run(0.2 * moment_s)
    assert first.state_of(third) is State.DEAD


def test_who_is_told_dead_out_of_nowhere_refutes_before_anybody_believes_it(pump: Pump) -> None:
    hosts = pump.mesh(10)
    message = Dead(hosts[4].node_id, 1, 0, Cause.SILENT, hosts[9].node_id)
    for host in hosts[:4]:
        pump.at_host(host, hosts[9], message)
    pump.run(3.0)
    assert all(EventKind.DEAD not in host.kinds() for host in hosts)
    assert are_equal(hosts)


def test_a_death_whose_suspicion_has_long_been_known_is_believed_at_once(
    pump: Pump, hosts: list[Host]
) -> None:
    first, second, third = hosts
    hear(pump, first, second, Suspect(third.node_id, 1, 0, second.node_id))
    pump.now += 0.6 * pump.config.suspicion_s(3)
    message = Dead(third.node_id, 1, 0, Cause.SILENT, second.node_id)
    assert EventKind.DEAD in events(hear(pump, first, second, message))


@pytest.mark.parametrize("cause", [Cause.CRASHED, Cause.ENDED])
def test_a_death_with_more_than_silence_behind_it_is_believed_at_once(
    pump: Pump, hosts: list[Host], cause: Cause
) -> None:
    first, second, third = hosts
    message = Dead(third.node_id, 1, 0, cause, second.node_id)
    assert events(hear(pump, first, second, message)) == [EventKind.DEAD]


def test_an_old_death_is_no_suspicion_of_a_member_that_refuted_it(
    pump: Pump, hosts: list[Host]
) -> None:
    first, second, third = hosts
    hear(pump, first, second, Alive(card_bytes(3, incarnation=1)))
    message = Dead(third.node_id, 1, 0, Cause.SILENT, second.node_id)
    assert events(hear(pump, first, second, message)) == []


# What was refuted already is said again, by somebody who missed it.


@pytest.mark.parametrize("kind", ["suspect", "dead"])
def test_who_repeats_what_was_refuted_is_told_so_directly(
    pump: Pump, hosts: list[Host], kind: str
) -> None:
    first, second, third = hosts
    hear(pump, first, third, Suspect(first.node_id, 1, 0, third.node_id))
    pump.run(3.0)  # the refutation has come to rest
    stale = (
        Suspect(first.node_id, 1, 0, third.node_id)
        if kind == "suspect"
        else Dead(first.node_id, 1, 0, Cause.SILENT, third.node_id)
    )
    outputs = hear(pump, first, second, stale)
    (datagram,) = [output for output in outputs if isinstance(output, SendDatagram)]
    assert datagram.to == second.address
    assert decode_packet(datagram.data).messages[0] == Alive(first.swim.identity.card_bytes)
    assert events(outputs) == []
    assert first.swim.identity.card.incarnation == 1


def test_corrections_keep_to_a_pace(pump: Pump, hosts: list[Host]) -> None:
    first, second, third = hosts
    hear(pump, first, third, Suspect(first.node_id, 1, 0, third.node_id))
    pump.run(3.0)
    stale = Suspect(first.node_id, 1, 0, third.node_id)
    sent = [len(hear(pump, first, second, stale)) for _ in range(100)]
    assert 0 < sum(sent) < 50
