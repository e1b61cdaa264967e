"""The faults, one row each: what is done while tasks run, for how long, and how it is mended.

kill_node        SIGKILL of a node; its guardian lives, clears its work away and says so
kill_guardian    SIGKILL of a guardian; its node must kill its work and end
kill_both        both at once
stop_owner       SIGSTOP of a node that runs tasks, past its lease; SIGCONT
stop_voter       the same for a voter
stop_steward     the same for the node that is first voter of every task
stop_tree        guardian, node and work stand still together, as a host that is frozen; then go on together
stop_all         SIGSTOP of every node at once, past all leases; their guardians freeze and kill the work
power_cut        SIGKILL of every process of every node; all start again
host_cut         a host's packets are dropped, both ways
one_way_cut      what a host sends is dropped, and it hears all; the next time the other way round
reject           a host's packets are refused aloud, as by a firewall: connections are reset
loss             every fifth packet that reaches any host is dropped
full_disk        a voter's disk is full, for a while
rolled_back      a voter's store is replaced by an older one, as from a backup; then another voter is stopped
join_leave       members come, leave, and come back
rolling_restart  every node in turn is told to end, and starts again
client_dies      clients are killed while they submit; others submit the same again
same_key_twice   every task is submitted by two clients at once, under one id
"""

from __future__ import annotations

import contextlib
import errno
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.faults.client import Pace, submit_all
from bench.faults.cuts import host_cut, loss, one_way_cut, reject
from bench.faults.rounds import REST_S, each
from bench.faults.scene import Fault, Scene
from bench.faults.stage import Stage
from mesh.errors import MeshError
from mesh.fleet.clearing import wait_until
from mesh.fleet.fleet import FleetError
from mesh.runtime.datadir import STORE_NAME

PAST_LEASE_S: Final = 6.0
"""Owner 2 s, voter 3 s, grace 0.5 s: by then another has it, and for long enough to be seen."""

FULL_S: Final = 5.0
DISK_MIB: Final = 48  # so that there is room before it is filled, and again after
CLIENT_LIFE_S: Final = 1.5

# Processes that end, or stand still.


def _kill_node(scene: Scene) -> None:
    def act(scene: Scene, victim: str) -> None:
        _kill(scene, victim, [scene.stage.node(victim).pid])

    each(scene, scene.voter_or_other, act)


def _kill_guardian(scene: Scene) -> None:
    def act(scene: Scene, victim: str) -> None:
        _kill(scene, victim, [scene.stage.node(victim).outer_pid])

    each(scene, scene.voter_or_other, act)


def _kill_both(scene: Scene) -> None:
    def act(scene: Scene, victim: str) -> None:
        node = scene.stage.node(victim)
        _kill(scene, victim, [node.outer_pid, node.pid])

    each(scene, scene.voter_or_other, act)


def _kill(scene: Scene, victim: str, pids: Sequence[int]) -> None:
    node_pid = scene.stage.node(victim).pid
    scene.stage.signal(pids, signal.SIGKILL)
    scene.stage.wait_gone(victim, node_pid)
    scene.hold(REST_S)
    scene.stage.restart(victim)


def _stop(scene: Scene, pids: Sequence[int]) -> None:
    scene.stage.signal(pids, signal.SIGSTOP)
    try:
        scene.hold(PAST_LEASE_S)
    finally:
        scene.stage.signal(pids, signal.SIGCONT)


def _stop_node(scene: Scene, victim: str) -> None:
    _stop(scene, [scene.stage.node(victim).pid])


def _stop_owner(scene: Scene) -> None:
    each(scene, lambda _: scene.stage.running(), _stop_node)


def _stop_voter(scene: Scene) -> None:
    each(scene, lambda _: scene.stage.voters(), _stop_node)


def _choose_steward(scene: Scene) -> None:
    scene.steward = scene.rng.choice(scene.stage.voters())


def _stop_steward(scene: Scene) -> None:
    for _ in scene.rounds():
        if scene.steward is None or not scene.wait_busy():
            return
        scene.applied += 1
        _stop_node(scene, scene.steward)
        scene.stage.wait_whole()
        scene.hold(REST_S)


def _stop_tree(scene: Scene) -> None:
    def act(scene: Scene, victim: str) -> None:
        _stop(scene, scene.stage.tree(victim))

    each(scene, scene.voter_or_other, act)


def _stop_all(scene: Scene) -> None:
    for _ in scene.rounds():
        if not scene.wait_busy():
            return
        scene.applied += 1
        _stop(scene, [scene.stage.node(name).pid for name in scene.stage.running()])
        scene.stage.wait_whole()
        scene.hold(REST_S)


def _power_cut(scene: Scene) -> None:
    for _ in scene.rounds():
        if not scene.wait_busy():
            return
        scene.applied += 1
        names = scene.stage.running()
        scene.stage.kill_everything()
        for name in names:
            scene.stage.launch(name)
        scene.stage.wait_whole()
        scene.hold(REST_S)


# Disks.


def _mount_founder(stage: Stage) -> None:
    stage.mount_small(stage.names[0], DISK_MIB)


def _full_disk(scene: Scene) -> None:
    """Fill the founder's disk: it votes from the first moment on."""
    victim = scene.stage.names[0]
    ballast = scene.stage.node(victim).data / "log"  # a name that a data directory may hold
    for _ in scene.rounds():
        if not scene.wait_busy():
            return
        scene.applied += 1
        _fill(ballast)
        try:
            scene.hold(FULL_S)
        finally:
            ballast.unlink()
        if not scene.stage.node(victim).is_running:
            scene.stage.restart(victim)
        scene.stage.wait_whole()
        scene.hold(REST_S)


def _fill(ballast: Path) -> None:
    """Write until the disk takes no byte more."""
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(size))
    assert shutil.disk_usage(ballast).free == 0, errno.ENOSPC


def _rolled_back(scene: Scene) -> None:
    """Keep a copy of a voter's store, let it vote on, and put the copy back; then stop another voter for a while.

    Every other time the voter is told to end, so that it has noted how far its store had come: then it refuses
    the copy, and starts again as a new node, as it says.
    """
    for number in scene.rounds():
        victim = scene.victim(scene.stage.voters())
        if victim is None:
            return
        node = scene.stage.node(victim)
        store, copy = node.data / STORE_NAME, scene.place / "copy"
        _end(scene, victim, is_told=False)
        _copy(store, copy)
        scene.stage.restart(victim)
        scene.hold(2 * REST_S)
        if not scene.wait_busy():
            return
        scene.applied += 1
        _end(scene, victim, is_told=number % 2 == 1)
        _copy(copy, store)
        _start_rolled_back(scene, victim)
        others = [name for name in scene.stage.voters() if name != victim]
        _stop(scene, [scene.stage.node(scene.rng.choice(others)).pid])
        scene.stage.wait_whole()
        scene.hold(REST_S)


def _end(scene: Scene, victim: str, *, is_told: bool) -> None:
    node_pid = scene.stage.node(victim).pid
    scene.stage.signal([node_pid], signal.SIGTERM if is_told else signal.SIGKILL)
    scene.stage.wait_gone(victim, node_pid)


def _start_rolled_back(scene: Scene, victim: str) -> None:
    """Start a node on an older store; if it refuses that, move its directory away and start a new node."""
    try:
        scene.stage.restart(victim)
    except FleetError:
        node = scene.stage.node(victim)
        if node.is_running:
            raise
        scene.say(f"{victim} refused its older store, and starts as a new node")
        node.data.rename(node.data.with_name(f"{victim}.old-{scene.applied}"))
        scene.stage.restart(victim)


def _copy(source: Path, to: Path) -> None:
    if to.exists():
        shutil.rmtree(to)
    shutil.copytree(source, to)


# Members, and clients.


def _join_leave(scene: Scene) -> None:
    stage = scene.stage
    for number in scene.rounds():
        if not scene.wait_busy():
            return
        scene.applied += 1
        if number < len(stage.spares):
            stage.restart(stage.spares[number])
        victim = scene.victim(scene.voter_or_other(number))
        if victim is None:
            return
        stage.node(victim).call("leave", reason="benchmark")
        stage.node(victim).wait_ended(30.0)
        stage.wait_whole()
        scene.hold(2 * REST_S)
        stage.restart(victim)
        stage.wait_whole()
        scene.hold(REST_S)


def _rolling_restart(scene: Scene) -> None:
    for name in scene.stage.names:
        if scene.is_over():
            return
        scene.applied += 1
        scene.stage.node(name).stop()
        scene.stage.restart(name)
        scene.stage.wait_whole()


def _client_dies(scene: Scene) -> None:
    """Kill clients of this fault's own amid their tasks; then the same tasks again, by one that lives."""
    doors = scene.stage.doors()
    for number in scene.rounds():
        if scene.is_over():
            return
        scene.applied += 1
        file = scene.place / "orders"
        orders = [{**one, "id": f"{one['id']}-{number}"} for one in scene.orders()[:200]]
        file.write_text(json.dumps(orders))
        command = [sys.executable, "-m", "bench.faults.client", str(scene.acks), str(file)]
        before = scene.acks.stat().st_size
        with subprocess.Popen([*command, *map(str, doors)]) as client:
            _until_written(scene.acks, before)
            scene.hold(scene.rng.uniform(0, CLIENT_LIFE_S))
            client.send_signal(signal.SIGKILL)
        submit_all(doors[number % len(doors) :] + doors, orders, scene.acks, Pace())


def _until_written(file: Path, before: int) -> None:
    wait_until(
        lambda: file.stat().st_size > before or None, 30.0, lambda: MeshError("no client wrote")
    )


def _wait_for_all(scene: Scene) -> None:
    scene.applied += 1
    while not scene.is_over():
        time.sleep(0.2)


FAULTS: Final = {
    fault.name: fault
    for fault in (
        Fault(name="kill_node", play=_kill_node),
        Fault(name="kill_guardian", play=_kill_guardian),
        Fault(name="kill_both", play=_kill_both),
        Fault(name="stop_owner", play=_stop_owner),
        Fault(name="stop_voter", play=_stop_voter),
        Fault(name="stop_steward", play=_stop_steward, choose=_choose_steward),
        Fault(name="stop_tree", play=_stop_tree),
        Fault(name="stop_all", play=_stop_all),
        Fault(name="power_cut", play=_power_cut),
        Fault(name="host_cut", play=host_cut, is_apart=True),
        Fault(name="one_way_cut", play=one_way_cut, is_apart=True),
        Fault(name="reject", play=reject, is_apart=True),
        Fault(name="loss", play=loss, is_apart=True),
        Fault(name="full_disk", play=_full_disk, prepare=_mount_founder, needs_root=True),
        Fault(name="rolled_back", play=_rolled_back),
        Fault(name="join_leave", play=_join_leave, spare=3),
        Fault(name="rolling_restart", play=_rolling_restart),
        Fault(name="client_dies", play=_client_dies),
        Fault(name="same_key_twice", play=_wait_for_all, copies=2, is_extra_wrong=True),
    )
}
