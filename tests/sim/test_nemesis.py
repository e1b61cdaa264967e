"""The one who makes things go wrong: what each fault does, and that healing ends them all."""

from __future__ import annotations

from math import inf

import pytest

from mesh.core.effects import Effect
from mesh.core.rng import stream
from mesh.node.config import profile
from mesh.node.node import Node
from mesh.sim.faults import Fault, FaultKind, plan
from mesh.sim.fleet import SEED_HOSTS, Fleet, FleetOptions
from mesh.sim.nemesis import Nemesis
from mesh.sim.network import Conditions, Network
from mesh.sim.world import World


class Stage:
    """Five members of a mesh, and the one who makes things go wrong."""

    def __init__(self) -> None:
        self.world = World(3, Node, Network(3, Conditions()), check=True)
        self.fleet = Fleet(self.world, profile("local"), FleetOptions())
        for _ in range(5):
            self.fleet.boot(self.fleet.add())
        self.world.run_for(2.0)
        self.nemesis = Nemesis(self.world, self.fleet, stream(3, "nemesis"))

    def begin(
        self, kind: FaultKind, *hosts: int, duration_s: float = 1.0, amount: float = 0.0
    ) -> None:
        self.nemesis.begin(Fault(self.world.loop.now_s, kind, hosts, duration_s, amount))

    @property
    def running(self) -> list[int]:
        return [host.index for host in self.world.hosts if host.node is not None]


def test_a_plan_is_drawn_from_its_seed_alone() -> None:
    def drawn(seed: int) -> tuple[Fault, ...]:
        return plan(stream(seed, "faults"), 10, (1.0, 5.0), 1.0)

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_plans_use_every_kind_and_keep_to_their_window() -> None:
    faults = [
        fault
        for n in range(200)
        for fault in plan(stream(n, "f"), 5 + n % 26, (1.0, 5.0), 1.0, long_s=9.0)
    ]
    assert {fault.kind for fault in faults} == set(FaultKind) - {
        FaultKind.STANDSTILL,
        FaultKind.UNFIT,
    }
    assert all(f.duration_s >= 9.0 for f in faults if f.kind is FaultKind.LONG_CUT)
    assert all(1.0 <= fault.at_s <= 5.0 for fault in faults)


def test_no_seed_host_goes_for_good_and_the_first_keeps_its_disk() -> None:
    for n in range(300):
        for fault in plan(stream(n, "f"), 8, (1.0, 5.0), 1.0):
            assert fault.duration_s != inf or all(host >= SEED_HOSTS for host in fault.hosts)
            is_of_disk = fault.kind in {FaultKind.DISK, FaultKind.ROLL_BACK}
            assert not is_of_disk or 0 not in fault.hosts


@pytest.mark.parametrize("kind", [FaultKind.CRASH, FaultKind.POWER, FaultKind.MOVE, FaultKind.DISK])
def test_who_crashes_comes_back(kind: FaultKind) -> None:
    stage = Stage()
    host = stage.world.hosts[3]
    node_id, address = host.node_id, host.spec.address
    stage.begin(kind, 3)
    assert stage.running == [0, 1, 2, 4]
    assert host.is_powered == (kind is not FaultKind.POWER)
    stage.world.run_for(1.1)
    assert stage.running == [0, 1, 2, 3, 4]
    assert (host.node_id != node_id) == (kind is FaultKind.DISK)
    assert (host.spec.address != address) == (kind is FaultKind.MOVE)


def test_a_mesh_whose_processes_all_died_at_once_finds_itself_again() -> None:
    stage = Stage()
    before = {host.index: host.disk["mesh_id"] for host in stage.world.hosts}
    stage.begin(FaultKind.OUTAGE, 0, 1, 2, 3, 4)
    assert stage.running == []
    stage.world.run_for(3.0)
    for host in stage.world.hosts:
        assert host.node is not None
        view = host.node.view(host.clock.read(stage.world.loop.now_s))
        assert [member["state"] for member in view.members] == ["alive"] * 5
        assert host.disk["mesh_id"] == before[host.index]


def test_what_is_down_cannot_crash_again() -> None:
    stage = Stage()
    stage.begin(FaultKind.CRASH, 3, duration_s=inf)
    stage.begin(FaultKind.CRASH, 3)
    assert [text for _, text, _ in stage.nemesis.log] == ["crash node-3 for good"]


def test_a_pause_ends() -> None:
    stage = Stage()
    stage.begin(FaultKind.PAUSE, 2, 3)
    assert [host.is_paused for host in stage.world.hosts] == [False, False, True, True, False]
    stage.world.run_for(1.1)
    assert not any(host.is_paused for host in stage.world.hosts)


@pytest.mark.parametrize(
    ("kind", "closed", "open_"),
    [
        (FaultKind.HALVES, [(0, 2), (2, 0), (1, 4)], [(0, 1), (2, 3)]),
        (FaultKind.ISOLATE, [(0, 1), (1, 0), (0, 4), (4, 0)], [(2, 3)]),
        (FaultKind.ONE_WAY, [(0, 2), (1, 4)], [(2, 0), (4, 1), (0, 1)]),
    ],
)
def test_cuts_close_what_they_say_and_open_again(
    kind: FaultKind, closed: list[tuple[int, int]], open_: list[tuple[int, int]]
) -> None:
    stage = Stage()
    stage.begin(kind, 0, 1)
    network = stage.world.network
    assert not any(network.passes(*link) for link in closed)
    assert all(network.passes(*link) for link in open_)
    stage.world.run_for(1.1)
    assert all(network.passes(*link) for link in closed)


def test_overlapping_losses_leave_the_worst() -> None:
    stage = Stage()
    stage.begin(FaultKind.LOSS, duration_s=3.0, amount=0.2)
    stage.begin(FaultKind.LOSS, duration_s=1.0, amount=0.5)
    assert stage.world.network.conditions.loss_ratio == 0.5
    stage.world.run_for(1.1)
    assert stage.world.network.conditions.loss_ratio == 0.2
    stage.world.run_for(2.1)
    assert stage.world.network.conditions.loss_ratio == 0.0


def test_who_leaves_for_good_stops_by_itself_and_stays_off() -> None:
    stage = Stage()
    stage.begin(FaultKind.LEAVE, 4, duration_s=inf)
    stage.world.run_for(2.0)
    assert stage.running == [0, 1, 2, 3]
    assert [(host.index, stop.exit_code) for _, host, stop in stage.world.stops] == [(4, 0)]


def test_a_new_host_joins() -> None:
    stage = Stage()
    stage.begin(FaultKind.JOIN)
    stage.world.run_for(1.0)
    assert stage.running == [0, 1, 2, 3, 4, 5]


def test_early_timers_disturb_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    called: list[Node] = []
    whole = Node.handle_timeout

    def counted(node: Node, now: float) -> list[Effect]:
        called.append(node)
        return whole(node, now)

    monkeypatch.setattr(Node, "handle_timeout", counted)

    def said() -> tuple[list[int], int]:
        return [host.traffic.packets_sent for host in stage.world.hosts], len(stage.world.events)

    before = said()
    for index in range(5):
        stage.begin(FaultKind.EARLY, index)
    assert called == [host.node for host in stage.world.hosts]
    assert said() == before, "nothing was due"
    stage.world.run_for(2.0)
    assert said()[1] == before[1]
    assert stage.running == [0, 1, 2, 3, 4]


def test_healing_ends_everything_and_lets_nothing_begin() -> None:
    stage = Stage()
    stage.begin(FaultKind.CRASH, 1, duration_s=100.0)
    stage.begin(FaultKind.PAUSE, 2, duration_s=100.0)
    stage.begin(FaultKind.HALVES, 0, 1, duration_s=100.0)
    stage.begin(FaultKind.LOSS, duration_s=100.0, amount=0.5)
    stage.begin(FaultKind.LINK, 3, 4, duration_s=100.0, amount=1.0)
    stage.begin(FaultKind.CLOG, 3, duration_s=100.0)
    stage.begin(FaultKind.CLOCK, 3, duration_s=100.0, amount=0.01)
    stage.nemesis.heal()
    stage.begin(FaultKind.CRASH, 3)
    assert stage.running == [0, 1, 2, 3, 4]
    assert all(host.is_clean and not host.is_paused for host in stage.world.hosts)
    assert stage.world.network.passes(0, 4)
    assert stage.world.network.conditions.loss_ratio == 0.0
    assert stage.world.network.datagram_arrivals(0.0, 3, 4)[0] < 1.0


def test_a_fault_marks_whom_it_excuses() -> None:
    stage = Stage()
    stage.begin(FaultKind.PAUSE, 2)
    stage.begin(FaultKind.CLOCK, 3, amount=0.001)
    assert [host.is_clean for host in stage.world.hosts] == [True, True, False, True, True]
    stage.world.run_for(1.1)
    assert stage.world.hosts[2].is_clean
    assert stage.world.hosts[2].clean_since_s == pytest.approx(3.0)


def test_a_deaf_host_handles_nothing_but_its_timers_and_catches_up_in_order() -> None:
    stage = Stage()
    host = stage.world.hosts[2]
    stage.begin(FaultKind.DEAF, 2, duration_s=1.0)
    received, sent = host.traffic.datagrams_received, host.traffic.datagrams_sent
    stage.world.run_for(0.9)
    assert host.traffic.datagrams_received == received
    assert host.traffic.datagrams_sent > sent
    assert host.datagrams_waiting > 0
    stage.world.run_for(0.2)
    assert host.takes_messages
    assert host.datagrams_waiting == 0
    assert host.traffic.datagrams_received > received


def test_a_deaf_host_that_dies_boots_again_with_open_ears() -> None:
    stage = Stage()
    stage.begin(FaultKind.DEAF, 2, duration_s=5.0)
    stage.begin(FaultKind.CRASH, 2, duration_s=0.5)
    stage.world.run_for(1.0)
    assert stage.world.hosts[2].takes_messages
    stage.world.run_for(5.0)
    assert stage.running == [0, 1, 2, 3, 4]
