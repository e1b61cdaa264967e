"""Whom a node pings by turns, whom it waits for, and whom it looks at out of turn."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from mesh.core.ids import NodeId
from mesh.membership.lifeguard import plain_swim
from mesh.membership.observers import Observers, observers_of
from mesh.membership.probe_order import ProbeOrder
from mesh.membership.profile import SwimConfig, lan
from mesh.membership.table import MemberTable
from mesh.membership.turns import GRACE_S_SHARE, Turns
from mesh.wire.records import Cause, State
from tests.unit.membership.pump import card_bytes, node_id

PERIOD_S = lan().probe_interval_s


class Stage:
    """Host 1 among others that its table knows."""

    def __init__(self, others: int, config: SwimConfig | None = None) -> None:
        self.config = config or lan()
        self.table = MemberTable(node_id(1))
        for number in range(2, others + 2):
            self.table.apply_card(0.0, card_bytes(number))
        self.turns = Turns(
            config=self.config,
            own_id=node_id(1),
            table=self.table,
            observers=Observers(node_id(1), 4),
            order=ProbeOrder(random.Random(1)),
        )

    def kill(self, node: NodeId) -> None:
        self.table.apply_verdict(0.0, node, (1, 0, State.DEAD, Cause.SILENT))
        self.turns.follow(node, is_living=False)

    def rounds(self, count: int) -> list[NodeId]:
        return [member.node_id for _ in range(count) if (member := self.turns.next())]

    @property
    def observed(self) -> list[NodeId]:
        """Those among whose observers this node is."""
        everybody = [node_id(1), *self.table.living]
        return [
            other
            for other in self.table.living
            if node_id(1) in observers_of(other, everybody, self.config.lifeguard.observers)
        ]

    def missed(self, now: float, *, is_healthy: bool = True) -> list[NodeId]:
        return [member.node_id for member in self.turns.take_due(now, is_healthy=is_healthy)]


def test_observers_are_pinged_by_turns_in_their_rank() -> None:
    stage = Stage(20)
    observers = observers_of(node_id(1), stage.table.living, 4)
    assert stage.rounds(9) == [*observers, *observers, observers[0]]


def test_observer_that_goes_is_replaced_and_nobody_loses_its_turn() -> None:
    stage = Stage(20)
    first, second = stage.rounds(2)
    stage.kill(second)
    rest = observers_of(node_id(1), stage.table.living, 4)
    assert second not in rest
    assert first in rest
    assert sorted(stage.rounds(4)) == sorted(rest)


def test_two_members_ping_each_other_every_period_and_one_alone_nobody() -> None:
    assert Stage(1).rounds(3) == [node_id(2)] * 3
    assert Stage(0).rounds(3) == []


def test_without_observers_every_member_is_pinged_once_a_round() -> None:
    stage = Stage(20, replace(lan(), lifeguard=plain_swim()))
    assert sorted(stage.rounds(20)) == sorted(stage.table.living)
    stage.turns.heard(0.0, pinged_by=node_id(2))
    stage.turns.hasten(0.0, node_id(2))
    assert stage.turns.next_deadline() is None


def test_member_that_does_not_ping_when_its_turn_is_back_is_missed() -> None:
    stage = Stage(20)
    subject = stage.observed[0]
    stage.turns.heard(10.0, pinged_by=subject)
    due = stage.turns.next_deadline()
    assert due == pytest.approx(10.0 + (4 + GRACE_S_SHARE) * PERIOD_S)
    stage.turns.heard(14.0)  # somebody else
    assert stage.missed(14.05) == []
    assert stage.missed(14.2) == [subject]
    assert stage.missed(14.3) == []


def test_member_that_pings_in_time_is_never_missed() -> None:
    stage = Stage(20)
    for turn in range(10):
        now = 10.0 + 4 * PERIOD_S * turn
        assert stage.missed(now) == []
        stage.turns.heard(now, pinged_by=stage.observed[0])


def test_who_hears_nobody_or_is_in_bad_health_misses_nobody() -> None:
    stage = Stage(20)
    subject = stage.observed[0]
    stage.turns.heard(10.0, pinged_by=subject)
    assert stage.missed(14.2) == []  # heard nobody for 4.2 periods
    stage.turns.heard(15.1)
    assert stage.missed(15.3, is_healthy=False) == []


def test_who_is_well_again_a_period_later_misses_a_member_then_and_not_a_turn_later() -> None:
    stage = Stage(20)
    subject = stage.observed[0]
    stage.turns.heard(10.0, pinged_by=subject)
    stage.turns.heard(14.1)
    assert stage.missed(14.2, is_healthy=False) == []
    assert stage.turns.next_deadline() == pytest.approx(14.2 + PERIOD_S)
    stage.turns.heard(15.1)
    assert stage.missed(14.2 + PERIOD_S) == [subject]
    assert stage.missed(15.3) == []


def test_pinged_by_somebody_whom_it_does_not_observe_it_waits_for_nothing() -> None:
    stage = Stage(20)
    stranger = next(other for other in stage.table.living if other not in stage.observed)
    stage.turns.heard(10.0, pinged_by=stranger)
    stage.turns.heard(14.0)
    assert stage.missed(14.2) == []
    assert stage.turns.next_deadline() is None


def test_pause_gives_everybody_another_turn() -> None:
    stage = Stage(20)
    stage.turns.heard(10.0, pinged_by=stage.observed[0])
    stage.turns.void(13.0)
    stage.turns.heard(14.1)
    assert stage.missed(14.2) == []
    assert stage.turns.next_deadline() == pytest.approx(13.0 + 4.1 * PERIOD_S)


def test_suspect_is_looked_at_at_once_by_its_observers_and_nobody_else() -> None:
    stage = Stage(20)
    other = next(other for other in stage.table.living if other not in stage.observed)
    stage.turns.hasten(10.0, other)
    assert stage.turns.next_deadline() is None
    stage.turns.hasten(10.0, stage.observed[0])
    assert stage.turns.next_deadline() == 10.0
    assert stage.missed(10.0, is_healthy=False) == [stage.observed[0]]
    assert stage.missed(10.0) == []


def test_who_is_gone_is_neither_missed_nor_looked_at() -> None:
    stage = Stage(20)
    subject = stage.observed[0]
    stage.turns.heard(10.0, pinged_by=subject)
    stage.turns.hasten(10.0, subject)
    stage.kill(subject)
    stage.turns.heard(14.1)
    assert stage.missed(14.2) == []
