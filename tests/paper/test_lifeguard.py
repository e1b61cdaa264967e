"""One claim of the Lifeguard paper, one test. Keys are resolved in docs/references.md."""

from __future__ import annotations

import dataclasses
import functools
import math

import pytest

from mesh.membership.awareness import Awareness
from mesh.membership.lifeguard import LifeguardConfig, paper, plain_swim
from mesh.membership.profile import SwimConfig, local
from mesh.membership.suspicion import Suspected
from mesh.sim.anomalies import Anomalies, run_anomalies
from mesh.wire.packet import decode_packet
from mesh.wire.records import State
from mesh.wire.swim_messages import Nack, Ping, PingReq, Suspect
from tests.unit.membership.pump import Host, Pump, node_id


def config(lifeguard: LifeguardConfig) -> SwimConfig:
    return dataclasses.replace(local(), sync_interval_s=1000.0, lifeguard=lifeguard)


def has_pinged(host: Host) -> bool:
    """Say whether the host has sent a ping."""
    return any(type(decode_packet(sent.data).messages[0]) is Ping for sent in host.sent)


def fixed_score(monkeypatch: pytest.MonkeyPatch, pump: Pump, host: Host, score: int) -> None:
    """Let a host be so healthy for a while, and its next period begin accordingly."""
    host.swim.awareness.note(score)
    monkeypatch.setattr(Awareness, "note", lambda self, points: None)
    pump.run(9 * pump.config.probe_interval_s)
    host.sent.clear()


# §IV.A Local health aware probe.


@pytest.mark.parametrize("score", [0, 1, 3, 8])
def test_probes_come_slower_by_the_score_and_one(
    monkeypatch: pytest.MonkeyPatch, score: int
) -> None:
    """[Lifeguard §IV.A]: ProbeInterval = BaseProbeInterval (LHM + 1)."""
    pump = Pump(config=config(paper()))
    first, *_ = pump.mesh(4)
    fixed_score(monkeypatch, pump, first, score)
    pump.run(72 * pump.config.probe_interval_s)
    kinds = [type(decode_packet(sent.data).messages[0]) for sent in first.sent]
    assert kinds.count(Ping) == pytest.approx(72 / (score + 1), abs=1)


@pytest.mark.parametrize("score", [0, 3])
def test_a_slow_observer_gives_its_probes_more_time(
    monkeypatch: pytest.MonkeyPatch, score: int
) -> None:
    """[Lifeguard §IV.A]: ProbeTimeout = BaseProbeTimeout (LHM + 1)."""
    pump = Pump(config=config(paper()))
    first, second = pump.mesh(2)
    fixed_score(monkeypatch, pump, first, score)
    pump.kill(second)
    first.asked.clear()
    assert pump.run_until(lambda: has_pinged(first), 10.0)
    begun = pump.now
    assert pump.run_until(lambda: bool(first.asked), 10.0)  # over TCP: there is no other to ask
    timeout_s = (score + 1) * pump.config.probe_timeout_s
    assert pump.now - begun == pytest.approx(timeout_s, rel=0.01)


def test_the_score_is_a_counter_that_saturates_at_both_ends() -> None:
    """[Lifeguard §IV.A]: LHM is at least 0 and at most S, here 8."""
    pump = Pump(config=config(paper()))
    first, *others = pump.mesh(5)
    pump.deafen(first)
    pump.run(30.0)
    assert first.swim.awareness.score == 8
    pump.heal()
    assert pump.run_until(lambda: first.swim.awareness.score == 0, 60.0)
    assert all(other.swim.awareness.score <= 8 for other in others)


def test_having_to_refute_counts_against_oneself() -> None:
    """[Lifeguard §IV.A]: whoever is suspected and can still say so was slow: +1."""
    pump = Pump(config=config(paper()))
    first, second, third = pump.mesh(3)
    pump.at_host(first, second, Suspect(first.node_id, 1, 0, third.node_id))
    assert first.swim.awareness.score == 1
    pump.run(2 * pump.config.probe_interval_s * 2)
    assert first.swim.awareness.score == 0  # and a probe that is answered: -1


def test_nacks_come_after_four_fifths_of_the_timeout() -> None:
    """[Lifeguard §IV.A]: a relay says nack at 80 % of the timeout, so that it still counts."""
    pump = Pump(config=config(paper()))
    first, second, third = pump.mesh(3)
    pump.kill(third)
    first.sent.clear()
    asked = pump.now
    pump.at_host(first, second, PingReq(77, third.node_id, third.address))

    def has_said() -> bool:
        return any(Nack(77) in decode_packet(sent.data).messages for sent in first.sent)

    assert pump.run_until(has_said, 1.0)
    assert pump.now - asked == pytest.approx(0.8 * pump.config.probe_timeout_s, rel=0.05)


def test_nacks_tell_a_dead_member_from_a_deaf_observer() -> None:
    """[Lifeguard §IV.A]: relays that answer clear the observer, silent relays accuse it."""
    scores = {}
    for fault in ("dead member", "deaf observer"):
        pump = Pump(config=config(paper()))
        hosts = pump.mesh(6)
        if fault == "dead member":
            pump.kill(hosts[5])
        else:
            pump.deafen(hosts[0])
        pump.run(8 * pump.config.probe_interval_s)
        scores[fault] = hosts[0].swim.awareness.score
    assert scores["dead member"] <= 1
    assert scores["deaf observer"] >= 4


# §IV.B Local health aware suspicion.


def suspected(accusers: int, enough: int = 3) -> Suspected:
    return Suspected(
        node_id=node_id(2),
        boot=1,
        incarnation=0,
        opened_at=0.0,
        shortest_s=5.0,
        longest_s=30.0,
        enough=enough,
        accusers={node_id(10 + n): None for n in range(accusers)},
    )


@pytest.mark.parametrize("confirmations", [0, 1, 2, 3])
def test_a_suspicion_shrinks_with_the_logarithm_of_independent_confirmations(
    confirmations: int,
) -> None:
    """[Lifeguard §IV.B]: max(Min, Max - (Max - Min) log(C + 1) / log(K + 1))."""
    shrunk_s = 30.0 - 25.0 * math.log(confirmations + 1) / math.log(4)
    assert suspected(1 + confirmations).timeout_s == pytest.approx(max(5.0, shrunk_s))


def test_a_suspicion_that_nobody_shares_lasts_longest_and_more_than_k_shorten_it_no_further() -> (
    None
):
    """[Lifeguard §IV.B]: it starts at Max; K confirmations bring it to Min."""
    assert suspected(1).timeout_s == 30.0
    assert suspected(4).timeout_s == suspected(5).timeout_s == 5.0


def test_the_first_k_confirmations_are_passed_on_and_no_more() -> None:
    """[Lifeguard §IV.B]: the re-gossip factor K bounds what suspicions cost."""
    pump = Pump(config=config(paper()))
    hosts = pump.mesh(10)
    first, member = hosts[0], hosts[9]
    pump.kill(member)
    enough = pump.config.lifeguard.confirmations
    passed_on = 0
    for accuser in hosts[1:8]:
        first.swim._news.forget(member.node_id)
        pump.at_host(first, accuser, Suspect(member.node_id, 1, 0, accuser.node_id))
        passed_on += member.node_id in first.swim._news
    assert passed_on == 1 + enough


def seconds_until_all_know(lifeguard: LifeguardConfig) -> float:
    pump = Pump(config=config(lifeguard))
    hosts = pump.mesh(16)
    victim = hosts[7]
    pump.kill(victim)
    begun = pump.now
    rest = [host for host in hosts if host is not victim]
    assert pump.run_until(lambda: all(h.state_of(victim) is State.DEAD for h in rest), 30.0)
    return pump.now - begun


def test_a_crash_that_all_see_is_found_about_as_soon_as_by_swim() -> None:
    """[Lifeguard §V]: for true failures the shrinking suspicion costs little."""
    later_s = seconds_until_all_know(paper()) - seconds_until_all_know(plain_swim())
    assert later_s <= 4 * local().probe_interval_s


# §IV.C Buddy system.


def refuted_after_s(seed: int, *, tells_suspect: bool) -> float:
    """How long a member takes to refute where news travels with probes alone, and has come to rest."""
    lifeguard = dataclasses.replace(plain_swim(), tells_suspect=tells_suspect)
    slow = dataclasses.replace(
        config(lifeguard), gossip_interval_s=3600.0, news_delay_s=3600.0, pause_tolerance_s=60.0
    )
    pump = Pump(seed, slow)
    hosts = pump.mesh(12, settle_s=20.0)
    pump._answer = lambda host, data: b""  # type: ignore[method-assign]  # anti-entropy would tell it
    accused = hosts[5]
    for host in hosts[:5]:
        pump.at_host(host, hosts[11], Suspect(accused.node_id, 1, 0, hosts[11].node_id))
        host.swim._news.forget(accused.node_id)
    begun = pump.now
    pump.run_until(lambda: accused.swim.identity.card.incarnation > 0, 20.0)
    return pump.now - begun


def test_a_suspect_that_is_told_first_refutes_sooner() -> None:
    """[Lifeguard §IV.C]: whoever pings a suspect tells it, though the rumour was told often enough.

    Streams are blocked here: by anti-entropy, which SWIM does not have, it would hear of it about as soon.
    """
    told = [refuted_after_s(seed, tells_suspect=True) for seed in range(3)]
    untold = [refuted_after_s(seed, tells_suspect=False) for seed in range(3)]
    assert max(told) < 12 * local().probe_interval_s < min(untold)


# §V, and what goes beyond it: each part by itself, in a small anomaly.

ANOMALY = Anomalies(members=16, blocked=3, block_s=6.0, total_s=30.0)


@functools.cache
def false_accusations(lifeguard: LifeguardConfig) -> int:
    return sum(run_anomalies(seed, ANOMALY, lifeguard).false_in_total for seed in (1, 2))


@pytest.mark.parametrize(
    "part",
    [
        {"health_max": 8},
        {"health_max": 8, "has_nacks": True},
        {"confirmations": 2, "suspicion_factor": 6.0},
        {"has_self_doubt": True},
        {"checks_deaths": True},
    ],
    ids=", ".join,
)
def test_each_part_by_itself_makes_false_accusations_rarer(part: dict[str, float]) -> None:
    """[Lifeguard §V]: probe and suspicion each help alone; so do the two that are ours."""
    alone = dataclasses.replace(plain_swim(), **part)  # type: ignore[arg-type]  # one switch each
    assert false_accusations(plain_swim()) > 50
    assert false_accusations(alone) < 0.6 * false_accusations(plain_swim())


def test_nacks_make_the_score_sharper() -> None:
    """[Lifeguard §IV.A]: with nacks an observer that hears no relay slows down sooner."""
    health = dataclasses.replace(plain_swim(), health_max=8)
    with_nacks = dataclasses.replace(health, has_nacks=True)
    assert false_accusations(with_nacks) < false_accusations(health)


def test_ours_accuses_nobody_where_lifeguard_accuses_few_and_swim_many() -> None:
    """[Lifeguard §V]: the whole is over ten times quieter than SWIM; ours not louder than that."""
    assert 10 * false_accusations(paper()) < false_accusations(plain_swim())
    assert false_accusations(LifeguardConfig()) <= false_accusations(paper())
