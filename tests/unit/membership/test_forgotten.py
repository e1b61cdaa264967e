"""What does not bring a forgotten member back, what does, and how long it is known that it was forgotten."""

import dataclasses

import pytest

from mesh.core.events import EventKind
from mesh.errors import ConfigError
from mesh.membership.profile import lan
from mesh.wire.packet import decode_packet
from mesh.wire.records import Cause, Standing, State
from mesh.wire.swim_messages import (
    Alive,
    Dead,
    Forget,
    Left,
    Ping,
    Suspect,
    SyncDelta,
    SyncOffer,
    SyncRoot,
)
from tests.unit.membership.forgets import MINUTE_S, forget, short_lived, states, with_a_dead_host
from tests.unit.membership.pump import Host, Pump, are_equal, card_bytes, node_id


@pytest.fixture
def pump() -> Pump:
    return Pump()


@pytest.fixture
def hosts(pump: Pump) -> list[Host]:
    return with_a_dead_host(pump)


# What does not bring it back.


def test_old_rumours_do_not_bring_it_back(pump: Pump, hosts: list[Host]) -> None:
    forget(pump, hosts[0], "host-5")
    pump.run(1.0)
    gone, teller = hosts[4], hosts[1]
    for message in (
        Alive(card_bytes(5)),
        Suspect(gone.node_id, 1, 0, teller.node_id),
        Dead(gone.node_id, 1, 0, Cause.ENDED, teller.node_id),
        Left(gone.node_id, 1, 0),
    ):
        pump.at_host(hosts[0], teller, message)
    assert hosts[0].state_of(gone) is State.FORGOTTEN


@pytest.mark.parametrize("state", [State.ALIVE, State.SUSPECT, State.DEAD, State.LEFT])
def test_old_standings_do_not_bring_it_back(pump: Pump, hosts: list[Host], state: State) -> None:
    forget(pump, hosts[0], "host-5")
    offer = SyncOffer((0,), (Standing(1, 0, state, Cause.NONE, 0, card_bytes(5)),))
    hosts[0].swim.handle_request(pump.now, hosts[1].node_id, offer)
    assert hosts[0].state_of(hosts[4]) is State.FORGOTTEN


def test_who_accuses_a_forgotten_member_is_told_of_it(pump: Pump, hosts: list[Host]) -> None:
    forget(pump, hosts[0], "host-5")
    pump.run(5.0)
    hosts[0].sent.clear()
    accusation = Suspect(hosts[4].node_id, 1, 0, hosts[1].node_id)
    pump.at_host(hosts[0], hosts[1], accusation)
    pump.run(0.5)
    told = [m for sent in hosts[0].sent for m in decode_packet(sent.data).messages]
    assert any(isinstance(message, Forget) for message in told)


def test_who_missed_the_news_learns_it_though_it_knows_the_same_living(
    pump: Pump, hosts: list[Host]
) -> None:
    for host in hosts[:3]:  # gossip has come and gone
        message = Forget(hosts[4].node_id, 1, 0, hosts[0].node_id, 5)
        host.swim.rumours.on_forget(pump.now, host.node_id, message)
        host.swim._news.forget(hosts[4].node_id)
    pump.run(3 * pump.config.sync_interval_s)
    assert states(hosts[:4], hosts[4]) == {State.FORGOTTEN}
    assert hosts[3].kinds(hosts[4])[-1] is EventKind.FORGET
    assert hosts[3].events[-1].evidence == ("asked for at host-1",)


def test_who_learns_it_by_comparing_tells_the_others_at_once(pump: Pump, hosts: list[Host]) -> None:
    wish = Standing(1, 0, State.FORGOTTEN, Cause.NONE, 7, card_bytes(5), node_id(9))
    _, outputs = hosts[0].swim.handle_request(pump.now, node_id(2), SyncOffer((0,), (wish,)))
    pump._carry_out(hosts[0], outputs)
    for host in hosts:
        host.asked.clear()
    pump.run(0.2)  # rumours are told at once; the next comparison is seconds away
    assert states(hosts[:4], hosts[4]) == {State.FORGOTTEN}
    assert not any(isinstance(ask.message, SyncRoot) for host in hosts for ask in host.asked)


def test_who_never_knew_the_member_is_told_of_the_tombstone(pump: Pump, hosts: list[Host]) -> None:
    forget(pump, hosts[0], "host-5")
    nothing = SyncOffer(tuple(range(64)), ())
    reply, _ = hosts[0].swim.handle_request(pump.now, hosts[1].node_id, nothing)
    assert isinstance(reply, SyncDelta)
    assert State.FORGOTTEN in {standing.state for standing in reply.members}
    hosts[3].swim.table.remove(hosts[4].node_id)
    hosts[3].swim._sync._merging.merge(pump.now, hosts[0].node_id, reply.members)
    assert hosts[3].state_of(hosts[4]) is State.FORGOTTEN
    assert EventKind.FORGET not in hosts[3].kinds(hosts[4])


def test_equal_tombstones_cost_no_exchange_of_members(pump: Pump, hosts: list[Host]) -> None:
    forget(pump, hosts[0], "host-5")
    pump.run(MINUTE_S)
    for host in hosts:
        host.asked.clear()
    pump.run(MINUTE_S)
    asked = [ask.message for host in hosts for ask in host.asked]
    assert any(isinstance(message, SyncRoot) for message in asked)
    assert not any(isinstance(message, SyncOffer) for message in asked)


@pytest.mark.parametrize("slept_from", ["before its death", "before the forgetting"])
def test_it_stays_away_through_half_an_hour_though_somebody_slept(
    slept_from: str,
) -> None:
    pump = Pump(config=lan())
    hosts = pump.mesh(5, settle_s=10.0)
    sleeper, victim = hosts[3], hosts[4]
    if slept_from == "before its death":
        pump.pause(sleeper)
    pump.kill(victim)
    pump.run(MINUTE_S)
    if slept_from == "before the forgetting":
        assert sleeper.state_of(victim) is State.DEAD
        pump.pause(sleeper)
    forget(pump, hosts[0], "host-5")
    pump.run(MINUTE_S)
    awake = hosts[:3]
    assert states(awake, victim) == {State.FORGOTTEN}
    pump.resume(sleeper)
    for host in awake:
        host.events.clear()
    assert pump.run_until(lambda: sleeper.state_of(victim) is State.FORGOTTEN, 2 * MINUTE_S)
    for _ in range(30):
        pump.run(MINUTE_S)
        assert states(hosts[:4], victim) == {State.FORGOTTEN}
    assert not any(host.kinds(victim) for host in awake)
    assert are_equal(hosts[:4])


@pytest.mark.parametrize("side", ["of who forgets", "of who does not"])
def test_a_partition_that_slept_through_it_learns_it(pump: Pump, side: str) -> None:
    hosts = pump.mesh(7)
    victim = hosts[6]
    pump.partition(*hosts[:3], *([victim] if side == "of who forgets" else []))
    pump.run(15.0)
    pump.kill(victim)
    pump.run(15.0)
    forget(pump, hosts[0], "host-7")
    pump.run(5.0)
    assert states(hosts[3:6], victim) == {State.DEAD}
    pump.heal()
    assert pump.run_until(
        lambda: states(hosts[:6], victim) == {State.FORGOTTEN} and are_equal(hosts[:6]), MINUTE_S
    )
    pump.run(2 * MINUTE_S)
    assert states(hosts[:6], victim) == {State.FORGOTTEN}


def test_it_stays_away_when_another_member_restarts(pump: Pump, hosts: list[Host]) -> None:
    forget(pump, hosts[0], "host-5")
    pump.run(1.0)
    back = pump.restart(hosts[2], seeds=(1,))
    pump.run(3.0)
    assert back.state_of(hosts[4]) is State.FORGOTTEN
    assert back.kinds(hosts[4]) == []
    pump.run(5 * MINUTE_S)
    assert states([*hosts[:2], back, hosts[3]], hosts[4]) == {State.FORGOTTEN}


# What brings it back.


def test_a_member_that_was_only_cut_off_is_back_by_its_refutation(pump: Pump) -> None:
    hosts = pump.mesh(5)
    victim = hosts[4]
    pump.partition(victim)
    pump.run(20.0)
    forget(pump, hosts[0], "host-5")
    pump.run(MINUTE_S)
    assert states(hosts[:4], victim) == {State.FORGOTTEN}
    pump.heal()
    assert pump.run_until(lambda: are_equal(hosts) and len(hosts[0].swim.table.living) == 4, 15.0)
    assert all(EventKind.RETURN in host.kinds(victim) for host in hosts[:4])
    refuted = [e.detail for e in victim.events if e.kind is EventKind.REFUTE]
    assert any("'forget'" in text and "host-1" in text for text in refuted)


def test_a_member_that_was_only_stopped_is_back_by_its_refutation(pump: Pump) -> None:
    hosts = pump.mesh(5)
    victim = hosts[4]
    pump.pause(victim)
    pump.run(20.0)
    forget(pump, hosts[0], "host-5")
    pump.run(MINUTE_S)
    pump.resume(victim)
    assert pump.run_until(lambda: are_equal(hosts), 15.0)
    assert all(host.state_of(victim) is State.ALIVE for host in hosts[:4])


def test_a_member_that_starts_again_is_a_member_as_before(pump: Pump, hosts: list[Host]) -> None:
    forget(pump, hosts[0], "host-5")
    pump.run(MINUTE_S)
    back = pump.restart(hosts[4], seeds=(1,))
    pump.run(3.0)
    assert are_equal([*hosts[:4], back])
    assert all(host.state_of(back) is State.ALIVE for host in hosts[:4])
    pump.run(MINUTE_S)
    assert all(host.state_of(back) is State.ALIVE for host in hosts[:4])


def test_where_it_lives_it_is_suspected_before_it_is_believed_to_be_forgotten(pump: Pump) -> None:
    """One half of a mesh forgot a member of the other half, which never doubted it."""
    hosts = pump.mesh(6)
    victim = hosts[5]
    pump.partition(*hosts[:3])
    pump.run(20.0)
    forget(pump, hosts[0], "host-6")
    pump.run(5.0)
    pump.heal()
    assert pump.run_until(lambda: are_equal(hosts), MINUTE_S)
    assert all(host.state_of(victim) is State.ALIVE for host in hosts[:5])
    for host in hosts[3:5]:
        assert EventKind.FORGET not in host.kinds(victim)
        assert EventKind.DEAD not in host.kinds(victim)


def test_a_later_word_that_was_dead_before_the_forgetting_is_forgotten_with_it(
    pump: Pump, hosts: list[Host]
) -> None:
    forget(pump, hosts[0], "host-5")
    pump.run(10.0)
    dead = Standing(1, 4, State.DEAD, Cause.SILENT, 25, card_bytes(5, incarnation=4))
    hosts[0].swim.handle_request(pump.now, hosts[1].node_id, SyncOffer((0,), (dead,)))
    member = hosts[0].knows(hosts[4])
    assert (member.state, member.incarnation) == (State.FORGOTTEN, 4)
    pump.run(2 * pump.config.sync_interval_s)
    assert states(hosts[:4], hosts[4]) == {State.FORGOTTEN}


def test_a_death_after_the_forgetting_is_a_death(pump: Pump, hosts: list[Host]) -> None:
    forget(pump, hosts[0], "host-5")
    pump.run(20.0)
    dead = Standing(1, 4, State.DEAD, Cause.SILENT, 5, card_bytes(5, incarnation=4))
    hosts[0].swim.handle_request(pump.now, hosts[1].node_id, SyncOffer((0,), (dead,)))
    assert hosts[0].state_of(hosts[4]) is State.DEAD
    pump.run(3 * pump.config.sync_interval_s)
    assert states(hosts[:4], hosts[4]) == {State.DEAD}


# How long it lasts.


def test_after_its_time_nobody_knows_of_it_and_a_stale_death_adds_nobody() -> None:
    pump = Pump(config=short_lived(2 * MINUTE_S))
    hosts = pump.mesh(4)
    pump.kill(hosts[3])
    pump.run(15.0)
    forget(pump, hosts[0], "host-4")
    pump.run(1.5 * MINUTE_S)
    assert states(hosts[:3], hosts[3]) == {State.FORGOTTEN}
    pump.run(MINUTE_S)
    assert states(hosts[:3], hosts[3]) == {None}
    death = Standing(1, 0, State.DEAD, Cause.SILENT, 9, card_bytes(4))
    hosts[0].swim.handle_request(pump.now, hosts[1].node_id, SyncOffer((0,), (death,)))
    pump.at_host(hosts[1], hosts[2], Forget(node_id(4), 1, 0, hosts[0].node_id, 0))
    pump.run(MINUTE_S)
    assert states(hosts[:3], hosts[3]) == {None}


def test_members_that_tell_each_other_do_not_keep_it_for_ever() -> None:
    """Everybody compares notes all the time, while the tombstones run out one by one."""
    config = dataclasses.replace(short_lived(30.0), sync_interval_s=1.0)
    pump = Pump(config=config)
    hosts = pump.mesh(8)
    pump.kill(hosts[7])
    pump.run(15.0)
    forget(pump, hosts[0], "host-8")
    pump.run(35.0)
    assert states(hosts[:7], hosts[7]) == {None}


def test_a_late_rumour_makes_no_younger_tombstone(pump: Pump, hosts: list[Host]) -> None:
    pump.at_host(hosts[0], hosts[1], Forget(hosts[4].node_id, 1, 0, hosts[1].node_id, 500))
    assert hosts[0].knows(hosts[4]).since == pump.now - 500


def test_a_tombstone_that_has_run_out_elsewhere_is_not_taken_back(
    pump: Pump, hosts: list[Host]
) -> None:
    retention_s = int(pump.config.forgotten_retention_s)
    for number, age_s in ((60, retention_s - 1), (61, retention_s)):
        card = card_bytes(number)
        old = Standing(1, 0, State.FORGOTTEN, Cause.NONE, age_s, card, node_id(2))
        hosts[0].swim.handle_request(pump.now, hosts[1].node_id, SyncOffer((0,), (old,)))
    table = hosts[0].swim.table
    assert node_id(60) in table.tombstones
    assert table.get(node_id(61)) is None


def test_a_newcomer_takes_over_the_tombstones_in_silence(pump: Pump, hosts: list[Host]) -> None:
    forget(pump, hosts[0], "host-5")
    pump.run(30.0)
    newcomer = pump.add(9, 2)
    pump.run(3.0)
    known = newcomer.knows(hosts[4])
    assert known.state is State.FORGOTTEN
    assert known.since == pytest.approx(hosts[0].knows(hosts[4]).since, abs=1.5)
    assert newcomer.kinds(hosts[4]) == []


def test_retention_shorter_than_the_pause_between_comparisons_is_refused() -> None:
    with pytest.raises(ConfigError, match="forgotten_retention_s must exceed sync_interval_s"):
        short_lived(5.0).check()


def test_a_node_that_leaves_is_not_changed_by_being_forgotten(
    pump: Pump, hosts: list[Host]
) -> None:
    leaver = hosts[2]
    outputs = leaver.swim.leave(pump.now, "asked to")
    assert outputs
    wish = Standing(1, 3, State.FORGOTTEN, Cause.NONE, 1, card_bytes(3), node_id(1))
    leaver.swim.handle_request(pump.now, hosts[0].node_id, SyncOffer((0,), (wish,)))
    leaver.swim.check_invariants()
    assert leaver.state_of(leaver) is State.LEFT


def test_pings_say_to_a_forgotten_member_what_it_has_to_refute(
    pump: Pump, hosts: list[Host]
) -> None:
    forget(pump, hosts[0], "host-5")
    pump.run(3.0)
    hosts[0].sent.clear()
    ping = Ping(1, hosts[0].node_id & 0xFFFF_FFFF, 0)
    pump.at_host(hosts[0], hosts[4], ping)
    (answer,) = [sent for sent in hosts[0].sent if sent.to == hosts[4].address]
    assert any(isinstance(message, Forget) for message in decode_packet(answer.data).messages)
