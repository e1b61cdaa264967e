"""The world round the nodes: carries out their effects in virtual time, as the real driver does.

The order of effects, durable `Persist`, one outcome per exchange, silence after `Stop`: the rules are
those of `mesh.core.effects`. What passes between nodes is bytes, and the world looks at none of them.

Source: a cooperative simulation of unmodified nodes follows madsim and TigerBeetle's VOPR.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TextIO, assert_never

from mesh.core import effects as fx
from mesh.core.address import Address, numeric_host, split_host_port
from mesh.core.events import Event
from mesh.core.lines import LineEvent
from mesh.core.process import ProcessEvent
from mesh.core.rng import stream
from mesh.core.stored import Kept
from mesh.errors import LocalProtocolError, TransportError
from mesh.node.commands import Command
from mesh.sim.census import Census
from mesh.sim.datagrams import Datagrams
from mesh.sim.disks import Disks
from mesh.sim.exchanges import Exchanges
from mesh.sim.host import Clock, Host, HostSpec, NodeFactory, SimNode
from mesh.sim.lifelines import SimLifelines
from mesh.sim.loop import Loop
from mesh.sim.network import Network
from mesh.sim.refusals import Refusals
from mesh.sim.runs import Runs, Workload, instant_success
from mesh.sim.trace import Kind, Trace
from mesh.sim.wakes import Wakes

_RESOLVE_S: Final = 0.001

# Plain numbers: an enum's pack and compare would cost more than the rest of a record.
_DATAGRAM: Final = int(Kind.DATAGRAM)
_TIMEOUT: Final = int(Kind.TIMEOUT)


@dataclass(frozen=True, slots=True)
class Observed:
    """An event, with the true time and the host that emitted it."""

    at_s: float
    observer: Host
    event: Event


def host_address(index: int) -> Address:
    """Return the address of the host numbered `index`, from 0."""
    return Address(str(ipaddress.IPv4Address("10.0.0.1") + index), 7946)


class World:
    """Hosts, the network between them, and everything that was observed.

    Args:
        seed: all randomness of the run comes from it.
        make_node: builds the node to drive; the same class as in production.
        network: the fault model.
        workload: what commands do when nodes start them.
        check: call `check_invariants` of a node after every input to it.
        sink: gets one line for each record of the trace.
    """

    def __init__(
        self,
        seed: int,
        make_node: NodeFactory,
        network: Network,
        *,
        workload: Workload = instant_success,
        check: bool = False,
        sink: TextIO | None = None,
    ) -> None:
        self.seed = seed
        self.network = network
        self.trace = Trace(sink)
        self.loop = Loop()
        self.hosts: list[Host] = []
        self.census = Census(seed)
        self.names: dict[str, tuple[Address, ...]] = {}
        self.events: list[Observed] = []
        self.answers: list[tuple[float, Host, fx.Answer]] = []
        self.stops: list[tuple[float, Host, fx.Stop]] = []
        self.watchers: list[Callable[[Observed], None]] = []
        self.clients: list[
            Callable[[fx.Answer], None]
        ] = []  # who hears each answer when it is given
        self.acting: Host | None = None  # whose node was given the last input
        self._make_node = make_node
        self._check = check
        self._by_address: dict[Address, Host] = {}
        self._exchanges = Exchanges(
            self.loop, network, self._by_address.get, self._on_request, self._on_exchange
        )
        self.lifelines = SimLifelines(
            self.loop, network, self._by_address.get, self._on_request, self._on_line
        )
        self.refusals = Refusals(self.loop, network, self._on_line)
        self._datagrams = Datagrams(
            self.loop,
            network,
            self._by_address.get,
            self._on_datagram,
            refusals=self.refusals,
            trace=self.trace,
        )
        self.disks = Disks(self.loop, stream(seed, "disks"), self._on_committed)
        self.runs = Runs(self.loop, workload, self._on_process)
        self._wakes = Wakes(self.loop, self.hosts, self._on_deadline)

    def add_host(self, spec: HostSpec, clock: Clock | None = None) -> Host:
        """Add a machine with an empty disk and no node running."""
        host = Host(len(self.hosts), spec, clock or Clock())
        self.hosts.append(host)
        self._by_address[spec.address] = host
        return host

    def boot(self, host: Host, spec: HostSpec | None = None) -> None:
        """Start the node from the host's disk, with another `spec` (and address) if one is given."""
        if host.node is not None:
            raise LocalProtocolError(f"{host.spec.name} runs already")
        if spec is not None:
            if self._by_address.get(host.spec.address) is host:
                del self._by_address[host.spec.address]
            host.spec = spec
            self._by_address[spec.address] = host
        now_s = self.loop.now_s
        host.session += 1
        host.is_paused = host.is_suspended = host.is_deaf = False
        host.is_powered = True
        host.started_s = now_s
        host.wake_s, host.letters = None, ()
        config = self.census.enrol(host, now_s)
        seed = stream(self.seed, f"node/{host.index}/{host.session}").getrandbits(64)
        kept = Kept(tuple(host.records.values()), dict(host.numbers))
        host.node = self._make_node(config, seed, kept)
        now = host.clock.read(now_s)
        self.acting = host
        self.trace.record(now_s, host.index, Kind.START, f"{config.boot}".encode())
        self._carry_out(host, host.node.start(now))

    def crash(self, host: Host, *, power: bool = True) -> None:
        """End the process at once; memory is lost, the disk kept. Without power, nothing refuses either."""
        host.node = None
        self.disks.crash(host)
        self.runs.end_session(host)
        ended, host.session = host.session, host.session + 1
        host.is_paused = host.is_suspended = host.is_deaf = False
        host.is_powered = power
        self.lifelines.end_session(host, ended, is_told=power)
        host.exchanges.clear()
        self._datagrams.drop_unread(host)
        if power:  # its guardian lives
            self._datagrams.send_letters(host)
        self._empty_inbox(host)

    def pause(self, host: Host, *, is_whole: bool = False) -> None:
        """Stop the node in its tracks (SIGSTOP): its clock and guardian go on, its socket fills up.

        `is_whole`: the machine stands still, with all that runs on it; only its clock goes on.
        """
        host.is_paused = host.node is not None
        if is_whole and host.is_paused:
            host.is_suspended = True
            self.runs.suspend(host)

    def set_clock_rate(self, host: Host, rate: float) -> None:
        """Let a host's clock run at another rate from now on."""
        host.clock.set_rate(self.loop.now_s, rate)
        self.runs.rearm(host)

    def resume(self, host: Host, *, timers_first: bool = False) -> None:
        """Let a paused node, or host, go on: what waited in its sockets comes at once, before or after its timers."""
        if not host.is_paused:
            return
        if host.is_suspended:
            host.is_suspended = False
            self.runs.go_on(host)
        host.is_paused = False
        host.wake_s = None
        if timers_first:
            self._wakes.wake(host)
        if not host.is_deaf:
            self._empty_inbox(host)
        if host.node is not None:
            self._wakes.arm(host)

    def deafen(self, host: Host, is_deaf: bool) -> None:
        """Let a node handle no message, while its timers run and it sends; or again, beginning with what waited."""
        was_deaf, host.is_deaf = host.is_deaf, is_deaf and host.node is not None
        if was_deaf and host.takes_messages:
            self._empty_inbox(host)

    def command(self, host: Host, command: Command) -> None:
        """Hand a command to a running, unpaused node."""
        node = host.node
        if node is None or host.is_paused:
            raise LocalProtocolError(f"{host.spec.name} takes no command: it does not run")
        now_s = self.loop.now_s
        self.acting = host
        self.trace.record_value(now_s, host.index, Kind.COMMAND, command)
        self._carry_out(host, node.handle_command(host.clock.read(now_s), command))

    def inject(self, host: Host, source: Address, data: bytes, *, as_request: bool = False) -> None:
        """Hand bytes to a host as if they had come from `source`, by stream or by datagram."""
        if not as_request:
            self._datagrams.receive((source, host.spec.address, data, self.network.era))
        elif host.node is not None and host.takes_messages:
            self._on_request(host, source, data)

    def poke(self, host: Host) -> None:
        """Let a node look at its timers though nothing may be due: harmless, by its contract."""
        if host.node is not None and not host.is_paused:
            now_s = self.loop.now_s
            self.acting = host
            self.trace.record(now_s, host.index, _TIMEOUT, b"early")
            self._carry_out(host, host.node.handle_timeout(host.clock.read(now_s)))

    def run_for(self, duration_s: float) -> None:
        """Let so much true time pass."""
        self.loop.run_until(self.loop.now_s + duration_s)

    def host_at(self, address: Address) -> Host | None:
        """Return the host that has this address."""
        return self._by_address.get(address)

    # Inputs

    def _on_datagram(self, host: Host, source: Address, data: bytes) -> None:
        node = host.node
        assert node is not None
        now_s = self.loop.now_s
        self.acting = host
        host.traffic.datagrams_received += 1
        self.trace.record(now_s, host.index, _DATAGRAM, data)
        self._carry_out(host, node.handle_datagram(host.clock.read(now_s), source, data))

    def _on_request(self, host: Host, source: Address, data: bytes) -> bytes:
        node = host.node
        if node is None:
            return b""
        now_s = self.loop.now_s
        self.acting = host
        self.trace.record(now_s, host.index, Kind.REQUEST, data)
        reply, effects = node.handle_request(host.clock.read(now_s), source, data)
        self.trace.record(now_s, host.index, Kind.REPLY, reply)
        self._carry_out(host, effects)
        return reply

    def _on_exchange(self, host: Host, exchange_id: int, reply: bytes | TransportError) -> None:
        node = host.node
        if node is None:
            return
        now_s = self.loop.now_s
        self.acting = host
        data = reply if isinstance(reply, bytes) else str(reply).encode()
        self.trace.record(now_s, host.index, Kind.EXCHANGE, data)
        self._carry_out(host, node.handle_exchange(host.clock.read(now_s), exchange_id, reply))

    def _on_line(self, host: Host, event: LineEvent) -> None:
        self._take(host, Kind.LINE, event, lambda node, now: node.handle_line(now, event))

    def _on_process(self, host: Host, event: ProcessEvent) -> None:
        self._take(host, Kind.PROCESS, event, lambda node, now: node.handle_process(now, event))

    def _on_committed(self, item: tuple[Host, int, int]) -> None:
        host, session, number = item
        if host.session == session and host.is_paused:
            host.inbox.append((self._on_committed, item))
        elif host.session == session:
            kind = Kind.COMMITTED
            self._take(host, kind, number, lambda node, now: node.handle_committed(now, number))

    def _take(
        self,
        host: Host,
        kind: Kind,
        value: object,
        take: Callable[[SimNode, float], list[fx.Effect]],
    ) -> None:
        node, now_s = host.node, self.loop.now_s
        if node is not None:
            self.acting = host
            self.trace.record_value(now_s, host.index, kind, value)
            self._carry_out(host, take(node, host.clock.read(now_s)))

    def _on_resolved(self, item: tuple[Host, int, str]) -> None:
        host, session, seed = item
        if host.session != session:
            return
        if not host.takes_messages:
            host.inbox.append((self._on_resolved, item))
            return
        name, port = split_host_port(seed)
        numeric = numeric_host(name)
        what = seed, (Address(numeric, port),) if numeric else self.names.get(name, ())
        self._take(host, Kind.RESOLVED, what, lambda node, now: node.handle_resolved(now, *what))

    def _on_deadline(self, host: Host, now: float) -> None:
        node = host.node
        assert node is not None
        self.acting = host
        self.trace.record(self.loop.now_s, host.index, _TIMEOUT, b"")
        self._carry_out(host, node.handle_timeout(now))

    def _empty_inbox(self, host: Host) -> None:
        waiting, host.datagrams_waiting = list(host.inbox), 0
        host.inbox.clear()
        for action, argument in waiting:
            action(argument)

    # Effects

    def _carry_out(self, host: Host, effects: list[fx.Effect]) -> None:
        for effect in effects:
            if type(effect) is fx.SendDatagram:
                self._datagrams.send(host, effect)
            else:
                self._act(host, effect)
                if host.node is None:  # stopped
                    return
        if self._check and host.node is not None:
            host.node.check_invariants()
        self._wakes.arm(host)

    def _act(self, host: Host, effect: fx.Effect) -> None:
        now_s = self.loop.now_s
        if isinstance(effect, fx.ProcessEffect):
            if not isinstance(effect, fx.ReadOutput):
                self._note(host, Kind.RUN, effect)
            self.runs.carry_out(host, effect)
            return
        if isinstance(effect, fx.LineEffect):
            self._note(host, Kind.KEEP, effect)
            self.lifelines.carry_out(host, effect)
            return
        match effect:
            case fx.SendDatagram():
                self._datagrams.send(host, effect)
            case fx.StartExchange():
                self.trace.record(now_s, host.index, Kind.ASK, effect.data)
                self._exchanges.start(host, effect)
            case fx.Emit():
                self._emit(host, effect.event)
            case fx.Persist() | fx.Commit() | fx.Remember() | fx.WriteObituary():
                self._keep(host, effect)
            case fx.Resolve():
                self._note(host, Kind.RESOLVE, effect)
                item = (host, host.session, effect.seed)
                self.loop.schedule(now_s + _RESOLVE_S, self._on_resolved, item)
            case fx.Answer():
                self._answer(host, effect)
            case fx.TaskChanged():
                pass  # nobody watches here
            case fx.Stop():
                self._note(host, Kind.STOP, effect)
                self.stops.append((now_s, host, effect))
                self.crash(host)
            case _:
                assert_never(effect)

    def _note(self, host: Host, kind: Kind, value: object) -> None:
        self.trace.record_value(self.loop.now_s, host.index, kind, value)

    def _emit(self, host: Host, event: Event) -> None:
        self._note(host, Kind.EMIT, event)
        observed = Observed(self.loop.now_s, host, event)
        self.events.append(observed)
        for watcher in self.watchers:
            watcher(observed)

    def _answer(self, host: Host, answer: fx.Answer) -> None:
        self._note(host, Kind.ANSWER, answer)
        self.answers.append((self.loop.now_s, host, answer))
        for hear in self.clients:
            hear(answer)

    def _keep(
        self, host: Host, effect: fx.Persist | fx.Commit | fx.Remember | fx.WriteObituary
    ) -> None:
        if isinstance(effect, fx.Commit):
            self._note(host, Kind.COMMIT, effect)
            self.disks.commit(host, effect)
        elif isinstance(effect, fx.Remember):
            self._note(host, Kind.PERSIST, effect)
            host.snapshot = effect
        elif isinstance(effect, fx.WriteObituary):
            host.letters = effect.letters
        else:
            self._note(host, Kind.PERSIST, sorted(effect.values.items()))
            host.disk.update(effect.values)
            if "boot" in effect.values:
                self.census.add_boot(host, effect.values["boot"])
