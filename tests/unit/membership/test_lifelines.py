"""This node's own lifelines: to whom, how many, and what follows when one ends."""

from __future__ import annotations

import random

from mesh.core.effects import CloseLifeline, Emit
from mesh.core.events import EventKind
from mesh.core.ids import MeshId
from mesh.core.lines import LineKept, LineLost
from mesh.core.requests import Dial, Outgoing
from mesh.membership.dissemination import Dissemination
from mesh.membership.identity import Identity
from mesh.membership.lifelines import (
    AGAIN_S,
    FAILURES_SAID,
    LOOK_S,
    RETRY_S,
    RETRY_S_MAX,
    Lifelines,
)
from mesh.membership.observers import Observers, observers_of
from mesh.membership.outbox import Outbox
from mesh.membership.table import MemberTable
from mesh.wire.records import Cause, State
from mesh.wire.swim_messages import Lifeline
from tests.unit.membership.pump import address, card, card_bytes, node_id


class Stage:
    """Host 1 with its lifelines, among members that the table knows."""

    def __init__(self, others: int, count: int = 4) -> None:
        self.now = 0.0
        self.identity = identity = Identity(card(1), MeshId(7))
        self.table = MemberTable(node_id(1))
        for number in range(2, others + 2):
            self.table.apply_card(0.0, card_bytes(number))
        self.observers = Observers(node_id(1), count)
        self.outbox = Outbox(identity, self.table, Dissemination(4))
        self.lines = Lifelines(
            count=count,
            identity=identity,
            table=self.table,
            observers=self.observers,
            outbox=self.outbox,
            rng=random.Random(1),
        )

    def run(self, duration_s: float) -> list[Outgoing]:
        """Keep the deadlines for so long; return what was asked for."""
        end, asked = self.now + duration_s, list[Outgoing]()
        self.lines.follow(self.now)
        while (due := self.lines.next_deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self.lines.handle_timeout(self.now)
            asked += self.outbox.take()
        self.now = end
        return asked

    def kill(self, number: int) -> None:
        rank = (1, 0, State.DEAD, Cause.SILENT)
        self.table.apply_verdict(self.now, node_id(number), rank)
        self.observers.follow(node_id(number), is_living=False)

    def dialled(self) -> dict[int, int]:
        """Run until the lifelines are opened; return the lifeline to each host by its number."""
        dials = [effect for effect in self.run(1.0) if isinstance(effect, Dial)]
        return {_number(dial): dial.lifeline_id for dial in dials}


def _number(dial: Dial) -> int:
    return next(number for number in range(2, 200) if address(number) == dial.to)


def test_lifelines_go_to_the_observers_and_name_the_session() -> None:
    stage = Stage(10)
    dials = [effect for effect in stage.run(1.0) if isinstance(effect, Dial)]
    others = [node_id(number) for number in range(2, 12)]
    expected = {node_id(_number(dial)) for dial in dials}
    assert expected == set(observers_of(node_id(1), others, 4))
    assert {dial.message for dial in dials} == {Lifeline(1)}
    assert stage.run(600.0) == [], "kept or not yet answered, nothing more is asked for"


def test_without_others_or_with_lifelines_off_there_is_nothing_to_do() -> None:
    assert Stage(0).run(60.0) == []
    assert Stage(5, count=0).run(60.0) == []


def test_lifeline_that_was_kept_and_ended_is_opened_again_at_once() -> None:
    stage = Stage(1)
    (lifeline_id,) = stage.dialled().values()
    stage.lines.handle(stage.now, LineKept(lifeline_id))
    assert stage.lines.kept == 1
    stage.lines.handle(stage.now, LineLost(lifeline_id))
    assert stage.lines.kept == 0
    (again,) = stage.run(AGAIN_S)
    assert isinstance(again, Dial)
    assert again.lifeline_id != lifeline_id


def test_lifelines_are_opened_anew_when_this_hosts_address_changes() -> None:
    stage = Stage(10)
    lines = stage.dialled()
    assert stage.identity.move(address(250))
    stage.table.apply_card(stage.now, stage.identity.card_bytes)
    asked = stage.run(1.0)
    closed = [effect.lifeline_id for effect in asked if isinstance(effect, CloseLifeline)]
    dialled = {_number(effect) for effect in asked if isinstance(effect, Dial)}
    assert sorted(closed) == sorted(lines.values())
    assert dialled == lines.keys()


def test_lifeline_to_an_observer_whose_address_changes_is_opened_anew_there() -> None:
    stage = Stage(10)
    lines = stage.dialled()
    mover = next(iter(lines))
    stage.table.apply_card(stage.now, card_bytes(mover, incarnation=1, address=address(250)))
    asked = stage.run(1.0)
    assert [effect for effect in asked if isinstance(effect, CloseLifeline)] == [
        CloseLifeline(lines[mover])
    ]
    (dial,) = [effect for effect in asked if isinstance(effect, Dial)]
    assert dial.to == address(250)
    stage.table.apply_card(stage.now, card_bytes(mover, incarnation=2, address=address(250)))
    assert stage.run(1.0) == []


def test_lifeline_that_comes_to_nothing_is_tried_ever_more_rarely() -> None:
    stage = Stage(1)
    (lifeline_id,) = stage.dialled().values()
    pauses = []
    for _ in range(12):
        lost_at = stage.now
        stage.lines.handle(stage.now, LineLost(lifeline_id))
        due = stage.lines.next_deadline()
        assert due is not None
        pauses.append(due - lost_at)
        (dial,) = [effect for effect in stage.run(due - stage.now) if isinstance(effect, Dial)]
        lifeline_id = dial.lifeline_id
    assert RETRY_S / 2 <= pauses[0] <= RETRY_S * 1.5
    assert max(pauses) <= RETRY_S_MAX * 1.5
    assert pauses[-1] >= RETRY_S_MAX / 2


def complaints(asked: list[Outgoing]) -> list[str]:
    events = [effect.event for effect in asked if isinstance(effect, Emit)]
    return [event.detail for event in events if event.kind is EventKind.WARN]


def test_that_no_lifeline_can_be_kept_is_said_once_and_in_plain_words() -> None:
    stage = Stage(2)
    lines, said = stage.dialled(), list[str]()
    for _ in range(2 * FAILURES_SAID):
        for lifeline_id in lines.values():
            stage.lines.handle(stage.now, LineLost(lifeline_id))
        asked = stage.run(RETRY_S_MAX * 2)
        said += complaints(asked)
        lines = {_number(dial): dial.lifeline_id for dial in asked if isinstance(dial, Dial)}
    (text,) = said
    assert text.startswith("none of 2 members keeps a TCP connection of this node open")


def test_one_lifeline_that_is_kept_leaves_nothing_to_complain_of() -> None:
    stage = Stage(2)
    kept, broken = stage.dialled().values()
    stage.lines.handle(stage.now, LineKept(kept))
    for _ in range(2 * FAILURES_SAID):
        stage.lines.handle(stage.now, LineLost(broken))
        asked = stage.run(RETRY_S_MAX * 2)
        assert complaints(asked) == []
        (broken,) = [dial.lifeline_id for dial in asked if isinstance(dial, Dial)]


def test_observer_that_dies_is_replaced_by_the_next_in_rank_and_its_lifeline_closed() -> None:
    stage = Stage(10)
    lines = stage.dialled()
    victim = next(iter(lines))
    stage.kill(victim)
    asked = stage.run(1.0)
    assert [effect for effect in asked if isinstance(effect, CloseLifeline)] == [
        CloseLifeline(lines[victim])
    ]
    (dial,) = [effect for effect in asked if isinstance(effect, Dial)]
    assert _number(dial) not in lines


def test_burst_of_newcomers_is_looked_at_once() -> None:
    stage = Stage(2)
    stage.dialled()
    for number in range(10, 60):
        stage.table.apply_card(stage.now, card_bytes(number))
        stage.observers.follow(node_id(number), is_living=True)
        stage.lines.follow(stage.now)
    due = stage.lines.next_deadline()
    assert due is not None
    assert due >= stage.now + LOOK_S
    asked = stage.run(1.0)
    assert sum(isinstance(effect, Dial) for effect in asked) <= 4


def test_after_stop_no_lifeline_is_opened() -> None:
    stage = Stage(3)
    lines = stage.dialled()
    stage.lines.stop()
    for lifeline_id in lines.values():
        stage.lines.handle(stage.now, LineLost(lifeline_id))
    stage.kill(2)
    assert stage.run(600.0) == []


def test_news_of_a_lifeline_that_was_closed_changes_nothing() -> None:
    stage = Stage(10)
    lines = stage.dialled()
    victim = next(iter(lines))
    stage.kill(victim)
    stage.run(1.0)
    stage.lines.handle(stage.now, LineKept(lines[victim]))
    stage.lines.handle(stage.now, LineLost(lines[victim]))
    assert stage.run(60.0) == []


def test_observer_that_is_dead_when_its_turn_comes_and_back_before_the_next_look_is_dialled() -> (
    None
):
    stage = Stage(1)
    (lifeline_id,) = stage.dialled().values()
    stage.lines.handle(stage.now, LineKept(lifeline_id))
    stage.lines.handle(stage.now, LineLost(lifeline_id))
    stage.kill(2)
    assert stage.run(LOOK_S / 2) == []  # it is dialled again meanwhile, were it not dead
    stage.table.apply_card(stage.now, card_bytes(2, boot=2))
    stage.observers.follow(node_id(2), is_living=True)
    assert [type(effect) for effect in stage.run(60.0)] == [Dial]


def test_lifelines_that_end_as_soon_as_they_are_kept_are_opened_ever_more_rarely_and_that_is_said() -> (
    None
):
    stage = Stage(1)
    (lifeline_id,) = stage.dialled().values()
    dials, began = 0, stage.now
    said: list[Outgoing] = []
    while stage.now < began + 60.0:
        stage.lines.handle(stage.now, LineKept(lifeline_id))
        stage.lines.handle(stage.now, LineLost(lifeline_id))
        said += [effect for effect in stage.outbox.take() if isinstance(effect, Emit)]
        asked: list[Outgoing] = []
        while not (found := [effect for effect in asked if isinstance(effect, Dial)]):
            asked = stage.run(0.01)
        dials, lifeline_id = dials + 1, found[0].lifeline_id
    assert dials <= 15
    assert len(said) == 1


def test_lifeline_that_was_kept_for_long_is_opened_again_at_once_however_it_began() -> None:
    stage = Stage(1)
    (lifeline_id,) = stage.dialled().values()
    for _ in range(8):
        stage.lines.handle(stage.now, LineLost(lifeline_id))
        (again,) = [effect for effect in stage.run(2 * RETRY_S_MAX) if isinstance(effect, Dial)]
        assert isinstance(again, Dial)
        lifeline_id = again.lifeline_id
    stage.lines.handle(stage.now, LineKept(lifeline_id))
    assert stage.run(60.0) == []
    stage.lines.handle(stage.now, LineLost(lifeline_id))
    assert [type(effect) for effect in stage.run(AGAIN_S)] == [Dial]
