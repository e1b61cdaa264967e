"""The one who makes things go wrong: executes faults, and ends them.

`heal` ends every fault at once. What cannot happen just now (a crash of what is down) does not.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Final, TypeAlias

from mesh.node.commands import ForgetMember, Leave, SetFitness
from mesh.sim.faults import Fault, FaultKind
from mesh.sim.fleet import Fleet
from mesh.sim.host import Host
from mesh.sim.returning import Returning
from mesh.sim.trace import Kind
from mesh.sim.world import World

Undo: TypeAlias = Callable[[], None]

# Faults that excuse an accusation; a clock within its bounds excuses nothing.
_TROUBLE: Final = frozenset(FaultKind) - {
    FaultKind.CLOCK,
    FaultKind.EARLY,
    FaultKind.JOIN,
    FaultKind.UNFIT,
    FaultKind.FORGET,
}
_UNSETTLING: Final = frozenset({FaultKind.MOVE, FaultKind.DISK, FaultKind.ROLL_BACK})
_CLOCK_SET_BACK_S: Final = 3600.0
_PAUSED_S: Final = 0.1


class Nemesis:
    """Executes faults. `log` tells when each began and ended."""

    def __init__(
        self,
        world: World,
        fleet: Fleet,
        rng: random.Random,
        *,
        forgot: Callable[[float, str], None] = lambda _at_s, _node_id: None,
    ) -> None:
        self.log: list[tuple[float, str, tuple[int, ...]]] = []
        self._world = world
        self._fleet = fleet
        self._rng = rng
        self._forgot = forgot
        self._returning = Returning(fleet)
        self._calm = world.network.conditions
        self._losses: list[float] = []
        self._active: dict[int, Undo] = {}
        self._count = 0
        self._healed = False
        self._begin: dict[FaultKind, Callable[[Fault, list[Host]], Undo | None]] = {
            FaultKind.CRASH: self._crash,
            FaultKind.POWER: self._crash,
            FaultKind.MOVE: self._crash,
            FaultKind.DISK: self._crash,
            FaultKind.ROLL_BACK: self._crash,
            FaultKind.OUTAGE: self._crash,
            FaultKind.RESTART: self._restart,
            FaultKind.UPROOT: self._restart,
            FaultKind.PAUSE: self._pause,
            FaultKind.STANDSTILL: self._pause,
            FaultKind.DEAF: self._deaf,
            FaultKind.HALVES: self._cut,
            FaultKind.LONG_CUT: self._cut,
            FaultKind.ONE_WAY: self._cut,
            FaultKind.ISOLATE: self._cut,
            FaultKind.LOSS: self._loss,
            FaultKind.LINK: self._link,
            FaultKind.CLOG: self._clog,
            FaultKind.CLOCK: self._clock,
            FaultKind.EARLY: self._early,
            FaultKind.LEAVE: self._leave,
            FaultKind.JOIN: self._join,
            FaultKind.UNFIT: self._unfit,
            FaultKind.FORGET: self._forget,
        }

    def schedule(self, faults: tuple[Fault, ...]) -> None:
        """Let each fault begin and end in its time."""
        for fault in faults:
            self._world.loop.schedule(fault.at_s, self.begin, fault)

    def begin(self, fault: Fault) -> None:
        """Begin a fault now; what cannot happen just now (a crash of what is down) does not."""
        if self._healed:
            return
        hosts = [self._world.hosts[index] for index in fault.hosts]
        undo = self._begin[fault.kind](fault, hosts)
        if undo is None:
            return
        self._note(str(fault), fault.hosts)
        concerned = self._world.hosts if fault.kind is FaultKind.LOSS else hosts
        troubled = list(concerned) if fault.kind in _TROUBLE else []
        for host in troubled:
            host.begin_trouble()
        self._count = number = self._count + 1

        def end() -> None:
            undo()
            for host in troubled:
                host.end_trouble(self._world.loop.now_s)
            self._note(f"end of {fault.kind}", fault.hosts)

        self._active[number] = end
        if fault.duration_s != inf:
            self._world.loop.schedule(self._world.loop.now_s + fault.duration_s, self._end, number)
        else:
            del self._active[number]  # nothing brings these hosts back

    def heal(self) -> None:
        """End every fault that can end, now, and begin no other."""
        self._healed = True
        for number in sorted(self._active):
            self._end(number)
        self._world.network.heal(replace(self._calm, loss_ratio=0.0, copy_ratio=0.0))
        for host in self._world.hosts:
            host.clean_since_s = self._world.loop.now_s  # of loss, too
        self._note("everything heals", ())

    def _end(self, number: int) -> None:
        undo = self._active.pop(number, None)
        if undo is not None:
            undo()

    def _note(self, text: str, hosts: tuple[int, ...]) -> None:
        now_s = self._world.loop.now_s
        self.log.append((now_s, text, hosts))
        self._world.trace.record(now_s, 0, Kind.FAULT, text.encode())

    # What each kind does; returns how it ends, or None if it cannot happen just now.

    def _crash(self, fault: Fault, hosts: list[Host]) -> Undo | None:
        victims = [host for host in hosts if host.node is not None]
        if fault.kind in _UNSETTLING:
            victims = [host for host in victims if host is not self._returning.keeper]
        for host in victims:
            self._world.crash(host, power=fault.kind is not FaultKind.POWER)
            if fault.kind is FaultKind.DISK:
                host.lose_disk()
            elif fault.kind is FaultKind.ROLL_BACK:
                host.roll_back(_CLOCK_SET_BACK_S)

        def restart() -> None:
            for host in victims:
                if host.node is None:
                    self._fleet.boot(host, moved=fault.kind is FaultKind.MOVE)

        return restart if victims else None

    def _restart(self, fault: Fault, hosts: list[Host]) -> Undo | None:
        victims = [host for host in hosts if host.node is not None]
        for host in victims:
            self._world.crash(host)
        self._rng.shuffle(victims)

        def come_back() -> None:
            self._returning.restart(victims, moved=fault.kind is FaultKind.UPROOT)

        return come_back if victims else None

    def _forget(self, _fault: Fault, hosts: list[Host]) -> Undo | None:
        (host,) = hosts
        node = host.node
        if node is None or host.is_paused:
            return None
        now_s = self._world.loop.now_s
        members = node.view(host.clock.read(now_s)).members
        dead = [member["node_id"] for member in members if member["state"] == "dead"]
        if not dead:
            return None
        node_id = self._rng.choice(dead)
        self._world.command(host, ForgetMember(self._count, node_id))
        self._forgot(now_s, node_id)
        return _nothing

    def _pause(self, fault: Fault, hosts: list[Host]) -> Undo | None:
        victims = [host for host in hosts if host.node is not None and not host.is_paused]
        sessions = [host.session for host in victims]
        for host in victims:
            self._world.pause(host, is_whole=fault.kind is FaultKind.STANDSTILL)

        def resume() -> None:
            for host, session in zip(victims, sessions, strict=True):
                if host.session == session:
                    self._world.resume(host, timers_first=self._rng.random() < 0.5)

        return resume if victims else None

    def _deaf(self, _fault: Fault, hosts: list[Host]) -> Undo | None:
        victims = [host for host in hosts if host.node is not None and not host.is_deaf]
        sessions = [host.session for host in victims]
        for host in victims:
            self._world.deafen(host, True)

        def undeafen() -> None:
            for host, session in zip(victims, sessions, strict=True):
                if host.session == session:
                    self._world.deafen(host, False)

        return undeafen if victims else None

    def _cut(self, fault: Fault, hosts: list[Host]) -> Undo | None:
        network = self._world.network
        everybody = range(len(self._world.hosts))
        inside: set[int] = {host.index for host in hosts}
        groups = [{index} for index in inside] if fault.kind is FaultKind.ISOLATE else [inside]
        cuts = []
        for group in groups:
            outside = [index for index in everybody if index not in group]
            cuts.append(network.cut(group, outside))
            if fault.kind is not FaultKind.ONE_WAY:
                cuts.append(network.cut(outside, group))

        def mend() -> None:
            for cut in cuts:
                network.mend(cut)

        return mend

    def _loss(self, fault: Fault, _hosts: list[Host]) -> Undo | None:
        self._losses.append(fault.amount)
        self._apply_losses()

        def stop() -> None:
            self._losses.remove(fault.amount)
            self._apply_losses()

        return stop

    def _apply_losses(self) -> None:
        worst = max([self._calm.loss_ratio, *self._losses])
        self._world.network.conditions = replace(self._calm, loss_ratio=worst)

    def _link(self, fault: Fault, hosts: list[Host]) -> Undo | None:
        network = self._world.network
        sender, receiver = (host.index for host in hosts)
        network.set_link(sender, receiver, replace(self._calm, loss_ratio=fault.amount))
        return lambda: network.set_link(sender, receiver, self._calm)

    def _clog(self, fault: Fault, hosts: list[Host]) -> Undo | None:
        for host in hosts:
            self._world.network.clog(host.index, self._world.loop.now_s + fault.duration_s)
        return _nothing

    def _clock(self, fault: Fault, hosts: list[Host]) -> Undo | None:
        for host in hosts:
            self._world.set_clock_rate(host, 1.0 + fault.amount)
        return _nothing

    def _early(self, _fault: Fault, hosts: list[Host]) -> Undo | None:
        for host in hosts:
            self._world.poke(host)
        return _nothing

    def _leave(self, fault: Fault, hosts: list[Host]) -> Undo | None:
        leavers = [host for host in hosts if host.node is not None and not host.is_paused]
        leavers = [host for host in leavers if host is not self._returning.keeper]
        for host in leavers:
            self._world.command(host, Leave("the nemesis says so", within_s=fault.amount))

        def come_back() -> None:
            for host in leavers:
                if host.node is None:
                    self._fleet.boot(host)

        return come_back if leavers else None

    def _unfit(self, _fault: Fault, hosts: list[Host]) -> Undo | None:
        victims = [host for host in hosts if host.node is not None and not host.is_paused]
        for host in victims:
            self._world.command(host, SetFitness(is_fit=False, why="the nemesis says so"))

        def recover() -> None:
            for host in victims:
                self._recover(host)

        return recover if victims else None

    def _recover(self, host: Host) -> None:
        """Let a health check pass again, once its node runs; another session of it has begun fit, and hears it once more."""
        if host.is_paused:
            self._world.loop.schedule(self._world.loop.now_s + _PAUSED_S, self._recover, host)
        elif host.node is not None:
            self._world.command(host, SetFitness(is_fit=True))

    def _join(self, _fault: Fault, _hosts: list[Host]) -> Undo | None:
        self._fleet.boot(self._fleet.add())
        return _nothing


def _nothing() -> None:
    return None
