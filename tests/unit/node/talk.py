"""One node, and what others and its clients say to it: bytes and commands in, effects out."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from mesh.core.effects import Commit, Effect, Stop
from mesh.core.ids import MeshId
from mesh.core.stored import Kept, StoredRecord
from mesh.membership.profile import local
from mesh.node.config import Metadata, NodeConfig
from mesh.node.node import Node
from mesh.registers import admission, leases, upkeep
from mesh.tasks.commands import New, Submit
from mesh.wire.packet import decode_packet, encode_message, encode_packet
from mesh.wire.work_messages import Spec
from tests.unit.membership.pump import address, node_id

MESH = MeshId(0xABCD)
NOW = 100.0


def config(number: int = 1, **changed: Any) -> NodeConfig:  # noqa: ANN401 - what a config takes
    parts: dict[str, Any] = {
        "node_id": node_id(number),
        "boot": 1,
        "mesh_id": MESH,
        "name": f"host-{number}",
        "address": address(number),
        "meta": Metadata(slots=2, version="1"),
        "swim": local(),
        "leases": leases.local(),
        "pace": admission.local(),
        "upkeep": upkeep.local(),
        "unix_offset_s": 1_000_000.0,
    }
    return NodeConfig(**{**parts, **changed})


def started(number: int = 1, **changed: Any) -> Node:  # noqa: ANN401 - what a config takes
    node = Node(config(number, **changed), seed=1)
    carry_out(node, node.start(NOW))
    return node


def founder(**changed: Any) -> Node:  # noqa: ANN401 - what a config takes
    """The first voter of its mesh, and the only one: it gives its tasks to whoever has a slot."""
    return started(is_founder=True, **changed)


class Disk:
    """What a node has committed, as its next session finds it."""

    def __init__(self) -> None:
        self._records: dict[bytes, StoredRecord] = {}
        self._numbers: dict[str, int] = {}

    def take(self, commit: Commit) -> None:
        self._records.update((record.key, record) for record in commit.records)
        for name, number in commit.numbers.items():
            assert number >= self._numbers.get(name, 0), name
            self._numbers[name] = number
        for key in commit.forget:
            self._records.pop(key, None)

    def kept(self) -> Kept:
        return Kept(tuple(self._records.values()), dict(self._numbers))


def carry_out(
    node: Node, effects: Iterable[Effect], now: float = NOW, disk: Disk | None = None
) -> list[Effect]:
    """Let the store take every `Commit`; return all effects, those of what follows with them."""
    done: list[Effect] = []
    todo = deque(effects)
    while todo:
        effect = todo.popleft()
        done.append(effect)
        if isinstance(effect, Commit):
            if disk is not None:
                disk.take(effect)
            todo.extend(node.handle_committed(now, effect.number))
    node.check_invariants()
    return done


def from_host(number: int, *messages: object, mesh_id: MeshId = MESH) -> bytes:
    return encode_packet(mesh_id, node_id(number), [encode_message(m) for m in messages])


def tell(node: Node, number: int, *messages: object) -> list[Effect]:
    effects = node.handle_datagram(NOW, address(number), from_host(number, *messages))
    return carry_out(node, effects)


def ask(
    node: Node, number: int, message: object, mesh_id: MeshId = MESH
) -> tuple[object, list[Effect]]:
    data = from_host(number, message, mesh_id=mesh_id)
    reply, effects = node.handle_request(NOW, address(number), data)
    found = decode_packet(reply, 10**6).messages[0] if reply else None
    return found, carry_out(node, effects)


def job(text: str = "job") -> New:
    return New(Spec(task_id=text, argv=("true",)))


def submit(node: Node, text: str = "job") -> list[Effect]:
    return carry_out(node, node.handle_command(NOW, Submit(1, job(text))))


def run_until_stop(node: Node) -> list[Stop]:
    stops: list[Stop] = []
    for _ in range(500):
        due = node.next_timeout()
        if due is None:
            break
        assert due < NOW + 30
        stops += [e for e in node.handle_timeout(due) if isinstance(e, Stop)]
        if not stops:
            node.check_invariants()
    return stops
