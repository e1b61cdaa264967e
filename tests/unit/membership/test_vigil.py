"""What Lifeguard and we add to SWIM, driven through whole meshes of machines."""

from __future__ import annotations

import errno
import statistics
from dataclasses import replace
from functools import partial

import pytest

from mesh.core.ids import low32
from mesh.errors import TransportError
from mesh.membership.lifeguard import LifeguardConfig, plain_swim
from mesh.membership.profile import SwimConfig, local
from mesh.wire.packet import decode_packet
from mesh.wire.records import State
from mesh.wire.swim_messages import Nack, Ping, PingReq, Suspect
from tests.unit.membership.pump import Host, Pump, packet


def config(lifeguard: LifeguardConfig) -> SwimConfig:
    return replace(local(), lifeguard=lifeguard)


@pytest.fixture
def pump() -> Pump:
    return Pump()


def sent(host: Host, kind: type) -> list[object]:
    return [
        message
        for datagram in host.sent
        for message in decode_packet(datagram.data).messages
        if type(message) is kind
    ]


def test_node_that_slept_accuses_nobody_on_waking(pump: Pump) -> None:
    hosts = pump.mesh(5)
    sleeper = hosts[0]
    pump.pause(sleeper)
    pump.run(0.9)
    pump.resume(sleeper)
    pump.run(3.0)
    assert all(sleeper.state_of(other) is State.ALIVE for other in hosts[1:])
    assert sleeper.swim.counters["voided_pauses"] >= 1


def test_suspects_are_given_the_time_that_the_observer_slept(pump: Pump) -> None:
    first, second, third = pump.mesh(3)
    pump.at_host(first, second, Suspect(third.node_id, 1, 0, second.node_id))
    before = first.swim.rumours.suspicions.next_deadline()
    assert before is not None
    pump.now += 5.0
    first.swim.handle_timeout(pump.now)
    assert first.state_of(third) is State.SUSPECT
    after = first.swim.rumours.suspicions.next_deadline()
    assert after is not None
    assert after - before >= 4.0


@pytest.mark.parametrize("way", ["request", "reply", "resolved", "datagram"])
def test_a_pause_is_noticed_whatever_comes_first(pump: Pump, way: str) -> None:
    """An exchange that ran out meanwhile, say, must not be held against the member that was asked."""
    first, second = pump.mesh(5)[:2]
    swim, now = first.swim, pump.now + 3.0
    match way:
        case "request":
            swim.handle_request(now, second.node_id, Ping(1, low32(first.node_id), 0))
        case "reply":
            swim.handle_reply(now, ("fallback", 0), TransportError("late", errno.ETIMEDOUT))
        case "resolved":
            swim.handle_resolved(now, "nowhere:1", ())
        case _:
            swim.handle_packet(
                now, second.address, packet(second, Ping(1, low32(first.node_id), 0))
            )
    assert swim.counters["voided_pauses"] == 1


def test_a_pause_is_one_however_much_waits_in_the_socket(pump: Pump) -> None:
    hosts = pump.mesh(5)
    pump.add(9, 1)  # so that more than a probe is due: whoever came in is dialled back
    pump.run(0.05)
    pump.pause(hosts[0])
    pump.run(3.0)
    assert len(hosts[0].inbox) > 20
    pump.resume(hosts[0])
    assert hosts[0].swim.counters["voided_pauses"] == 1
    pump.run(0.5)
    assert hosts[0].swim.counters["voided_pauses"] == 1


def test_deaf_node_suspects_but_does_not_declare_dead(pump: Pump) -> None:
    hosts = pump.mesh(8)
    deaf, rest = hosts[0], hosts[1:]
    pump.deafen(deaf)
    pump.run(5.0)
    assert any(deaf.state_of(other) is State.SUSPECT for other in rest)
    assert all(deaf.state_of(other) is not State.DEAD for other in rest)
    assert deaf.swim.awareness.score > 0
    pump.heal()
    assert pump.run_until(lambda: all(deaf.state_of(other) is State.ALIVE for other in rest), 2.0)


def test_health_after_deafness_is_what_it_was_before(pump: Pump) -> None:
    hosts = pump.mesh(8)
    deaf = hosts[0]
    deaf.swim.awareness.note(2)
    pump.deafen(deaf)
    pump.run(5.0)
    assert deaf.swim.awareness.score == pump.config.lifeguard.health_max
    pump.heal()
    assert pump.run_until(lambda: deaf.swim.awareness.score <= 2, pump.config.probe_interval_s)
    deaf.sent.clear()
    pump.run(8 * pump.config.probe_interval_s)
    assert len(sent(deaf, Ping)) >= 5, "it pings as often as before, though it was about to wait"


def test_verdict_that_is_put_off_again_and_again_is_one_doubted_verdict(pump: Pump) -> None:
    hosts = pump.mesh(4)
    deaf = hosts[0]
    pump.deafen(deaf)
    longest_s = pump.config.longest_suspicion_s(4) + 2 * pump.config.probe_interval_s
    pump.run(longest_s + 5 * pump.config.probe_interval_s)
    suspects = [other for other in hosts[1:] if deaf.state_of(other) is State.SUSPECT]
    assert 1 <= deaf.swim.counters["doubted_verdicts"] <= len(suspects)


def test_node_that_was_deaf_catches_up_with_the_first_word_it_hears() -> None:
    took = []
    for seed in range(12):
        pump = Pump(seed=seed)
        hosts = pump.mesh(8)
        pump.deafen(hosts[0])
        pump.run(4.0)
        pump.heal()
        start = pump.now
        assert pump.run_until(partial(are_all_alive, hosts), 5.0)
        took.append((pump.now - start) / pump.config.reconnect_interval_s)
        for host in hosts:
            host.events.clear()
        pump.run(2.0)
        assert not any(host.kinds() for host in hosts), "the probe sent while deaf means nothing"
    assert statistics.median(took) < 1.0
    assert max(took) < 3.0


def are_all_alive(hosts: list[Host]) -> bool:
    return all(a.state_of(b) is State.ALIVE for a in hosts for b in hosts)


def test_cut_off_node_does_declare_the_others_dead_in_the_end(pump: Pump) -> None:
    hosts = pump.mesh(5)
    pump.partition(hosts[0])
    assert pump.run_until(
        lambda: all(hosts[0].state_of(other) is State.DEAD for other in hosts[1:]), 30.0
    )


@pytest.mark.parametrize("size", [3, 8])
def test_silence_between_the_rare_probes_of_bad_health_hides_no_dead_member(size: int) -> None:
    pump = Pump(seed=1)
    hosts = pump.mesh(size)
    victim, rest = hosts[-1], hosts[:-1]
    pump.kill(victim)
    for _ in range(120):
        for host in rest:  # all are starved for as long as this lasts
            host.swim.awareness.note(pump.config.lifeguard.health_max)
        pump.run(pump.config.probe_interval_s)
    assert all(host.state_of(victim) is State.DEAD for host in rest)


def test_plain_swim_declares_dead_where_doubt_waits() -> None:
    pump = Pump(config=config(plain_swim()))
    hosts = pump.mesh(8)
    pump.deafen(hosts[0])
    pump.run(5.0)
    assert any(hosts[0].state_of(other) is State.DEAD for other in hosts[1:])


def test_killed_member_is_buried_as_soon_as_others_share_the_suspicion(pump: Pump) -> None:
    hosts = pump.mesh(8)
    victim = hosts[3]
    pump.kill(victim)
    others = [host for host in hosts if host is not victim]
    bound_s = 1.0 + 6 * pump.config.probe_interval_s
    assert pump.run_until(
        lambda: all(host.state_of(victim) is State.DEAD for host in others), bound_s
    )


def test_relay_without_an_answer_says_nack_before_the_period_ends(pump: Pump) -> None:
    first, second, third = pump.mesh(3)
    pump.kill(third)
    first.sent.clear()
    pump.at_host(first, second, PingReq(77, third.node_id, third.address))
    pump.run(pump.config.probe_timeout_s)
    assert Nack(77) in sent(first, Nack)


def test_silent_relays_count_against_the_observer_and_nacks_do_not() -> None:
    scores = {}
    for name, lifeguard in (("nacks", LifeguardConfig()), ("none", LifeguardConfig())):
        pump = Pump(config=config(lifeguard))
        hosts = pump.mesh(6)
        pump.kill(hosts[5])
        if name == "none":
            pump.drop_kind(Nack)
        pump.run(0.7)
        scores[name] = max(host.swim.awareness.score for host in hosts[:5])
    assert scores["nacks"] < scores["none"]


def test_suspect_is_told_with_the_very_ping_that_probes_it(pump: Pump) -> None:
    first, second, third = pump.mesh(3)
    pump.at_host(first, second, Suspect(third.node_id, 1, 0, second.node_id))
    first.sent.clear()
    pump.kill(third)
    pump.run(2 * pump.config.probe_interval_s)
    told = [
        decode_packet(datagram.data).messages
        for datagram in first.sent
        if datagram.to == third.address
    ]
    assert any(list(map(type, messages[:2])) == [Ping, Suspect] for messages in told)


def test_refutations_keep_to_a_pace_and_the_last_suspicion_is_refuted_all_the_same(
    pump: Pump,
) -> None:
    first, second = pump.mesh(2)
    for _ in range(200):
        incarnation = first.swim.identity.card.incarnation
        accusation = Suspect(first.node_id, 1, incarnation, second.node_id)
        first.swim.handle_packet(pump.now, second.address, packet(second, accusation))
    raised = first.swim.identity.card.incarnation
    assert raised <= 6
    pump.run(1.0)
    assert first.swim.identity.card.incarnation == raised + 1


def test_node_that_hears_again_waits_a_moment_for_what_the_suspects_have_to_say(pump: Pump) -> None:
    hosts = pump.mesh(4)
    first, second, third = hosts[:3]
    pump.at_host(first, second, Suspect(third.node_id, 1, 0, second.node_id))
    suspected = first.swim.rumours.suspicions.get(third.node_id)
    assert suspected is not None
    pump.now = suspected.due - 0.001  # nobody was heard meanwhile
    pump.at_host(first, second, Suspect(third.node_id, 1, 0, hosts[3].node_id))
    assert first.state_of(third) is State.SUSPECT
    pump.run(0.9 * pump.config.moment_s(4))
    assert first.state_of(third) is not State.DEAD
