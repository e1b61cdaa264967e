"""What the pump moves: nodes with their work, their processes, and commands that are scripts."""

from __future__ import annotations

from dataclasses import dataclass, field

from mesh.core.address import Address
from mesh.core.effects import StartProcess
from mesh.core.events import Event
from mesh.core.ids import NodeId
from mesh.placement.live_view import LiveMember, LiveView
from mesh.wire.records import Card, Metadata
from mesh.wire.work_messages import Spec
from mesh.work.work import Work


def job(
    duration_s: float,
    exit_code: int = 0,
    *pieces: str,
    task_id: str = "",
    key: str = "",
    pool: str = "",
    env: tuple[tuple[str, str], ...] = (),
    needs: tuple[tuple[str, int], ...] = (),
) -> Spec:
    argv = ("job", str(duration_s), str(exit_code), *pieces)
    return Spec(task_id=task_id, argv=argv, key=key, pool=pool, env=env, needs=needs)


@dataclass
class Process:
    run_id: int
    exit_code: int
    ends_at: float
    pieces: list[bytes]
    env: dict[str, str]
    is_reading: bool = True
    is_over: bool = False


@dataclass
class Host:
    """One node: its work, its processes, and what came out of it."""

    number: int
    meta: Metadata
    boot: int = 1
    is_up: bool = True
    is_short: bool = False  # of descriptors: no command can be started
    view: LiveView = field(default_factory=LiveView)
    processes: dict[int, Process] = field(default_factory=dict)
    started: list[StartProcess] = field(default_factory=list)
    stopped: list[int] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    work: Work = field(init=False)

    @property
    def node_id(self) -> NodeId:
        return NodeId(self.number)

    @property
    def name(self) -> str:
        return f"n{self.number}"

    @property
    def address(self) -> Address:
        return Address("127.0.0.1", 7000 + self.number)

    def own_card(self) -> Card:
        return Card(
            node_id=self.node_id,
            boot=self.boot,
            incarnation=0,
            name=self.name,
            address=self.address,
            meta=self.meta,
        )

    def card(self, free_slots: int | None = None) -> LiveMember:
        free = self.work.free_slots if free_slots is None else free_slots
        return LiveMember(
            node_id=self.node_id,
            boot=self.boot,
            name=self.name,
            address=self.address,
            meta=self.meta,
            free_slots=free,
        )

    def running(self) -> int:
        return sum(not process.is_over for process in self.processes.values())
