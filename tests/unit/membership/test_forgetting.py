"""A gone member is to be removed for good: who is meant, who may not be, who hears of it."""

import re

import pytest

from mesh.core.events import EventKind
from mesh.core.ids import format_id
from mesh.errors import CommandRefused
from mesh.membership.forgetting import Forgotten
from mesh.wire.records import State
from mesh.wire.swim_messages import Suspect
from tests.unit.membership.forgets import MINUTE_S, forget, states, with_a_dead_host
from tests.unit.membership.pump import Host, Pump, are_equal, node_id


@pytest.fixture
def pump() -> Pump:
    return Pump()


@pytest.fixture
def hosts(pump: Pump) -> list[Host]:
    return with_a_dead_host(pump)


# Who is meant.


def test_a_dead_member_is_forgotten_by_its_name_on_all(pump: Pump, hosts: list[Host]) -> None:
    found = forget(pump, hosts[1], "host-5")
    assert found == Forgotten(node_id=node_id(5), name="host-5", was="dead")
    pump.run(1.0)
    assert states(hosts[:4], hosts[4]) == {State.FORGOTTEN}


def test_everybody_says_once_that_it_was_forgotten_and_who_asked(
    pump: Pump, hosts: list[Host]
) -> None:
    forget(pump, hosts[1], format_id(node_id(5)))
    pump.run(MINUTE_S)
    for host in hosts[:4]:
        (event,) = [e for e in host.events if e.kind is EventKind.FORGET]
        assert (event.member, event.member_id, event.state) == ("host-5", node_id(5), "forgotten")
        assert event.evidence == ("asked for at host-2",)


def test_a_member_that_left_is_forgotten_too(pump: Pump, hosts: list[Host]) -> None:
    pump.leave(hosts[3])
    pump.run(2.0)
    assert forget(pump, hosts[0], "host-4").was == "left"
    pump.run(1.0)
    assert states(hosts[:3], hosts[3]) == {State.FORGOTTEN}


@pytest.mark.parametrize(
    ("whom", "text"),
    [
        ("host-3", "host-3 is alive: only a member that is dead or has left is forgotten"),
        (format_id(node_id(3)), "host-3 is alive"),
        ("host-1", "host-1 is this node itself: `mesh leave` lets it go"),
        ("host-77", "no member is known here by the name or id 'host-77'"),
        (format_id(node_id(77)), "no member is known here by the name or id"),
        ("", "no member is known here by the name or id ''"),
    ],
)
def test_the_living_and_the_unknown_are_refused_and_nothing_changes(
    pump: Pump, hosts: list[Host], whom: str, text: str
) -> None:
    hosts[0].events.clear()
    with pytest.raises(CommandRefused, match=re.escape(text)):
        forget(pump, hosts[0], whom)
    pump.run(5.0)
    assert hosts[0].events == []
    assert are_equal(hosts[:4])


def test_a_suspect_is_refused(pump: Pump, hosts: list[Host]) -> None:
    first, second, third = hosts[:3]
    pump.at_host(first, second, Suspect(third.node_id, 1, 0, second.node_id))
    with pytest.raises(CommandRefused, match="host-3 is suspected, and may still answer"):
        forget(pump, first, "host-3")


def namesakes(pump: Pump, count: int, name: str = "worker") -> list[Host]:
    """So many hosts that had one name, one after the other, all of them dead."""
    first = pump.mesh(2)[0]
    gone: list[Host] = []
    for number in range(10, 10 + count):
        gone.append(pump.add(number, 1, name=name))
        pump.run(3.0)
        pump.kill(gone[-1])
        assert pump.run_until(lambda: first.state_of(gone[-1]) is State.DEAD, 20.0)
    return gone


def test_of_several_that_had_a_name_the_one_that_is_meant_is_told_by_its_id(pump: Pump) -> None:
    gone = namesakes(pump, 3)
    first = pump.hosts[0]
    with pytest.raises(CommandRefused, match="several members called worker are gone") as refused:
        forget(pump, first, "worker")
    for host in gone:
        assert f"{format_id(host.node_id)} (dead for " in str(refused.value)
        assert first.state_of(host) is State.DEAD
    forget(pump, first, format_id(gone[1].node_id).upper())
    assert [first.state_of(host) for host in gone] == [
        State.DEAD,
        State.FORGOTTEN,
        State.DEAD,
    ]


def test_the_last_of_a_name_that_is_not_forgotten_is_meant_by_it(pump: Pump) -> None:
    older, newer = namesakes(pump, 2)
    first = pump.hosts[0]
    forget(pump, first, format_id(older.node_id))
    assert forget(pump, first, "worker").node_id == newer.node_id


def test_a_living_holder_of_the_same_name_is_left_alone(pump: Pump) -> None:
    (gone,) = namesakes(pump, 1)
    first = pump.hosts[0]
    living = pump.add(30, 1, name="worker")
    pump.run(3.0)
    assert first.state_of(living) is State.ALIVE
    assert forget(pump, first, "worker").node_id == gone.node_id
    pump.run(5.0)
    assert first.state_of(living) is State.ALIVE
    with pytest.raises(CommandRefused, match="worker is alive"):
        forget(pump, first, "worker")


def test_to_forget_again_changes_nothing(pump: Pump, hosts: list[Host]) -> None:
    forget(pump, hosts[0], "host-5")
    pump.run(5.0)
    before = len(hosts[1].events)
    assert forget(pump, hosts[0], "host-5").was == "forgotten"
    assert forget(pump, hosts[1], format_id(node_id(5))).was == "forgotten"
    pump.run(5.0)
    assert len(hosts[1].events) == before


def test_the_name_of_a_forgotten_member_is_free(pump: Pump, hosts: list[Host]) -> None:
    forget(pump, hosts[0], "host-5")
    heir = pump.add(50, 1, name="host-5")
    pump.run(3.0)
    assert heir.swim.identity.card.name == "host-5"
    assert not any(EventKind.CONFLICT in host.kinds() for host in hosts)


# What nobody does any more.


def test_a_forgotten_member_is_not_tried_again(pump: Pump, hosts: list[Host]) -> None:
    forget(pump, hosts[0], "host-5")
    pump.run(2.0)
    for host in hosts:
        host.sent.clear()
    pump.run(MINUTE_S)
    assert not any(sent.to == hosts[4].address for host in hosts for sent in host.sent)
    assert hosts[0].swim._reconnect.next_deadline() is None
