"""A node as a process: opens what it needs, runs until it is told to stop, leaves nothing behind.

SIGTERM, SIGINT and (unless ignored, as under nohup) SIGHUP make the node leave: its work is stopped, at once
or when it was given some time, the others are told, and the exit code is 0. A second signal ends it at once with exit code 1; what
it had started is killed even then. A node whose guardian has died ends its work and itself.
"""

from __future__ import annotations

import gc
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, NamedTuple

import trio

from mesh.client import last_start
from mesh.core.address import Address
from mesh.core.effects import Stop
from mesh.core.events import Event
from mesh.core.ids import format_id
from mesh.core.lines import DatagramRefused, HungUp
from mesh.core.start_line import shown_line
from mesh.core.stored import Kept
from mesh.errors import DataDirectoryError, DecodeError
from mesh.node.commands import Leave, SetRoom
from mesh.node.config import NodeConfig
from mesh.node.node import Node
from mesh.runtime.bequest import Bequest
from mesh.runtime.clock import Clock, system_clock
from mesh.runtime.committing import Committing, open_store
from mesh.runtime.console import Console
from mesh.runtime.control import ControlServer
from mesh.runtime.datadir import DataDir, open_data_dir
from mesh.runtime.deafness import Deafness
from mesh.runtime.driver import Driver, Hands
from mesh.runtime.endpoint import Endpoint, advertised_address, open_endpoint
from mesh.runtime.errqueue import ErrorQueue, open_error_queue
from mesh.runtime.eventlog import EventLog
from mesh.runtime.executor import Executor
from mesh.runtime.guard import Guard
from mesh.runtime.hooks import Hooks
from mesh.runtime.keystore import KeyStore, open_keys
from mesh.runtime.lifelines import LifelineKeeper
from mesh.runtime.listener import Listener
from mesh.runtime.reach import Reach
from mesh.runtime.resolver import Resolver
from mesh.runtime.sealing import Sealing, sealing_for
from mesh.runtime.services import Services
from mesh.runtime.settings import AgentSettings
from mesh.runtime.signals import heed_signals
from mesh.runtime.snapshot import Snapshot
from mesh.runtime.status import Status, shown_path
from mesh.runtime.store.faults import StoreMismatchError
from mesh.runtime.streams import Asker
from mesh.runtime.udp import UdpSocket
from mesh.runtime.whereabouts import Whereabouts
from mesh.tasks.words import of_those_that_run

__all__ = ["AgentSettings", "run_agent"]

_HALTED = 1


def run_agent(
    settings: AgentSettings, guardian: socket.socket | None = None, *, why_alone: str = ""
) -> int:
    """Run a node until it stops and return the exit code; call from the main thread.

    `guardian` is the link to the one that has started this process; without one, `why_alone` is said.

    Raises:
        ConfigError: a setting is wrong; nothing was started.
        DataDirectoryError: the data directory cannot be used.
        StoreError: nor can the store of this node's votes, or it is not the one that it had.
        TransportError: the port cannot be bound.
    """
    settings.check()
    console = Console()
    with ExitStack() as stack:
        if why_alone:
            console.say(
                f"no guardian: {why_alone}; what commands have started in the background outlives this node if it "
                "is killed"
            )
        data = open_data_dir(settings.data_dir, time.time(), settings.name)
        stack.callback(data.close)
        settings = settings.called(data.identity.name)
        guard = Guard(guardian, console.say)
        guard.begin_clearing()
        committing = open_store(data)
        stack.callback(_note_store, data, committing, console.say)  # once it is closed
        stack.enter_context(committing)
        keys = open_keys(data.path, settings.key_file)
        reach = Reach(is_loopback_only=keys is None)
        endpoint = open_endpoint(settings.bind, reach)
        stack.callback(endpoint.close)
        _note_start(data, settings.command, console.say)  # not what could not start
        clock = system_clock(console.say)
        advertised = advertised_address(endpoint.address, settings.advertise, settings.seeds, reach)
        config = _node_config(settings, data, advertised, clock)
        snapshot = Snapshot(data.path, console.say)
        config = replace(config, remembered=snapshot.read(data.mesh_id))
        node = _node(config, committing)
        disk = Disk(data, committing, keys, snapshot)
        agent = Agent(settings, disk, node, clock, console, guard=guard)
        stop = trio.run(agent.run, endpoint)
    console.say(f"stopped: {stop.reason or 'no reason given'}")
    return stop.exit_code


def _node_config(
    settings: AgentSettings, data: DataDir, advertised: Address, clock: Clock
) -> NodeConfig:
    return NodeConfig(
        node_id=data.node_id,
        boot=data.boot,
        mesh_id=data.mesh_id,
        name=settings.node_name(),
        is_name_given=settings.name is not None,
        address=advertised,
        meta=settings.metadata(),
        swim=settings.swim(),
        leases=settings.leases(),
        pace=settings.pace(),
        upkeep=settings.upkeep(),
        is_founder=data.identity.is_founder,
        seeds=settings.seeds,
        found=settings.found,
        expect=settings.expect,
        unix_offset_s=time.time() - clock(),
    )


def _node(config: NodeConfig, committing: Committing) -> Node:
    try:
        return Node(config, secrets.randbits(64), Kept(committing, committing.numbers))
    except DecodeError as error:
        raise StoreMismatchError(
            f"{committing.path}: {error}; start the release that wrote it, or move the data directory away and start "
            "as a new node"
        ) from error


def _note_start(data: DataDir, command: str, say: Callable[[str], None]) -> None:
    """Keep the line that started this node, and say which options of the one before it has not."""
    if last := last_start(data.path):
        from mesh.runtime.left_out import left_out  # noqa: PLC0415 - at a return alone

        if missing := left_out(last, command):
            say(f"warning: this start is without {missing}, which the last one had: {last}")
    data.note_start(command)


def _note_store(data: DataDir, committing: Committing, say: Callable[[str], None]) -> None:
    """Note how far the store has come, so that an older copy of it is known for one."""
    try:
        data.note_store(committing.identity, committing.position)
    except DataDirectoryError as error:  # what was noted at the start holds
        say(f"how far the store has come could not be noted: {error}")


class Disk(NamedTuple):
    """What a node keeps in its data directory."""

    data: DataDir
    committing: Committing
    keys: KeyStore | None
    snapshot: Snapshot


class Agent:
    """One node with everything round it. `run` it once."""

    def __init__(
        self,
        settings: AgentSettings,
        disk: Disk,
        node: Node,
        clock: Clock,
        console: Console,
        *,
        guard: Guard | None = None,
    ) -> None:
        self._settings = settings
        self._guard = guard or Guard(None, console.say)
        # Of the keys that were read, not of a file that may have come since: what is not sealed stays here.
        self._reach = Reach(is_loopback_only=disk.keys is None)
        self._sealing = sealing_for(
            disk.keys,
            node_id=disk.data.node_id,
            mesh_id=lambda: node.identity.mesh_id,
            clock=clock,
            say=console.say,
        )
        self._committing = disk.committing
        self._snapshot = disk.snapshot
        self._data = disk.data
        self._node = node
        self._clock = clock
        self._console = console
        self._driver = Driver(node, clock)
        self._log = EventLog(lambda: node.identity.card.name)

    async def run(self, endpoint: Endpoint) -> Stop:
        """Run until the node stops or is halted; nothing that it started is left then."""
        driver, say = self._driver, self._console.say
        deafness, reach = Deafness(), self._reach
        reports = self._error_queue(endpoint)
        udp = UdpSocket(endpoint.udp, deafness, reach=reach, error_queue=reports)
        sealing, whereabouts = self._sealing, self._whereabouts(endpoint)
        send, take, dropped = sealing.between(udp.send, driver)
        bequest, hooks = Bequest(sealing, reach, self._guard.bequeath), self._hooks(whereabouts)
        listener = self._listener(endpoint, deafness)
        counters: list[Mapping[str, int]] = [reach.counters, udp.counters, listener.counters]
        counters += (driver.counters, dropped, reports.counters if reports else {})
        with ExitStack() as stack:
            stack.callback(udp.close)
            control = ControlServer(self._data.path, self._services(counters).table(), say)
            stack.callback(control.close)
            async with trio.open_nursery() as nursery:
                asker = Asker(
                    nursery,
                    self._clock,
                    driver.handle_exchange,
                    deafness=deafness,
                    reach=reach,
                    door=sealing.door,
                    rings=(sealing.offer, sealing.on_answer),
                )
                resolver = Resolver(nursery, driver.handle_resolved, say, reach)
                executor = Executor(nursery, driver.handle_process, self._guard, self._clock)
                self._committing.begin(driver.handle_committed, driver.halt, self._heed_room)
                stack.callback(self._guard.close)  # after all commands are killed
                stack.callback(executor.kill_all)
                driver.attach(
                    Hands(
                        send=send,
                        exchange=asker.ask,
                        keep_line=self._lifelines(nursery, listener, reach).carry_out,
                        resolve=resolver.resolve,
                        persist=self._data.persist,
                        commit=self._committing.commit,
                        remember=self._snapshot.write,
                        bequeath=bequest.write,
                        emit=lambda event: self._emit(event, whereabouts),
                        run=executor.carry_out,
                        say=say,
                        look=lambda: _look(whereabouts, asker, sealing, bequest),
                    )
                )
                counters += (asker.counters, control.counters, executor.counters)
                nursery.start_soon(self._heed_guardian)
                await self._guard.wait_cleared(self._settings.leases().doubt_s)
                await nursery.start(heed_signals, self._guard, self._leave, self._halt)
                if self._settings.fault_hook:
                    await nursery.start(deafness.heed_signal, say)
                for part in (control, listener, asker, sealing, self._committing, hooks):
                    nursery.start_soon(part.run)
                nursery.start_soon(udp.receive, take, self._on_refused)
                self._announce(endpoint)
                stop = await driver.run()
                nursery.cancel_scope.cancel()
        return stop

    def _listener(self, endpoint: Endpoint, deafness: Deafness) -> Listener:
        listener = Listener(
            endpoint.tcp,
            self._clock,
            self._driver.handle_request,
            self._console.say,
            deafness=deafness,
            door=self._sealing.door,
            on_ring=self._sealing.on_offer,
        )
        listener.on_hang_up = lambda source: self._driver.handle_line(HungUp(source))
        return listener

    def _error_queue(self, endpoint: Endpoint) -> ErrorQueue | None:
        """Return what tells of refused datagrams; None, and say so, where nothing does."""
        if not self._settings.has_evidence:
            self._console.say("without evidence, as asked: a crash is found by silence alone")
        elif open_error_queue(endpoint.udp):
            return ErrorQueue(endpoint.udp)
        else:
            self._console.say(
                "this system does not tell which datagrams are refused: a crash is found by connections alone"
            )
        return None

    def _on_refused(self, address: Address) -> None:
        self._driver.handle_line(DatagramRefused(address))

    def _lifelines(self, nursery: trio.Nursery, listener: Listener, reach: Reach) -> LifelineKeeper:
        return LifelineKeeper(
            nursery,
            self._driver.handle_line,
            door=self._sealing.door,
            reach=reach,
            keep=listener.keep,
            hang_up=listener.hang_up,
            try_line=listener.try_line,
        )

    def _services(self, counters: list[Mapping[str, int]]) -> Services:
        facts = {
            "profile": self._settings.profile,
            "data": shown_path(self._data.path),
            "guardian_pid": self._guard.pid,
            "command": shown_line(self._settings.command),
        }
        status = Status(self._node.view, self._clock, counters, facts, self._describe)
        desk = self._sealing.service(status.members)
        return Services(self._driver, self._node.take_watch, status, self._log, desk)

    def _hooks(self, whereabouts: Whereabouts) -> Hooks:
        return Hooks(
            self._settings.hooks,
            node=self._node,
            driver=self._driver,
            clock=self._clock,
            guard=self._guard,
            emit=lambda event: self._emit(event, whereabouts),
            say=self._console.say,
        )

    def _describe(self) -> dict[str, Any]:
        own = {"store": self._committing.facts(), "loop_late": self._driver.lateness.to_json()}
        return {**self._sealing.describe(), **own}

    def _heed_room(self, lacks: str) -> None:
        if lacks:
            self._console.say(f"{lacks}; until then this node takes on nothing that has to be kept")
        else:
            self._console.say("the store has room again")
        self._driver.tell(SetRoom(not lacks, lacks))

    def _announce(self, endpoint: Endpoint) -> None:
        config, keys = self._node.config, self._sealing.describe()["keys"]
        self._console.say(
            f"{config.name} ({format_id(config.node_id)}) starts at {config.address}, "
            f"bound to {endpoint.address}, data in {self._data.path}, "
            + (f"sealed with key {keys[0]}" if keys else "without a key: loopback only")
        )
        gc.collect()
        gc.freeze()  # what was imported stays: the collector need not look at it again

    def _whereabouts(self, endpoint: Endpoint) -> Whereabouts:
        return Whereabouts(
            self._node.config.address,
            endpoint.address,
            settings=self._settings,
            reach=self._reach,
            node_id=self._data.node_id,
            members=lambda: self._node.view(self._clock()).members,
        )

    def _emit(self, event: Event, whereabouts: Whereabouts) -> None:
        self._log.publish(event)
        self._console.show(event)
        self._sealing.note(event.kind)
        whereabouts.note(event)

    async def _heed_guardian(self) -> None:
        await self._guard.listen()
        reason = (
            f"the guardian (process {self._guard.pid}) has died: the work here ends, and the node with it; "
            f"start both again: {shown_line(self._settings.command) or 'mesh join'}"
        )
        self._console.say(reason)
        self._driver.halt(Stop(_HALTED, f"the guardian (process {self._guard.pid}) has died"))

    def _leave(self, name: str) -> None:
        drain_s = self._settings.drain_s
        view = self._node.view(self._clock())
        runs = of_those_that_run([run["id"] for run in view.running], drain_s)
        said = (f"{name}: leaving", runs, view.node["registers"]["parting"])
        self._console.say("; ".join(filter(None, said)))
        self._driver.tell(Leave(f"{name} received", drain_s))

    def _halt(self, name: str) -> None:
        self._driver.halt(Stop(_HALTED, f"a second signal ({name}) before the leave was done"))


def _look(
    whereabouts: Whereabouts, asker: Asker, sealing: Sealing, bequest: Bequest
) -> Address | None:
    """Return where this node is reached from now on, if that has changed: then connections from before hang."""
    bequest.look()
    address = whereabouts.look()
    if address is not None:
        asker.begin_anew()
        sealing.begin_anew()
    return address
