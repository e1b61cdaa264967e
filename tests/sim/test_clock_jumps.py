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
from mesh.sim.runs import Act, Run
from mesh.sim.world import World
from mesh.tasks.commands import GetTask, ListTasks, New, Submit
from mesh.wire.packet import encode_message, encode_packet
from mesh.wire.swim_messages import Suspect
from mesh.wire.work_messages import Spec

HOSTS = 5
JUMP_S = 60.0


def submit(task_id: str) -> Submit:
    """Return the command that submits a task."""
    return Submit(1, New(Spec(task_id=task_id, argv=("true",))))


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

    def ask(self, host: Host, command: GetTask | ListTasks) -> Any:  # noqa: ANN401 - a task as JSON has it
        """Return what a node answers."""
        answered = len(self.world.answers)
        self.world.command(host, command)
        self.world.run_for(1.0)
        ((_, _, answer),) = self.world.answers[answered:]
        assert answer.error is None, answer
        return answer.result

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


@pytest.mark.parametrize("jumps", ["runner", "others"])
def test_task_of_which_a_clock_jumps_runs_no_two_times_at_once_and_ends_once(jumps: str) -> None:
    stage = Stage()
    seen: list[tuple[Run, Act]] = []
    stage.world.runs.watchers.append(lambda run, act: seen.append((run, act)))
    stage.world.command(stage.world.hosts[0], submit("job"))
    stage.world.run_for(0.03)
    (run, _), *_ = seen
    others = [host for host in stage.world.hosts if host is not run.host]
    stage.jump([run.host] if jumps == "runner" else others[:1], JUMP_S)
    stage.world.run_for(20.0)
    moving: list[Run] = []
    for one, act in seen:
        if act in {Act.START, Act.GO_ON}:
            moving.append(one)
        else:
            moving.remove(one)
        assert len(moving) <= 1
    task = stage.ask(stage.world.hosts[-1], GetTask(2, "job"))
    assert task["state"] == "done"
    assert [one["exit_code"] for one in task["attempts"]][-1] == 0


WALL_CLOCKS = (-2e9, 0.0, 1.7e9, 4.3e9, 2.5e11)
"""Before 1970, at its beginning, these days, beyond 32 bits, and the year 9892."""


def test_wall_clocks_at_odds_keep_neither_members_apart_nor_work_from_being_done() -> None:
    stage = Stage(unix_s=WALL_CLOCKS)
    stage.assert_whole()
    names = {f"of-{host.index}" for host in stage.world.hosts}
    for host in stage.world.hosts:
        stage.world.command(host, submit(f"of-{host.index}"))
    stage.world.run_for(5.0)
    listed = set()
    for host in stage.world.hosts:
        for name in sorted(names):
            assert stage.ask(host, GetTask(2, name))["state"] == "done"
        listed |= {task["id"] for task in stage.ask(host, ListTasks(3))["tasks"]}
    assert listed == names
    assert stage.accusations() == []
