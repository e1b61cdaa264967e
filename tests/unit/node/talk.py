"""One node, and what others and its clients say to it: bytes and commands in, effects out."""

from __future__ import annotations

from typing import Any

from mesh.core.effects import Effect, Stop
from mesh.core.ids import MeshId
from mesh.membership.profile import local
from mesh.node.config import Metadata, NodeConfig
from mesh.node.node import Node
from mesh.wire.packet import decode_packet, encode_message, encode_packet
from mesh.wire.work_messages import Spec
from mesh.work.commands import Submit
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
        "unix_offset_s": 1_000_000.0,
    }
    return NodeConfig(**{**parts, **changed})


def started(number: int = 1, **changed: Any) -> Node:  # noqa: ANN401 - what a config takes
    node = Node(config(number, **changed), seed=1)
    node.start(NOW)
    node.check_invariants()
    return node


def from_host(number: int, *messages: object, mesh_id: MeshId = MESH) -> bytes:
    return encode_packet(mesh_id, node_id(number), [encode_message(m) for m in messages])


def tell(node: Node, number: int, *messages: object) -> list[Effect]:
    effects = node.handle_datagram(NOW, address(number), from_host(number, *messages))
    node.check_invariants()
    return effects


def ask(
    node: Node, number: int, message: object, mesh_id: MeshId = MESH
) -> tuple[object, list[Effect]]:
    data = from_host(number, message, mesh_id=mesh_id)
    reply, effects = node.handle_request(NOW, address(number), data)
    node.check_invariants()
    return (decode_packet(reply, 10**6).messages[0] if reply else None), effects


def submit(node: Node, text: str = "job") -> list[Effect]:
    return node.handle_command(NOW, Submit(1, Spec(task_id=text, argv=("true",))))


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
