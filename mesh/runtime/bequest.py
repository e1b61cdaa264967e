"""Hands a node's obituary to its guardian: sealed for each who is to get it, and anew when that would not open.

What is sealed is bound to the key that seals first and to the numbers of this session: it counts for as long as
those do, not for a time. So whoever looks once a second has it sealed anew soon enough: a key that no longer
seals still opens, until somebody removes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from mesh.core.address import Address
from mesh.core.effects import WriteObituary
from mesh.core.ids import NodeId
from mesh.runtime.reach import Reach


class Ahead(Protocol):
    """What seals for later."""

    @property
    def era(self) -> object:
        """What stays the same for as long as what was sealed counts."""
        ...

    def seal_ahead(self, receiver: NodeId, packet: bytes) -> bytes:
        """Return what to send to one member when this node sends nothing any more."""
        ...


class Bequest:
    """The obituary of one node. `hand_on` gives it to whoever outlives the node."""

    def __init__(
        self,
        sealing: Ahead,
        reach: Reach,
        hand_on: Callable[[Iterable[tuple[Address, bytes]]], None],
    ) -> None:
        self._sealing = sealing
        self._reach = reach
        self._hand_on = hand_on
        self._obituary = WriteObituary(())
        self._era: object = None

    def write(self, obituary: WriteObituary) -> None:
        """Replace it. What may not leave this host unsealed does not."""
        self._obituary = obituary
        self._era = self._sealing.era
        self._hand_on(
            [
                (letter.to, self._sealing.seal_ahead(letter.reader, letter.data))
                for letter in obituary.letters
                if self._reach.covers(letter.to.host)
            ]
        )

    def look(self) -> None:
        """Seal it anew if what was sealed is about to count no more. Call about once a second."""
        if self._obituary.letters and self._sealing.era != self._era:
            self.write(self._obituary)
