"""A mesh in which somebody is dead, and hosts that are told to forget."""

from __future__ import annotations

import dataclasses

from mesh.membership.forgetting import Forgotten
from mesh.membership.profile import SwimConfig, local
from mesh.wire.records import State
from tests.unit.membership.pump import Host, Pump

MINUTE_S = 60.0


def with_a_dead_host(pump: Pump) -> list[Host]:
    """Five hosts, of which the last has been dead for a while."""
    hosts = pump.mesh(5)
    pump.kill(hosts[4])
    pump.run(15.0)
    assert states(hosts[:4], hosts[4]) == {State.DEAD}
    return hosts


def forget(pump: Pump, host: Host, whom: str) -> Forgotten:
    """Tell a host to forget somebody."""
    found = host.swim.forgetting.forget(pump.now, whom)
    pump._carry_out(host, host.swim.handle_timeout(pump.now))
    return found


def states(observers: list[Host], subject: Host) -> set[State | None]:
    """What these hosts hold another for."""
    return {observer.state_of(subject) for observer in observers}


def short_lived(retention_s: float) -> SwimConfig:
    """The timings of tombstones that run out soon."""
    return dataclasses.replace(local(), forgotten_retention_s=retention_s)
