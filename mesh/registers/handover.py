"""What a desk does for a change of voters, said by whoever sees to that change: ask, propose, install, adopt.

A voter seals and tells what it held by itself, whoever asks; that takes no state. How one epoch follows
another, and what this node takes over for it, is decided elsewhere: a desk hands on all that it hears, and
carries out what comes back, in order with everything else that it stores and sends.

Source: our own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from mesh.core.ids import NodeId
from mesh.registers.asker import Outcome
from mesh.registers.outbox import Message
from mesh.registers.proposal import Change
from mesh.registers.record import Record
from mesh.wire.roster_messages import AskRoster, Roster, SealRequest


@dataclass(frozen=True, slots=True)
class Install:
    """Vote in this epoch from now on, with what was held before it: by key the record, and whether a lease lives."""

    epoch: int
    records: Mapping[bytes, tuple[Record, bool]]


@dataclass(frozen=True, slots=True)
class Adopt:
    """Ask the voters of this roster from now on, unless a later one is known."""

    roster: Roster


@dataclass(frozen=True, slots=True)
class Propose:
    """Ask the voters to change this register; then tell `proposed` how that ended."""

    key: bytes
    change: Change
    timeout_s: float


@dataclass(frozen=True, slots=True)
class SetAside:
    """Set numbers aside that questions will need, while the disk has room."""


Move: TypeAlias = (
    tuple[NodeId, SealRequest | Roster | AskRoster] | Install | Adopt | Propose | SetAside
)
"""A message to a node, this one too, or what is to be done here, at once and in order."""


class Succession(Protocol):
    """Whoever sees to it that one epoch follows another. It begins by being due."""

    def handle(self, now: float, sender: NodeId, message: Message) -> Iterable[Move]:
        """Take any message that the desk hears, after the desk itself has taken it."""

    def proposed(self, now: float, outcome: Outcome) -> Iterable[Move]:
        """Take how the question of a `Propose` has ended."""

    def handle_timeout(self, now: float) -> Iterable[Move]:
        """Do what is due; too early, twice or late does no harm."""

    def next_deadline(self) -> float | None:
        """Return when something is due."""

    def check_invariants(self) -> None:
        """Raise AssertionError if it contradicts itself."""
