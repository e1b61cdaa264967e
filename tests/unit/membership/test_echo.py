"""A node that handles no message accuses nobody, however long that lasts: it asks itself, and hears no answer."""

from __future__ import annotations

import errno

import pytest

from mesh.core.address import Address
from mesh.core.events import EventKind
from mesh.core.ids import NO_NODE, MeshId, NodeId, low32
from mesh.core.requests import Ask
from mesh.errors import TransportError
from mesh.membership.dissemination import Dissemination
from mesh.membership.echo import Echo
from mesh.membership.identity import Identity
from mesh.membership.outbox import Outbox
from mesh.membership.profile import local
from mesh.membership.table import MemberTable
from mesh.wire.packet import Packet
from mesh.wire.records import State
from mesh.wire.swim_messages import Ack
from tests.unit.membership.pump import Host, Pump, address, card, node_id


@pytest.fixture
def pump() -> Pump:
    return Pump()


def echoes(host: Host) -> list[Ask]:
    """Return the questions that a host has put to itself."""
    return [ask for ask in host.asked if ask.to == host.swim.identity.address]


def deaths(host: Host) -> list[str]:
    return [event.member for event in host.events if event.kind is EventKind.DEAD]


def verdict_bound_s(pump: Pump, size: int) -> float:
    """Return how soon a node that hears nobody, but itself, has its first verdict."""
    periods_s = 12 * pump.config.probe_interval_s
    return pump.config.longest_suspicion_s(size) + 4 * pump.config.pause_tolerance_s + periods_s


@pytest.mark.parametrize("size", [2, 3, 8])
def test_node_that_hears_not_even_itself_declares_nobody_dead_however_long(size: int) -> None:
    pump = Pump()
    hosts = pump.mesh(size)
    deaf, rest = hosts[0], hosts[1:]
    pump.deafen(deaf)
    pump.run(4 * verdict_bound_s(pump, size))
    assert any(deaf.state_of(other) is State.SUSPECT for other in rest)
    assert deaths(deaf) == []


@pytest.mark.parametrize("size", [2, 3, 8])
def test_suspects_of_whoever_hears_again_have_all_the_time_to_refute(size: int) -> None:
    pump = Pump()
    hosts = pump.mesh(size)
    deaf, rest = hosts[0], hosts[1:]
    pump.deafen(deaf)
    pump.run(3 * verdict_bound_s(pump, size))
    pump.heal()
    assert pump.run_until(
        lambda: all(deaf.state_of(other) is State.ALIVE for other in rest),
        30 * pump.config.probe_interval_s,
    )
    pump.run(verdict_bound_s(pump, size))
    assert deaths(deaf) == []


@pytest.mark.parametrize("size", [2, 3, 5])
def test_last_survivor_hears_itself_and_declares_the_others_dead_as_soon_as_without_asking(
    size: int,
) -> None:
    took_s = [survive(size, can_ask=can_ask) for can_ask in (True, False)]
    assert took_s[0] <= took_s[1] + 0.02


def survive(size: int, *, can_ask: bool) -> float:
    """Return how long the last of a mesh takes to declare all others dead, whose hosts were lost."""
    pump = Pump(seed=3)
    pump.cut = lambda a, b: a == b and not can_ask
    hosts = pump.mesh(size)
    lost = {host.address for host in hosts[1:]}
    pump.cut = lambda a, b: bool({a, b} & lost) or (a == b and not can_ask)
    for host in hosts[1:]:
        pump.kill(host)
    began_s = pump.now
    assert pump.run_until(lambda: len(deaths(hosts[0])) == size - 1, 60.0)
    return pump.now - began_s


def test_node_that_was_never_answered_at_its_address_judges_in_the_end(pump: Pump) -> None:
    pump.cut = lambda a, b: a == b  # as behind many a router that translates addresses
    hosts = pump.mesh(5)
    pump.deafen(hosts[0])
    assert pump.run_until(lambda: bool(deaths(hosts[0])), verdict_bound_s(pump, 5))


def test_in_good_days_a_node_asks_itself_once(pump: Pump) -> None:
    hosts = pump.mesh(5)
    pump.run(60.0)
    assert [len(echoes(host)) for host in hosts] == [1] * 5


def test_node_that_has_no_colleague_does_not_ask_itself(pump: Pump) -> None:
    host = pump.add(1)
    pump.run(60.0)
    assert echoes(host) == []


# The machine alone.

TIMED_OUT = TransportError("did not answer", errno.ETIMEDOUT)


class Asker:
    """An echo with an outbox of its own, at a node that has been answered once, at 0.01 s."""

    def __init__(self, *, is_known: bool = True) -> None:
        self.identity = Identity(card(1), MeshId(7))
        table, news = MemberTable(self.identity.node_id), Dissemination(4.0)
        self.outbox = Outbox(self.identity, table, news)
        self.echo = Echo(config=local(), identity=self.identity, outbox=self.outbox)
        self.echo.learn(0.0)
        assert self.asked() == [self.identity.address]
        if is_known:
            assert self.echo.handle_reply(0.01, self.reply())

    def asked(self) -> list[Address]:
        """Return and forget where the question was put."""
        return [out.to for out in self.outbox.take() if isinstance(out, Ask)]

    def reply(self, sender: NodeId | None = None, boot: int = 1) -> Packet:
        ack = Ack(0, NO_NODE, low32(boot), self.identity.vitals)
        return Packet(self.identity.mesh_id, sender or self.identity.node_id, (ack,))


def test_without_one_answer_silence_says_nothing() -> None:
    asker = Asker(is_known=False)
    asker.echo.handle_reply(5.0, TIMED_OUT)
    asker.echo.ask(100.0)
    assert asker.asked() == []
    assert asker.echo.is_heard(100.0)
    assert not asker.echo.take_missed()


def test_answer_counts_for_a_period_and_a_half() -> None:
    asker = Asker()
    assert asker.echo.is_heard(0.3)
    assert not asker.echo.is_heard(0.32)


def test_question_is_put_at_a_pace_and_not_while_one_is_open() -> None:
    asker = Asker()
    asker.echo.ask(10.0)
    assert len(asker.asked()) == 1
    asker.echo.ask(11.0)
    assert asker.asked() == []
    asker.echo.handle_reply(11.0, TIMED_OUT)
    asker.echo.ask(11.0)
    assert len(asker.asked()) == 1
    asker.echo.handle_reply(11.01, asker.reply())
    asker.echo.ask(11.05)
    assert asker.asked() == []


def test_missed_answer_is_said_once() -> None:
    asker = Asker()
    asker.echo.ask(10.0)
    assert not asker.echo.take_missed()
    asker.echo.handle_reply(10.1, TIMED_OUT)
    assert asker.echo.take_missed()
    assert not asker.echo.take_missed()


@pytest.mark.parametrize("number", [errno.ECONNREFUSED, errno.ENETUNREACH, errno.ECONNRESET])
def test_what_the_kernel_says_is_an_answer_as_well_for_it_was_heard(number: int) -> None:
    asker = Asker()
    asker.echo.ask(10.0)
    assert asker.echo.handle_reply(10.0, TransportError("no way there", number))
    assert asker.echo.is_heard(10.0)


@pytest.mark.parametrize(
    "number",
    [None, errno.ETIMEDOUT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS],
)
def test_question_that_was_not_put_or_has_run_out_is_not_answered(number: int | None) -> None:
    asker = Asker()
    asker.echo.ask(10.0)
    assert not asker.echo.handle_reply(10.1, TransportError("nothing", number))
    assert not asker.echo.is_heard(10.1)


def test_first_question_that_was_lost_is_put_again_after_a_while() -> None:
    asker = Asker(is_known=False)
    asker.echo.handle_reply(0.3, TIMED_OUT)
    asker.asked()
    asker.echo.learn(1.0)
    assert asker.asked() == []
    asker.echo.learn(1000.0)
    assert len(asker.asked()) == 1
    asker.echo.handle_reply(1000.0, asker.reply())
    assert not asker.echo.is_heard(1010.0), "from now on silence of its own counts"


def test_refusal_from_the_start_shows_no_way_to_the_own_address() -> None:
    asker = Asker(is_known=False)
    asker.echo.handle_reply(0.01, TransportError("refused", errno.ECONNREFUSED))
    assert asker.echo.is_heard(100.0)


def test_another_node_or_session_at_the_own_address_is_not_this_node() -> None:
    for reply in (Asker().reply(sender=node_id(2)), Asker().reply(boot=2)):
        asker = Asker()
        asker.echo.ask(10.0)
        assert not asker.echo.handle_reply(10.01, reply)
        assert not asker.echo.is_heard(10.01)


def test_at_another_address_it_is_learnt_anew_whether_this_node_is_answered() -> None:
    asker = Asker()
    asker.echo.learn(1.0)
    assert asker.asked() == []
    assert asker.identity.move(address(99))
    asker.echo.learn(2.0)
    assert asker.asked() == [address(99)]
    asker.echo.handle_reply(7.0, TIMED_OUT)
    assert asker.echo.is_heard(100.0)
