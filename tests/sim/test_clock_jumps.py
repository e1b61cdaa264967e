"""Clocks that jump: the monotonic one ahead, the wall clock anywhere. Nobody is accused and work goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from mesh.core.events import EventKind
from mesh.core.ids import MeshId
from mesh.core.stored import Kept
from mesh.membership.lifeguard import LifeguardConfig, plain_swim
from mesh.node.config import NodeConfig, profile
from mesh.node.node import Node
from mesh.sim.fleet import Fleet, FleetOptions
from mesh.sim.host import Host
from mesh.sim.network import Conditions, Network
from mesh.sim.world import World
from mesh.wire.packet import encode_message, encode_packet
from mesh.wire.swim_messages import Suspect
from mesh.wire.work_messages import Spec
from mesh.work.commands import ListTasks, Submit

HOSTS = 5
JUMP_S = 60.0


class Stage:
    """Five members that know each other. `unix_s`: what each one's wall clock shows at the start."""

    def __init__(
        self,
        profile_name: str = "local",
        unix_s: Sequence[float] = (),
        lifeguard: LifeguardConfig | None = None,
    ) -> None:
        self._unix_s = list(unix_s)
        self.world = World(3, self._make_node, Network(3, Conditions()), check=True)
        swim = replace(profile(profile_name), lifeguard=lifeguard or LifeguardConfig())
        fleet = Fleet(self.world, swim, FleetOptions())
        for _ in range(HOSTS):
            fleet.boot(fleet.add())
        self.world.run_for(10.0)
        self.world.events.clear()

    def _make_node(self, config: NodeConfig, seed: int, kept: Kept) -> Node:
        if self._unix_s:
            host = self.world.hosts[-1]
            now = host.clock.read(self.world.loop.now_s)
            config = replace(config, unix_offset_s=self._unix_s[host.index] - now)
        return Node(config, seed, kept)

    def jump(self, hosts: Sequence[Host], by_s: float) -> None:
        """Put clocks ahead as a suspended machine's: timers first, then what came in a moment's pause."""
        for host in hosts:
            self.world.pause(host)
        self.world.run_for(0.03)
        for host in hosts:
            host.clock.offset_s += by_s
            self.world.resume(host, timers_first=True)

    def suspect_last(self) -> None:
        """Let the first host hear from the second that the last one is suspected."""
        first, second, last = (self.world.hosts[number] for number in (0, 1, -1))
        member = next(m for m in self.view(first).members if m["name"] == last.spec.name)
        word = Suspect(last.node_id, member["boot"], member["incarnation"], second.node_id)
        mesh_id = MeshId(first.disk["mesh_id"])
        data = encode_packet(mesh_id, second.node_id, [encode_message(word)])
        self.world.inject(first, second.spec.address, data)
        assert EventKind.SUSPECT in self.accusations()

    def view(self, host: Host) -> Any:  # noqa: ANN401 - a View
        assert host.node is not None
        return host.node.view(host.clock.read(self.world.loop.now_s))

    def accusations(self) -> list[EventKind]:
        kinds = [observed.event.kind for observed in self.world.events]
        return [kind for kind in kinds if kind in {EventKind.SUSPECT, EventKind.DEAD}]

    def assert_whole(self) -> None:
        for host in self.world.hosts:
            assert [m["state"] for m in self.view(host).members] == ["alive"] * HOSTS


@pytest.mark.parametrize("profile_name", ["local", "lan"])
@pytest.mark.parametrize("count", [1, 2, HOSTS])
def test_clocks_that_jump_ahead_by_a_minute_accuse_nobody(profile_name: str, count: int) -> None:
    stage = Stage(profile_name)
    for number in range(20):
        stage.jump(stage.world.hosts[:count], JUMP_S)
        stage.world.run_for(1.5 + 0.057 * number)  # so that each phase of a probe is met
    assert stage.accusations() == []
    stage.assert_whole()


@pytest.mark.parametrize(
    ("lifeguard", "buried"),
    [(LifeguardConfig(), False), (plain_swim(), True)],
    ids=["ours", "swim"],
)
@pytest.mark.parametrize("count", [1, HOSTS])
def test_suspect_is_not_buried_because_a_clock_jumped(
    lifeguard: LifeguardConfig, count: int, buried: bool
) -> None:
    stage = Stage(lifeguard=lifeguard)
    stage.suspect_last()
    stage.jump(stage.world.hosts[:count], JUMP_S)
    stage.world.run_for(10.0)
    assert (EventKind.DEAD in stage.accusations()) == buried
    stage.assert_whole()


@pytest.mark.parametrize("by_s", [0.05, 0.2, 1.0, 30.0])
def test_clock_that_jumps_again_and_again_buries_nobody(by_s: float) -> None:
    stage = Stage()
    for number in range(40):
        stage.jump(stage.world.hosts[2:3], by_s)
        stage.world.run_for(0.05 + 0.007 * number)
    assert EventKind.DEAD not in stage.accusations()
    stage.world.run_for(5.0)
    stage.assert_whole()


def test_task_whose_keepers_clock_jumps_ends_once() -> None:
    stage = Stage()
    keeper = stage.world.hosts[0]
    stage.world.command(keeper, Submit(1, Spec(task_id="job", argv=("true",))))
    stage.jump([keeper], JUMP_S)
    stage.world.run_for(10.0)
    (task,) = stage.view(keeper).tasks
    assert (task["state"], task["attempt"]) == ("done", 1)


WALL_CLOCKS = (-2e9, 0.0, 1.7e9, 4.3e9, 2.5e11)
"""Before 1970, at its beginning, these days, beyond 32 bits, and the year 9892."""


def test_wall_clocks_at_odds_keep_neither_members_apart_nor_work_from_being_done() -> None:
    stage = Stage(unix_s=WALL_CLOCKS)
    stage.assert_whole()
    for host in stage.world.hosts:
        task_id = f"of-{host.index}"
        stage.world.command(host, Submit(1, Spec(task_id=task_id, argv=("true",), key=task_id)))
    stage.world.run_for(5.0)
    for host in stage.world.hosts:
        (task,) = stage.view(host).tasks
        assert task["state"] == "done"
        assert task["created"] == pytest.approx(WALL_CLOCKS[host.index], abs=60.0)
        stage.world.command(host, ListTasks(2))
    stage.world.run_for(5.0)
    listed = [a.result for _, _, a in stage.world.answers if a.command_id == 2]
    assert len(listed) == HOSTS
    for found in listed:
        assert found["silent"] == []
        assert {task["id"] for task in found["tasks"]} == {f"of-{n}" for n in range(HOSTS)}
    assert stage.accusations() == []
