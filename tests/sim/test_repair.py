"""Patience before a death, and repair after the faults: each checker sees what is planted for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mesh.core.events import Event, EventKind
from mesh.membership.profile import SwimConfig
from mesh.membership.suspicion import Suspected
from mesh.membership.swim import Swim
from mesh.membership.sync import Sync
from mesh.node.config import LifeguardConfig, profile
from mesh.node.node import Node
from mesh.sim.checkers import Violation
from mesh.sim.experiment import Settings, run_experiment
from mesh.sim.fleet import Fleet, FleetOptions
from mesh.sim.host import Host
from mesh.sim.network import Conditions, Network
from mesh.sim.patience import Patience, Word
from mesh.sim.repair import Repair, death_bound_s, return_bound_s
from mesh.sim.world import Observed, World
from mesh.wire.packet import encode_message, encode_packet
from mesh.wire.records import Cause
from mesh.wire.swim_messages import Dead

SWIM = profile("local")
ROUNDS = replace(SWIM, lifeguard=LifeguardConfig(has_lifelines=False, has_turns=False))
# Observers find out by themselves, lifelines are opened anew and tell: here only gossip and comparing are to mend.
QUIET_S = 1.0  # in which news is told, by whoever may speak, often enough to rest


class Stage:
    """Members that have known each other for long, under the eyes of the checkers."""

    def __init__(self, count: int, seed: int = 5, swim: SwimConfig = SWIM) -> None:
        self.world = World(seed, Node, Network(seed, Conditions()))
        self.patience = Patience(self.world, swim)
        self.repair = Repair(self.world.census, swim)
        Fleet(self.world, swim, FleetOptions()).boot_acquainted(count)
        self.hosts = self.world.hosts
        self.world.run_for(2.0)

    def tell(self, host: Host, member: Host, accuser: Host, cause: Cause) -> None:
        """Let `accuser` tell a host that a member is dead."""
        node, judge = host.node, accuser.node
        assert isinstance(node, Node)
        assert isinstance(judge, Node)
        known = node._swim.table.get(member.node_id)
        assert known is not None
        accuser_id = judge.identity.node_id
        verdict = Dead(member.node_id, known.boot, known.incarnation, cause, accuser_id)
        message = [encode_message(verdict)]
        packet = encode_packet(judge.identity.mesh_id, judge.identity.node_id, message)
        self.world.inject(host, accuser.spec.address, packet)

    def begin(self) -> None:
        """Note what is wrong just now."""
        now_s = self.world.loop.now_s
        views = {
            host.spec.name: host.node.view(host.clock.read(now_s))
            for host in self.hosts
            if host.node is not None
        }
        self.repair.begin(now_s, self.hosts, views, was_clean=True)

    def collect(self, bound_s: float) -> list[Violation]:
        """Let the time pass in which it must be repaired."""
        self.world.run_for(bound_s + 0.01)
        return self.repair.collect(self.world.loop.now_s)


def observe(stage: Stage, kind: EventKind, cause: str = "", *evidence: str) -> list[str]:
    """Show the checker an event of host 0 about host 1."""
    member = stage.hosts[1]
    event = Event(kind=kind, member_id=member.node_id, cause=cause, evidence=evidence)
    stage.patience.observe(Observed(stage.world.loop.now_s, stage.hosts[0], event))
    return [violation.text for violation in stage.patience.violations]


def test_a_death_after_the_whole_tolerance_is_patient() -> None:
    stage = Stage(3)
    observe(stage, EventKind.SUSPECT)
    stage.world.run_for(SWIM.pause_tolerance_s)
    assert observe(stage, EventKind.DEAD, "silent") == []


def test_a_death_before_the_tolerance_is_a_violation() -> None:
    stage = Stage(3)
    observe(stage, EventKind.SUSPECT)
    stage.world.run_for(SWIM.pause_tolerance_s / 2)
    (text,) = observe(stage, EventKind.DEAD, "silent")
    assert "found 0.500 s" in text


def test_a_refutation_ends_the_time_that_was_waited() -> None:
    stage = Stage(3)
    observe(stage, EventKind.SUSPECT)
    stage.world.run_for(SWIM.pause_tolerance_s)
    observe(stage, EventKind.REFUTE)
    (text,) = observe(stage, EventKind.DEAD, "silent")
    assert "no suspicion at all" in text


def test_whoever_believes_a_verdict_is_as_patient_as_its_author() -> None:
    stage = Stage(3)
    (text,) = observe(stage, EventKind.DEAD, "silent", "declared dead by node-2")
    assert text.endswith(": declared dead by node-2")
    stage.patience.violations.clear()
    judged(stage)
    assert observe(stage, EventKind.DEAD, "silent", "declared dead by node-2") == []


def judged(stage: Stage) -> None:
    """Let host 2 rightly judge host 1 in its present word."""
    member, observer = stage.hosts[1], stage.hosts[2]
    for kind, cause in ((EventKind.SUSPECT, ""), (EventKind.DEAD, "silent")):
        event = Event(kind=kind, member_id=member.node_id, cause=cause)
        stage.patience.observe(Observed(stage.world.loop.now_s, observer, event))
        stage.world.run_for(SWIM.pause_tolerance_s)


@pytest.mark.parametrize(
    ("later", "is_dead", "is_excused"),
    [
        ((1, 0), True, True),
        ((1, 1), True, False),  # it refuted the death, and has its whole time again
        ((2, 0), True, False),
        ((1, 1), False, True),  # the refutation came along with the verdict that it refutes
        ((0, 9), False, False),
    ],
)
def test_a_rightful_verdict_excuses_only_one_about_the_same_word(
    monkeypatch: pytest.MonkeyPatch, later: Word, *, is_dead: bool, is_excused: bool
) -> None:
    stage = Stage(3)
    monkeypatch.setattr(Patience, "_word", lambda *_: ((1, 0), True))
    judged(stage)
    assert not stage.patience.violations
    monkeypatch.setattr(Patience, "_word", lambda *_: (later, is_dead))
    texts = observe(stage, EventKind.DEAD, "silent", "declared dead by node-2")
    assert (texts == []) == is_excused


def test_word_is_read_from_the_view_of_whoever_saw_the_death() -> None:
    stage = Stage(3)
    first, member = stage.hosts[:2]
    boot = member.node.view(0.0).node["boot"] if member.node else None
    assert stage.patience._word(first, member.node_id) == ((boot, 0), False)


def test_more_than_silence_needs_no_patience() -> None:
    assert observe(Stage(3), EventKind.DEAD, "ended") == []


LOST = Settings(nodes=8, fault="host", profile="local", idle_s=1.0)


def test_burial_at_half_the_time_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_experiment(1, LOST).has_held
    whole = vars(Suspected)["timeout_s"]
    half = property(lambda self: whole.fget(self) / 2)
    monkeypatch.setattr(Suspected, "timeout_s", half)
    result = run_experiment(1, LOST)
    assert "9c" in {violation.invariant for violation in result.violations}


# Who is held dead by one observer alone, while streams are blocked, so that only datagrams can repair it.


def held_dead(seed: int) -> list[Violation]:
    """Let six observers each hold another member dead; return who is not back in time."""
    stage = Stage(24, seed, ROUNDS)
    network = stage.world.network
    observers, members = stage.hosts[:6], stage.hosts[6:12]
    indices = [host.index for host in observers]
    network.cut_streams(range(24), range(24))
    cut = network.cut(indices, range(24))  # so that they keep it to themselves
    for observer, member in zip(observers, members, strict=True):
        stage.tell(observer, member, stage.hosts[23], Cause.CRASHED)
    stage.world.run_for(QUIET_S)
    network.mend(cut)
    stage.begin()
    assert len(stage.repair) == 6
    return stage.collect(return_bound_s(SWIM, 24, was_clean=True))


HELD_DEAD_SEED = 13  # with which nothing else tells them in time


def test_who_is_held_dead_by_one_alone_is_back_within_a_round_of_probes() -> None:
    assert held_dead(HELD_DEAD_SEED) == []


def test_an_ack_that_does_not_tell_who_is_held_dead_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Swim, "_verdict_on", lambda self, now, sender: ())
    violations = held_dead(HELD_DEAD_SEED)
    assert {violation.invariant for violation in violations} == {"9d"}


# A death of which some heard nothing.


def missed(seed: int) -> list[Violation]:
    """Let three observers miss a death that all others know; return who does not hear of it in time."""
    stage = Stage(40, seed, ROUNDS)
    network = stage.world.network
    victim, *rest = stage.hosts
    observers, informed = rest[:3], rest[3:]
    stage.world.crash(victim, power=False)  # its host would tell them, too
    cut = network.cut(range(40), [host.index for host in observers])
    for host in informed:
        stage.tell(host, victim, informed[0] if host is not informed[0] else rest[4], Cause.CRASHED)
    stage.world.run_for(QUIET_S)
    streams = network.cut_streams(range(40), range(40))  # else they are told before one can look
    network.mend(cut)
    stage.world.run_for(2 * SWIM.moment_s(40))  # whoever was suspected meanwhile has refuted it
    network.mend(streams)
    stage.begin()
    assert len(stage.repair) >= 2
    return stage.collect(death_bound_s(SWIM, 40, was_clean=True))


def test_a_death_that_some_missed_is_known_to_all_in_time() -> None:
    assert missed(3) == []


def test_anti_entropy_that_sends_no_deaths_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_the_dead(sync: Sync, buckets: tuple[int, ...]) -> list[object]:
        return [member for member in whole(sync, buckets) if member.is_living]

    whole = Sync._in_buckets
    monkeypatch.setattr(Sync, "_in_buckets", without_the_dead)
    violations = missed(3)
    assert {violation.invariant for violation in violations} == {"9e"}


def test_bounds_of_repair_follow_the_periods() -> None:
    def slower(swim: SwimConfig) -> SwimConfig:
        return replace(swim, probe_interval_s=2 * swim.probe_interval_s)

    for bound_s in (return_bound_s, death_bound_s):
        assert bound_s(SWIM, 10) < bound_s(slower(SWIM), 10)
        assert bound_s(SWIM, 10, was_clean=True) < bound_s(SWIM, 10)
