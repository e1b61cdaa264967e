"""What is known of one session that may have crashed: seen here, and by others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from mesh.core.ids import NodeId
from mesh.membership.testimony import SPEAKERS
from mesh.wire.swim_messages import Seen

NOTHING: Final = Seen(0)


@dataclass(slots=True)
class Case:
    """`seen` is this node's own, `told` what of it the others were told, `witnesses` what they have seen."""

    boot: int
    rank: int | None
    """This node's among the observers of the session; None: it is none of them."""

    incarnation: int = 0
    """The member's word that all of this came after."""

    seen: Seen = NOTHING
    told: Seen = NOTHING
    asked: int = 0
    is_asking: bool = False
    witnesses: dict[NodeId, Seen] = field(default_factory=dict)
    told_dead_by: NodeId | None = None
    """Whose verdict is kept back until this node has looked."""

    @property
    def has_end(self) -> bool:
        """Say whether a lifeline has ended, wherever."""
        if Seen.CLOSED in self.seen or self.told_dead_by is not None:
            return True
        return any(Seen.CLOSED in what for what in self.witnesses.values())

    @property
    def is_first(self) -> bool:
        """Say whether this node is one of the two whose word suffices."""
        return self.rank is not None and self.rank < SPEAKERS

    @property
    def is_witness(self) -> bool:
        """Say whether this node has seen what makes a witness.

        A datagram's refusal is easy to forge: alone it makes nobody one.
        """
        return self.seen.is_refused and (self.has_end or Seen.REFUSED in self.seen)

    @property
    def is_to_be_told(self) -> bool:
        """Say whether this node is a witness, and of more than it has said."""
        return self.is_witness and (
            not self.told.is_refused or Seen.CLOSED in self.seen & ~self.told
        )

    def all_seen(self, own_id: NodeId) -> dict[NodeId, Seen]:
        """Return what each vantage point has seen."""
        return {**self.witnesses, own_id: self.seen} if self.seen else dict(self.witnesses)

    def refute(self, incarnation: int) -> None:
        """Let nothing that was seen before the member's latest word count, but for what can be looked up.

        A lifeline that ended here and was not opened again, as a member does that lives and may, is still missing.
        """
        self.incarnation = incarnation
        self.witnesses.clear()
        self.told_dead_by, self.asked = None, 0
        self.seen &= Seen.CLOSED
        self.told = NOTHING
