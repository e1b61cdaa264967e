"""News on its way: what is still to be passed on, and how often it was already.

One rumour per member: newer news of a member replaces older. Whatever leaves this node takes along
the rumours told least often so far, the newest of them first, as many as fit. After
`multiplier * log10(size + 1)` tellings (rounded up) a rumour rests; anti-entropy brings what it missed.

Source: infection-style dissemination [SWIM §4.1]; the preference for rumours told less often is from
the same section.
"""

from __future__ import annotations

import math
from itertools import islice
from typing import Final

from mesh.core.ids import NodeId

RUMOURS_MAX: Final = 8192

_RUMOUR_BYTES_MIN: Final = 16
"""With less room than this nothing more is looked for."""

_LOOKED_MAX: Final = 512
"""So many rumours are looked at for a packet: a long queue is not searched for one that still fits."""


def retransmit_limit(multiplier: float, size: int) -> int:
    """Return how often a rumour is told in a mesh of `size` members."""
    return max(1, math.ceil(multiplier * math.log10(size + 1)))


class Dissemination:
    """A bounded queue of encoded rumours, sorted by how often each was told."""

    __slots__ = ("_by_told", "_multiplier", "_told", "dropped")

    def __init__(self, multiplier: float) -> None:
        self._multiplier = multiplier
        self._by_told: list[dict[NodeId, bytes]] = [{}]  # index: times told; insertion order: age
        self._told: dict[NodeId, int] = {}
        self.dropped = 0
        """How many rumours were given up because the queue was full."""

    def __len__(self) -> int:
        return len(self._told)

    def __contains__(self, subject: NodeId) -> bool:
        return subject in self._told

    @property
    def has_fresh(self) -> bool:
        """Say whether there is news that was never told yet."""
        return bool(self._by_told[0])

    def add(self, subject: NodeId, rumour: bytes, *, is_told: bool = False) -> None:
        """Queue news of `subject`, in place of older news of it; `is_told`: all were told, there is no hurry."""
        self.forget(subject)
        if len(self._told) >= RUMOURS_MAX:
            oldest = next(reversed([told for told in self._by_told if told]))
            self.forget(next(iter(oldest)))
            self.dropped += 1
        told = 1 if is_told else 0
        if told == len(self._by_told):
            self._by_told.append({})
        self._told[subject] = told
        self._by_told[told][subject] = rumour

    def forget(self, subject: NodeId) -> None:
        """Drop the news of `subject`, if there is any."""
        told = self._told.pop(subject, None)
        if told is not None:
            del self._by_told[told][subject]

    def take(self, bytes_max: int, size: int, but: NodeId | None = None) -> list[bytes]:
        """Return rumours of at most `bytes_max` bytes together, and count each as told once more.

        `but` names a member whose rumour is on the packet already.
        """
        if not self._told:
            return []
        limit = retransmit_limit(self._multiplier, size)
        taken = self._choose(bytes_max, but)
        for subject, told, rumour in reversed(taken):
            del self._by_told[told][subject]
            if told + 1 >= limit:
                del self._told[subject]
                continue
            if told + 1 == len(self._by_told):
                self._by_told.append({})
            self._told[subject] = told + 1
            self._by_told[told + 1][subject] = rumour
        return [rumour for _, _, rumour in taken]

    def riders(self, bytes_max: int) -> list[bytes]:
        """Return rumours of at most `bytes_max` bytes together that ride along with what is not membership's.

        They do not count as told: work may go to one member all the time, and would use up there
        what the whole mesh is to hear.
        """
        return [rumour for _, _, rumour in self._choose(bytes_max, None)] if self._told else []

    def _choose(self, bytes_max: int, but: NodeId | None) -> list[tuple[NodeId, int, bytes]]:
        """Return (subject, times told, rumour) of those to tell next, as many as fit."""
        chosen: list[tuple[NodeId, int, bytes]] = []
        in_order = (
            (subject, told, queue[subject])
            for told, queue in enumerate(self._by_told)
            for subject in reversed(queue)
        )
        for subject, told, rumour in islice(in_order, _LOOKED_MAX):
            if bytes_max < _RUMOUR_BYTES_MIN:
                break
            if subject != but and len(rumour) <= bytes_max:
                bytes_max -= len(rumour)
                chosen.append((subject, told, rumour))
        return chosen
