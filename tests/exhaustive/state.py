"""What a schedule has led to: each turn, each voter with what it has answered, and what was chosen.

Messages are never removed. A request can be read again at any moment, so that it was sent is all there is
to know of it. An answer is kept with the voter that gave it, until its asker can do nothing with it any more.
Refusals are not kept: an asker may give up at any moment anyway, which is more than they can make it do.

States are numbered as they are met; all that follows from one is worked out once.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, Generic, NamedTuple, TypeVar

from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.registers.record import Record
from mesh.wire.register_messages import Accept, Promised
from tests.exhaustive.cores import Proofs, Times


class Phase(IntEnum):
    """How far a turn has come."""

    ASKING = 0
    WRITING = 1
    HOLDING = 2
    """It has read that a majority accepted its write."""

    OVER = 3


class TurnState(NamedTuple):
    """One turn."""

    phase: Phase = Phase.ASKING
    accept: Accept | None = None
    times: Times = Times(0, 0, 0)
    is_granted: bool = False
    done: Accept | None = None
    is_settled: bool = False


class Shared(NamedTuple):
    """Everything but the voters."""

    turns: tuple[TurnState, ...]
    at: tuple[int, ...]
    """For each node, which of its turns it is at."""

    chosen: int = 0
    """The writes that a majority of voters have accepted: the truth, whoever knows it."""

    granted: Ballot | None = None
    """The last token that was granted."""

    forgotten: int = 0
    """Voters that have forgotten everything."""

    fault: str = ""


class Out(NamedTuple):
    """What a voter's step brought about, once it is durable."""

    promised: tuple[tuple[NodeId, Promised], ...] = ()
    heard: int = 0
    """Answers, by their bits."""

    took: int = 0
    """Writes, by their bits."""

    sent: tuple[tuple[int, Accept], ...] = ()
    """Accepts of a first voter, by turn."""

    def joined(self, other: Out) -> Out:
        promised = tuple(sorted({*self.promised, *other.promised}, key=repr))
        sent = tuple(sorted({*self.sent, *other.sent}, key=repr))
        return Out(promised, self.heard | other.heard, self.took | other.took, sent)


NOTHING_OUT: Final = Out()


class VoterState(NamedTuple):
    """One voter, and its answers."""

    durable: Record | None = None
    memory: Record | None = None
    is_live: bool = False
    armed: int = 0
    """Of its owner's rounds, the last that had been sent when the lease was armed."""

    proofs: Proofs = ()
    waiting: Out = NOTHING_OUT
    """What leaves when the memory is durable."""

    out: Out = NOTHING_OUT
    """What has left."""

    @property
    def is_waiting(self) -> bool:
        return self.durable != self.memory or self.waiting != NOTHING_OUT


S = TypeVar("S")


class Numbered(Generic[S]):
    """Gives equal things one number."""

    def __init__(self) -> None:
        self.all: list[S] = []
        self._numbers: dict[S, int] = {}

    def number(self, thing: S) -> int:
        found = self._numbers.get(thing)
        if found is None:
            found = self._numbers[thing] = len(self.all)
            self.all.append(thing)
        return found
