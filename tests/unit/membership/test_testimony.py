"""Who tells whom what was seen of a crash: each member is to hear two words at once, from one of two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from mesh.core.address import Address
from mesh.core.effects import SendDatagram
from mesh.core.requests import Outgoing
from mesh.membership.evidence import SPARE_S
from mesh.membership.testimony import WITNESSED_MAX
from mesh.wire.packet import decode_packet
from mesh.wire.records import State
from mesh.wire.swim_messages import Suspect
from tests.unit.membership.observer import BOTH, REFUSAL, Observer, asks
from tests.unit.membership.pump import address, node_id

LIFELINES = 4


PARTNER = 3


@pytest.fixture
def first_in_rank(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Observer]:
    """Return host 1 as the observer of host 2 that is of that rank, 0 or 1; host 3 is the other of these two."""

    def of_rank(rank: int, size: int = 8) -> Observer:
        order = [1, PARTNER] if rank == 0 else [PARTNER, 1]
        order += [number for number in range(1, size + 1) if number not in order]
        lots = {node_id(number): -place for place, number in enumerate(order)}
        monkeypatch.setattr("mesh.membership.observers.lot", lambda _, observer: lots[observer])
        return Observer(size=size)

    return of_rank


def told(outputs: list[Outgoing]) -> dict[Address, int]:
    """Return how many words of witnesses each address is told."""
    counts: Counter[Address] = Counter()
    for output in outputs:
        if isinstance(output, SendDatagram):
            messages = decode_packet(output.data).messages
            counts[output.to] += sum(isinstance(m, Suspect) and m.seen != 0 for m in messages)
    return {to: count for to, count in counts.items() if count}


def sees_the_crash(observer: Observer) -> list[Outgoing]:
    (ask,) = observer.hang_up(1.0)
    return observer.answers(1.0, ask, REFUSAL)


def word(number: int) -> Suspect:
    return Suspect(node_id(2), 1, 0, node_id(number), BOTH)


def test_first_witness_tells_the_other_observers_alone(
    first_in_rank: Callable[..., Observer],
) -> None:
    observer = first_in_rank(0)
    counts = told(sees_the_crash(observer))
    assert counts == {address(number): 1 for number in (PARTNER, 4, 5)}


def test_the_first_two_share_the_mesh_and_tell_each_member_both_words_once(
    first_in_rank: Callable[..., Observer],
) -> None:
    told_by: list[set[Address]] = []
    for rank in (0, 1):
        observer = first_in_rank(rank)
        sees_the_crash(observer)
        counts = told(observer.hears(1.001, PARTNER, word(PARTNER)))
        assert observer.state[0] is State.DEAD
        assert set(counts.values()) == {2}
        told_by.append(set(counts))
    both = {address(number) for number in range(3, 9)}
    assert not told_by[0] & told_by[1]
    assert both <= told_by[0] | told_by[1]


def test_second_witness_tells_both_words_to_its_fellows_and_its_half_at_once(
    first_in_rank: Callable[..., Observer],
) -> None:
    observer = first_in_rank(1)
    (ask,) = asks(observer.hears(1.0, PARTNER, word(PARTNER)))
    assert observer.hang_up(1.001) == [], "it has asked already"
    counts = told(observer.answers(1.001, ask, REFUSAL))
    assert observer.state[0] is State.DEAD
    assert counts[address(PARTNER)] >= 2
    assert len(counts) > LIFELINES - 1


def test_one_whose_word_nobody_adds_to_tells_everybody(
    first_in_rank: Callable[..., Observer],
) -> None:
    observer = first_in_rank(0)
    sees_the_crash(observer)
    assert not told(observer.waits(1.0 + SPARE_S / 2))
    counts = told(observer.waits(1.0 + SPARE_S))
    assert set(counts) == {address(number) for number in range(2, observer.swim.table.size + 1)}
    assert list(counts)[-1] == address(2), "the accused is told as well, after all others"


def test_two_words_are_told_to_all_when_the_other_is_none_of_the_first_two(
    first_in_rank: Callable[..., Observer],
) -> None:
    observer = first_in_rank(0)
    sees_the_crash(observer)
    third = 4
    counts = told(observer.hears(1.001, third, word(third)))
    assert {address(number) for number in range(3, 9)} <= set(counts)
    assert set(counts.values()) == {2}


def test_larger_mesh_is_told_in_part_and_gossip_tells_the_rest(
    first_in_rank: Callable[..., Observer],
) -> None:
    observer = first_in_rank(0, WITNESSED_MAX + 2)
    sees_the_crash(observer)
    counts = told(observer.hears(1.001, PARTNER, word(PARTNER)))
    assert len(counts) == WITNESSED_MAX
    assert observer.waits(1.2), "gossip"
