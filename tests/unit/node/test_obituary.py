"""What a session's obituary says, to whom, and when it is written: always true, and of this session alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mesh.core.effects import Effect, Stop, WriteObituary
from mesh.core.ids import NodeId
from mesh.core.letter import Letter
from mesh.membership.identity import INCARNATION_MAX
from mesh.membership.profile import local
from mesh.membership.testimony import WITNESSED_MAX
from mesh.node.commands import Leave
from mesh.node.node import Node
from mesh.node.obituary import READERS_MAX, SETTLED_S, WRITTEN_BURST, WRITTEN_S
from mesh.wire.packet import decode_packet
from mesh.wire.records import Cause, State
from mesh.wire.swim_messages import Alive, Dead, Left, Suspect
from tests.unit.membership.pump import address, card_bytes, node_id
from tests.unit.node.talk import MESH, NOW, from_host, run_until_stop, started, tell


def written(effects: list[Effect]) -> list[tuple[Letter, ...]]:
    return [effect.letters for effect in effects if isinstance(effect, WriteObituary)]


def readers(letters: tuple[Letter, ...]) -> list[NodeId]:
    return sorted(letter.reader for letter in letters)


def said(letter: Letter) -> Dead:
    packet = decode_packet(letter.data)
    assert (packet.mesh_id, packet.sender) == (MESH, node_id(1))
    (message,) = packet.messages
    assert isinstance(message, Dead)
    return message


def meet(node: Node, *numbers: int) -> list[tuple[Letter, ...]]:
    effects: list[Effect] = []
    for number in numbers:
        effects += tell(node, number, Alive(card_bytes(number)))
        effects += settle(node)
    return written(effects)


def settle(node: Node) -> list[WriteObituary]:
    return node._obituary.step(NOW + SETTLED_S)


def meet_slowly(node: Node, *numbers: int) -> None:
    for number in numbers:
        data = from_host(number, Alive(card_bytes(number)))
        node.handle_datagram(NOW + number * WRITTEN_S, address(number), data)
        node._obituary.step(NOW + number * WRITTEN_S + SETTLED_S)


def state_of(node: Node, number: int) -> tuple[State, Cause]:
    member = node._swim.table.get(node_id(number))
    assert member is not None
    return member.state, member.cause


def test_it_says_that_this_session_has_ended_to_each_member_where_it_is() -> None:
    node = started()
    *_, last = meet(node, 2, 3)
    assert readers(last) == [node_id(2), node_id(3)]
    assert sorted(letter.to for letter in last) == [address(2), address(3)]
    for letter in last:
        assert said(letter) == Dead(node_id(1), 1, INCARNATION_MAX, Cause.ENDED, node_id(1))


def test_in_a_small_mesh_each_member_gets_a_letter_its_observers_the_first() -> None:
    node = started()
    meet_slowly(node, *range(2, 42))
    told = [letter.reader for letter in node._obituary._written.letters]
    assert sorted(told) == sorted(node._swim.table.living)
    observers = node._swim.observers.among(node._swim.table.living, READERS_MAX)
    assert observers
    assert told[: len(observers)] == list(observers)


def test_it_is_written_to_a_few_of_many_and_to_its_observers_first() -> None:
    node = started()
    meet_slowly(node, *range(2, 3 + WITNESSED_MAX))
    last = node._obituary._written.letters
    assert len(last) == READERS_MAX
    observers = node._swim.observers.among(node._swim.table.living, READERS_MAX)
    assert observers
    assert set(observers) <= set(readers(last))


def test_voters_are_told_though_they_are_neither_observers_nor_first() -> None:
    node = started()
    meet_slowly(node, *range(2, 3 + WITNESSED_MAX))
    told = readers(node._obituary._written.letters)
    voter = next(one for one in node._swim.table.living if one not in told)
    node._obituary._voters = lambda: (voter, node.identity.node_id, NodeId(99))
    assert node._obituary.step(NOW + 100 * WRITTEN_S) == []
    (last,) = written([*node._obituary.step(NOW + 100 * WRITTEN_S + SETTLED_S)])
    assert voter in readers(last)
    assert len(last) == READERS_MAX


def test_a_node_that_knows_nobody_writes_none() -> None:
    assert written(Node.start(Node(started().config, seed=1), NOW)) == []


def test_where_silence_alone_is_to_tell_of_a_death_none_is_written() -> None:
    plain = replace(local(), lifeguard=replace(local().lifeguard, has_lifelines=False))
    assert meet(started(swim=plain), 2, 3) == []


def test_nothing_is_written_while_nothing_changes() -> None:
    node = started()
    meet(node, 2, 3)
    assert meet(node, 2, 3) == []


def test_a_storm_of_changes_is_written_at_a_bounded_pace_and_the_last_of_them_in_the_end() -> None:
    node = started()
    count = len(meet(node, *range(2, 2 + 3 * WRITTEN_BURST)))
    assert count <= WRITTEN_BURST
    due = node._obituary.next_deadline()
    assert due is not None
    assert NOW + SETTLED_S < due <= NOW + SETTLED_S + WRITTEN_S
    effects: list[Effect] = []
    while node._obituary.next_deadline() is not None:
        at = node.next_timeout()
        assert at is not None
        assert at < NOW + 5 * WRITTEN_S
        effects += node.handle_timeout(at)
    assert len(written(effects)) <= 2


def test_what_changes_and_changes_back_before_it_was_written_is_not_due() -> None:
    node = started()
    meet(node, *range(2, 2 + 3 * WRITTEN_BURST))
    machine = node._obituary
    assert machine.next_deadline() is not None
    machine._seen = machine._state()
    assert settle(node) == []
    assert machine.next_deadline() is None


def test_a_change_waits_a_moment_for_others_that_come_with_it() -> None:
    node = started()
    (first,) = written(tell(node, 2, Alive(card_bytes(2))))
    assert readers(first) == [node_id(2)]
    assert written(tell(node, 3, Alive(card_bytes(3)))) == []
    assert node._obituary.next_deadline() == NOW + SETTLED_S
    assert written(tell(node, 4, Alive(card_bytes(4)))) == []
    ((*_, last),) = [written(node.handle_timeout(NOW + SETTLED_S))]
    assert readers(last) == [node_id(2), node_id(3), node_id(4)]
    assert node._obituary.next_deadline() is None


def test_a_node_that_says_farewell_takes_it_back_first() -> None:
    node = started()
    meet(node, 2)
    effects = node.handle_command(NOW, Leave("asked to"))
    assert written(effects) == [()]
    assert run_until_stop(node)
    assert node._obituary._written.letters == ()


def test_a_node_that_stops_for_another_with_its_id_takes_it_back() -> None:
    node = started()
    meet(node, 2)
    effects = tell(node, 2, Alive(card_bytes(1, boot=9, address=address(55))))
    *_, before_last, last = effects
    assert isinstance(last, Stop)
    assert before_last == WriteObituary(())


def test_a_session_whose_number_was_raised_has_another_obituary() -> None:
    node = started()
    meet(node, 2)
    tell(node, 2, Left(node_id(1), 9, 0))
    ((letter,),) = written([*settle(node)])
    assert said(letter).boot == node.identity.card.boot == 10


def test_whoever_reads_it_holds_that_session_for_ended_whatever_it_has_said() -> None:
    node = started(2)
    tell(node, 1, Alive(card_bytes(1, incarnation=70)))
    tell(node, 3, Alive(card_bytes(3)), Suspect(node_id(1), 1, 70, node_id(3)))
    (letter,) = [one for one in meet(started(), 2)[-1] if one.reader == node_id(2)]
    node.handle_datagram(NOW, address(77), letter.data)
    assert state_of(node, 1) == (State.DEAD, Cause.ENDED)
    tell(node, 3, Alive(card_bytes(1, incarnation=71)))
    assert state_of(node, 1) == (State.DEAD, Cause.ENDED)


def test_whoever_reads_it_compares_no_notes_with_where_it_came_from() -> None:
    node = started(2)
    tell(node, 1, Alive(card_bytes(1)))
    (letter,) = [one for one in meet(started(), 2)[-1] if one.reader == node_id(2)]
    for _ in range(3):
        effects = node.handle_datagram(NOW, address(77), letter.data)
        assert address(77) not in [getattr(effect, "to", None) for effect in effects]


@pytest.mark.parametrize("order", ["before", "after"])
def test_a_later_session_outranks_it(order: str) -> None:
    node = started(2)
    tell(node, 1, Alive(card_bytes(1)))
    (letter,) = [one for one in meet(started(), 2)[-1] if one.reader == node_id(2)]
    if order == "before":
        node.handle_datagram(NOW, address(77), letter.data)
    tell(node, 1, Alive(card_bytes(1, boot=2)))
    node.handle_datagram(NOW, address(77), letter.data)
    assert state_of(node, 1) == (State.ALIVE, Cause.NONE)
