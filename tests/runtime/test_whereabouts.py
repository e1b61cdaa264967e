"""Noticing that this host's address is another now, and leaving alone what works."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from mesh.core.address import Address
from mesh.core.events import Event, EventKind
from mesh.core.ids import NodeId
from mesh.node.commands import TakeAddress
from mesh.runtime import endpoint as endpoint_module
from mesh.runtime import whereabouts as module
from mesh.runtime.endpoint import source_towards
from mesh.runtime.reach import Reach
from mesh.runtime.settings import AgentSettings
from mesh.runtime.whereabouts import MEMBERS_MAX, Whereabouts
from tests.runtime.scripted_driver import PEER, ScriptedNode, driven

OLD, NEW, PORT = "10.0.0.5", "10.0.0.6", 7946
ME = NodeId(1)
ANYWHERE = Address("0.0.0.0", PORT)
REFUTED = Event(kind=EventKind.REFUTE, member_id=ME)
ALONE = Event(kind=EventKind.SEEK, member_id=ME)


class Stage:
    """A host whose kernel is `routes`: from where it sends to whom. Its own addresses lead to themselves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> None:  # noqa: ANN401 - what settings take
        self.own = [OLD]
        self.routes: dict[str, str] = {}
        self.asked: list[str] = []
        self.members: list[dict[str, Any]] = [_row(OLD, is_self=True)]
        monkeypatch.setattr(module, "source_towards", self._source_towards)
        monkeypatch.setattr(endpoint_module, "source_towards", self._source_towards)
        monkeypatch.setattr(endpoint_module, "_only_host", self._only_host)
        self.whereabouts = Whereabouts(
            Address(settings.pop("at", OLD), PORT),
            settings.pop("bound", ANYWHERE),
            settings=AgentSettings(data_dir=Path("unused"), **settings),
            reach=Reach(is_loopback_only=False),
            node_id=ME,
            members=lambda: self.members,
        )

    def meet(self, *hosts: str, state: str = "alive", through: str | None = None) -> None:
        self.members += [_row(host, state=state) for host in hosts]
        if through is not None:
            self.routes |= dict.fromkeys(hosts, through)

    def look(self) -> str | None:
        found = self.whereabouts.look()
        assert found is None or found.port == PORT
        return None if found is None else found.host

    def _source_towards(self, host: str) -> str | None:
        self.asked.append(host)
        return host if host in self.own else self.routes.get(host)

    def _only_host(self, _bound: str) -> str:
        (only,) = self.own
        return only


def _row(host: str, *, state: str = "alive", is_self: bool = False) -> dict[str, Any]:
    return {"address": str(Address(host, PORT)), "state": state, "self": is_self}


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch)


def test_while_the_address_is_the_hosts_one_question_is_asked_and_nothing_changes(
    stage: Stage,
) -> None:
    stage.meet("10.0.0.7", through=NEW)
    assert [stage.look() for _ in range(3)] == [None] * 3
    assert stage.asked == [OLD] * 3


def test_an_address_that_is_gone_is_replaced_by_the_one_that_faces_the_members_once(
    stage: Stage,
) -> None:
    stage.own = [NEW, "172.17.0.1"]
    stage.meet("172.17.0.2", through="172.17.0.1")
    stage.meet("10.0.0.7", "10.0.0.8", through=NEW)
    assert stage.look() == NEW
    assert stage.look() is None


def test_while_there_is_no_way_to_the_members_nothing_changes(stage: Stage) -> None:
    stage.own = ["172.17.0.1"]  # of a bridge that stands on this host alone
    stage.meet("10.0.0.7")
    assert stage.look() is None
    stage.own = [OLD]
    assert stage.look() is None
    stage.own, stage.routes = [NEW], {"10.0.0.7": NEW}
    assert stage.look() == NEW


@pytest.mark.parametrize("trouble", [REFUTED, ALONE])
def test_an_address_on_the_wrong_side_is_left_in_trouble_and_not_before(
    stage: Stage, trouble: Event
) -> None:
    stage.own = [OLD, NEW]
    stage.meet("10.0.0.7", through=NEW)
    assert stage.look() is None
    stage.whereabouts.note(Event(kind=EventKind.REFUTE, member_id=NodeId(2)))
    stage.whereabouts.note(Event(kind=EventKind.UPDATE, member_id=ME))
    assert stage.look() is None
    stage.whereabouts.note(trouble)
    assert stage.look() == NEW
    assert stage.look() is None


def test_an_address_that_faces_any_member_is_kept_whatever_is_refuted(stage: Stage) -> None:
    stage.own = [OLD, NEW]
    stage.meet("10.0.0.7", "10.0.0.8", through=NEW)
    stage.meet("10.0.0.9", through=OLD)
    stage.whereabouts.note(REFUTED)
    assert stage.look() is None


def test_who_hears_nobody_looks_towards_those_it_knew(stage: Stage) -> None:
    stage.own = [NEW]
    stage.meet("10.0.0.7", state="dead", through=NEW)
    assert stage.look() == NEW


def test_who_knows_nobody_looks_as_at_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, seeds=("a.name.invalid:7946", "10.0.0.7:7946"))
    stage.own = [NEW, "172.17.0.1"]
    stage.routes["10.0.0.7"] = NEW
    assert stage.look() == NEW
    assert "a.name.invalid" not in stage.asked


def test_loopback_is_not_taken_in_place_of_an_address_that_others_reach(stage: Stage) -> None:
    stage.own = ["127.0.0.1"]
    stage.meet("127.0.0.2", through="127.0.0.1")
    assert stage.look() is None


def test_loopback_is_left_for_an_address_that_others_reach(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch, at="127.0.0.1")
    stage.own = ["127.0.0.1", NEW]
    stage.meet("10.0.0.7", through=NEW)
    assert stage.look() is None
    stage.whereabouts.note(REFUTED)
    assert stage.look() == NEW


def test_members_that_this_socket_cannot_speak_to_do_not_count(stage: Stage) -> None:
    stage.own = [NEW, "2001:db8::5"]
    stage.meet("2001:db8::7", "2001:db8::8", through="2001:db8::5")
    stage.meet("10.0.0.7", through=NEW)
    assert stage.look() == NEW


def test_an_address_of_one_link_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, at="2001:db8::5", bound=Address("::", PORT))
    stage.own = ["fe80::1%eth0"]
    stage.meet("2001:db8::7", through="fe80::1%eth0")
    assert stage.look() is None


def test_what_the_user_named_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for settings in ({"advertise": (OLD, 0)}, {"bound": Address(OLD, PORT)}):
        stage = Stage(monkeypatch, **settings)
        stage.own = [NEW]
        stage.meet("10.0.0.7", through=NEW)
        stage.whereabouts.note(REFUTED)
        assert stage.look() is None
        assert stage.asked == []


def test_only_so_many_members_are_looked_at(stage: Stage) -> None:
    stage.own = [NEW]
    stage.meet(*(f"10.0.1.{n}" for n in range(200)), through=NEW)
    assert stage.look() == NEW
    assert len(stage.asked) == 1 + MEMBERS_MAX


def test_the_kernel_sends_to_an_address_of_this_host_from_that_address() -> None:
    assert source_towards("127.0.0.1") == "127.0.0.1"
    assert source_towards("::1") in {"::1", None}  # None: this host does not speak it


async def test_another_address_is_looked_for_once_a_second_and_only_while_the_node_is_awake(
    autojump_clock: trio.testing.MockClock,
) -> None:
    node = ScriptedNode()
    async with driven(node) as (driver, hand, _):
        await trio.sleep(60)
        assert hand.looks <= 1
        before = hand.looks
        for _ in range(30):
            await trio.sleep(0.1)
            driver.handle_datagram(PEER, b"x")
        assert 2 <= hand.looks - before <= 3
        assert not [given for given in node.inputs if given[0] == "command"]


async def test_another_address_is_told_to_the_node_before_what_woke_it() -> None:
    node = ScriptedNode()
    async with driven(node) as (driver, hand, _):
        hand.moved_to = Address("10.0.0.9", 7946)
        driver.handle_request(PEER, b"lets me in?")
        assert node.inputs[-2:] == [
            ("command", TakeAddress(hand.moved_to)),
            ("request", b"lets me in?"),
        ]
