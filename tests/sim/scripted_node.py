"""A node that does what a test's script says: enough to try the world without a mesh."""

from __future__ import annotations

from collections.abc import Callable

from mesh.core.address import Address
from mesh.core.effects import Effect
from mesh.core.lines import LineEvent
from mesh.core.process import ProcessEvent
from mesh.core.stored import Kept
from mesh.errors import TransportError
from mesh.node.commands import Command
from mesh.node.config import Metadata, NodeConfig, profile
from mesh.node.view import View
from mesh.sim.host import HostSpec
from mesh.sim.network import Conditions, Network
from mesh.sim.world import World, host_address


class ScriptedNode:
    """Records every input with its `now`, and answers with what was put into `answers` for its kind."""

    def __init__(self, config: NodeConfig, seed: int) -> None:
        self.config = config
        self.seed = seed
        self.inputs: list[tuple[str, float, object]] = []
        self.answers: dict[str, Callable[[float, object], list[Effect]]] = {}
        self.deadline: float | None = None
        self.reply = b"reply"
        self.checks = 0

    def _input(self, kind: str, now: float, value: object) -> list[Effect]:
        self.inputs.append((kind, now, value))
        answer = self.answers.get(kind)
        return answer(now, value) if answer is not None else []

    def of_kind(self, kind: str) -> list[tuple[float, object]]:
        return [(now, value) for name, now, value in self.inputs if name == kind]

    def start(self, now: float) -> list[Effect]:
        return self._input("start", now, None)

    def handle_datagram(self, now: float, source: Address, data: bytes) -> list[Effect]:
        return self._input("datagram", now, (source, data))

    def handle_request(
        self, now: float, source: Address, data: bytes
    ) -> tuple[bytes, list[Effect]]:
        return self.reply, self._input("request", now, (source, data))

    def handle_exchange(
        self, now: float, exchange_id: int, reply: bytes | TransportError
    ) -> list[Effect]:
        return self._input("exchange", now, (exchange_id, reply))

    def handle_line(self, now: float, event: LineEvent) -> list[Effect]:
        return self._input("line", now, event)

    def handle_resolved(
        self, now: float, seed: str, addresses: tuple[Address, ...]
    ) -> list[Effect]:
        return self._input("resolved", now, (seed, addresses))

    def handle_committed(self, now: float, number: int) -> list[Effect]:
        return self._input("committed", now, number)

    def handle_process(self, now: float, event: ProcessEvent) -> list[Effect]:
        return self._input("process", now, event)

    def handle_command(self, now: float, command: Command) -> list[Effect]:
        return self._input("command", now, command)

    def handle_timeout(self, now: float) -> list[Effect]:
        if self.deadline is not None and now >= self.deadline:
            self.deadline = None
        return self._input("timeout", now, None)

    def next_timeout(self) -> float | None:
        return self.deadline

    def view(self, now: float) -> View:
        return View({}, [], list, {}, [])

    def check_invariants(self) -> None:
        self.checks += 1


class Stage:
    """A world of scripted nodes, all started."""

    def __init__(
        self, count: int, *, conditions: Conditions | None = None, check: bool = False
    ) -> None:
        self.nodes: list[ScriptedNode] = []
        self.network = Network(1, conditions or Conditions(delay_s=0.01, jitter_s=0.0))
        self.world = World(1, self._make, self.network, check=check)
        for index in range(count):
            spec = HostSpec(
                name=f"node-{index}",
                address=host_address(index),
                swim=profile("lan"),
                meta=Metadata(),
            )
            self.world.boot(self.world.add_host(spec))

    def _make(self, config: NodeConfig, seed: int, _kept: Kept) -> ScriptedNode:
        node = ScriptedNode(config, seed)
        self.nodes.append(node)
        return node

    def act(self, index: int, *effects: Effect) -> None:
        """Let one node ask for effects, as the outcome of an early timeout."""
        node = self.nodes[index]
        node.answers["timeout"] = lambda _now, _value: list(effects)
        self.world.poke(self.world.hosts[index])
        del node.answers["timeout"]
