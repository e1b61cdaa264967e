"""Everything that a key changes between a node's sockets and its driver, in one place.

Without a key nothing of it is loaded: cryptography costs a node ten megabytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

from mesh.core.address import Address
from mesh.core.events import EventKind
from mesh.core.ids import MeshId, NodeId
from mesh.errors import CommandRefused, DecodeError
from mesh.runtime.clock import Clock
from mesh.runtime.control import ControlClient, Request, Service
from mesh.runtime.door import Door, PlainDoor
from mesh.runtime.keystore import KeyStore

Pass: TypeAlias = Callable[[Address, bytes], None]
Members: TypeAlias = Callable[[], list[dict[str, Any]]]


class Inner(Protocol):
    """The driver, as far as sealing needs it."""

    def handle_datagram(self, source: Address, data: bytes) -> None:
        """Take a plain packet."""

    def handle_request(self, source: Address, data: bytes) -> bytes:
        """Answer a plain packet."""
        ...


class Sealing(Protocol):
    """What a node with or without a key puts between its sockets and its driver."""

    @property
    def door(self) -> Door:
        """What streams pass."""
        ...

    def describe(self) -> Mapping[str, Any]:
        """Return what `status` says of the keys: their ids, the sealing one first."""
        ...

    def between(self, send: Pass, inner: Inner) -> tuple[Pass, Pass, Mapping[str, int]]:
        """Return a `send` and a `take` that stand between a socket and the driver, and counts of what they drop.

        A ping that may be recorded is not taken: it is answered as a request would be.
        """
        ...

    @property
    def era(self) -> object:
        """What stays the same for as long as what was sealed ahead counts."""
        ...

    def seal_ahead(self, receiver: NodeId, packet: bytes) -> bytes:
        """Return what to send to one member when this node sends nothing any more. After `between`."""
        ...

    def offer(self) -> bytes:
        """Return the body of a frame that offers this node's ring."""
        ...

    def on_offer(self, data: bytes) -> bytes:
        """Take a ring that another member offers, and answer with this node's. Raises DecodeError."""
        ...

    def on_answer(self, data: bytes) -> None:
        """Take over what another member answered to an offer. Raises DecodeError."""
        ...

    def service(self, members: Members) -> Service:
        """Return what answers `mesh key`."""
        ...

    def note(self, kind: EventKind) -> None:
        """Hear what happened to this node."""
        ...

    def begin_anew(self) -> None:
        """Hear that this host's address has changed."""
        ...

    async def run(self) -> None:
        """Do what has to be done beside the node."""
        ...


class NoSealing:
    """A node without a key: everything passes as it is."""

    door: Door = PlainDoor()
    era: object = None

    def describe(self) -> Mapping[str, Any]:
        """Return that there are no keys."""
        return {"keys": []}

    def between(self, send: Pass, inner: Inner) -> tuple[Pass, Pass, Mapping[str, int]]:
        """Return the socket's and the driver's own."""
        return send, inner.handle_datagram, {}

    def seal_ahead(self, _receiver: NodeId, packet: bytes) -> bytes:
        """Return it as it is."""
        return packet

    def offer(self) -> bytes:
        """Return nothing: there is no ring."""
        return b""

    def on_offer(self, _data: bytes) -> bytes:
        """Refuse."""
        raise DecodeError("no key ring is expected by a node without a key, found one")

    def on_answer(self, _data: bytes) -> None:
        """Refuse."""
        raise DecodeError("no key ring is expected by a node without a key, found one")

    def service(self, _members: Members) -> Service:
        """Return a refusal."""
        return _refuse

    def note(self, _kind: EventKind) -> None:
        """Hear it: nothing follows."""

    def begin_anew(self) -> None:
        """Hear it: nothing follows."""

    async def run(self) -> None:
        """Return: there is nothing to do."""


async def _refuse(_request: Request, _client: ControlClient) -> None:
    raise CommandRefused("this node runs without a key: start it with --key FILE")


def sealing_for(
    keys: KeyStore | None,
    *,
    node_id: NodeId,
    mesh_id: Callable[[], MeshId],
    clock: Clock,
    say: Callable[[str], None],
) -> Sealing:
    """Return what a node with these keys puts between its sockets and its driver."""
    if keys is None:
        return NoSealing()
    from mesh.runtime.keyed import KeyedSealing  # noqa: PLC0415 - see the module's docstring

    return KeyedSealing(keys, node_id=node_id, mesh_id=mesh_id, clock=clock, say=say)
