"""The face of a node: all that a driver may use of it, in production and in the simulator.

Bytes and values go in, effects and views come out. `mesh.node.node.Node` has this face; tests put
scripted nodes behind it.
"""

from __future__ import annotations

from typing import Protocol

from mesh.core.address import Address
from mesh.core.effects import Effect
from mesh.core.lines import LineEvent
from mesh.core.process import ProcessEvent
from mesh.errors import TransportError
from mesh.node.commands import Command


class NodeFace(Protocol):
    """What every driver calls. After each input, carry the effects out and read `next_timeout` again."""

    def start(self, now: float, /) -> list[Effect]:
        """Begin."""

    def handle_datagram(self, now: float, source: Address, data: bytes, /) -> list[Effect]:
        """Take a datagram."""

    def handle_request(
        self, now: float, source: Address, data: bytes, /
    ) -> tuple[bytes, list[Effect]]:
        """Take a request and return its reply; b"" closes the connection."""

    def handle_exchange(
        self, now: float, exchange_id: int, reply: bytes | TransportError, /
    ) -> list[Effect]:
        """Take the outcome of a `StartExchange`."""

    def handle_line(self, now: float, event: LineEvent, /) -> list[Effect]:
        """Take what became of a stream that is kept open, or of a datagram that was refused."""

    def handle_resolved(
        self, now: float, seed: str, addresses: tuple[Address, ...], /
    ) -> list[Effect]:
        """Take the outcome of a `Resolve`."""

    def handle_process(self, now: float, event: ProcessEvent, /) -> list[Effect]:
        """Take what a run did."""

    def handle_committed(self, now: float, number: int, /) -> list[Effect]:
        """Take that every `Commit` up to this one is stored."""

    def handle_command(self, now: float, command: Command, /) -> list[Effect]:
        """Take a command."""

    def handle_timeout(self, now: float, /) -> list[Effect]:
        """Do what is due."""

    def next_timeout(self) -> float | None:
        """Return when something is due."""

    def check_invariants(self) -> None:
        """Raise if the node contradicts itself."""
