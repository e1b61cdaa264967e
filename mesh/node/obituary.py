"""What is to be said of this session once it is over, and to whom: written while it lives, sent by who outlives it.

    this session's members, voters, number ── changed? ──► a letter to each ──► the guardian keeps them
                                                       the node ends, its work is killed and reaped
    each of them ◄── "this session has ended" ── the guardian sends them ◄──┘

Nobody else can know that nothing of a session runs any more, so what it says is proof, and leases end by it. It
names this session alone, and outranks every word of it, whatever incarnation it has reached when it ends; a
later session outranks it. In a small mesh each member gets a letter, so that none has to wake another with
it; in a larger one 64 do, who tell the rest. A node that says farewell takes it back, as it has said more; so does
one that must stop for another that runs under its id: what that one does is not its to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from mesh.core.effects import WriteObituary
from mesh.core.ids import NodeId
from mesh.core.letter import Letter
from mesh.core.pace import Pace
from mesh.membership.identity import INCARNATION_MAX
from mesh.membership.swim import Swim
from mesh.membership.testimony import WITNESSED_MAX
from mesh.node.mail import Mail
from mesh.wire.packet import encode_message
from mesh.wire.records import Cause
from mesh.wire.swim_messages import Dead

READERS_MAX: Final = WITNESSED_MAX
"""So many are told, as by a witness of a crash: everybody in a small mesh."""

SETTLED_S: Final = 0.25
"""A change waits so long for others, and for the moment to pass in which all are busy with the same news."""

WRITTEN_S: Final = 1.0
WRITTEN_BURST: Final = 8
"""It is written anew at this pace, in the long run."""

_State: TypeAlias = tuple[object, ...]
_NOTHING: Final = WriteObituary(())


class Obituary:
    """The obituary of this session. Call `step` after every input: it is cheap while nothing has changed."""

    def __init__(
        self,
        swim: Swim,
        mail: Mail,
        voters: Callable[[], Iterable[NodeId]],
        *,
        is_wanted: bool = True,
    ) -> None:
        """`voters` tells who votes, as far as this node knows: they are the ones who end its leases.

        Not `is_wanted`: none is ever written, where silence alone is to tell of a death.
        """
        self._is_wanted = is_wanted
        self._swim = swim
        self._mail = mail
        self._voters = voters
        self._seen: _State = ()
        self._written = _NOTHING
        self._pace = Pace(rate_s=WRITTEN_S, burst=WRITTEN_BURST)
        self._due: float | None = None  # when a change is written that has to wait

    def step(self, now: float) -> list[WriteObituary]:
        """Write it anew if what it says, or to whom, has changed."""
        if self._swim.phase != "member" or not self._is_wanted:
            return self.take_back()
        state = self._state()
        if state == self._seen:
            self._due = None
            return []
        if self._due is None and self._written is not _NOTHING:
            self._due = now + SETTLED_S
        if self._due is not None and now < self._due:
            return []
        if not self._pace.allows(now):
            self._due = self._pace.next_at(now)
            return []
        self._seen, self._due = state, None
        return self._replace(WriteObituary(tuple(self._letters())))

    def next_deadline(self) -> float | None:
        """Return when a change is written that had to wait."""
        return self._due

    def take_back(self) -> list[WriteObituary]:
        """Let nothing be sent."""
        self._seen, self._due = (), None
        return self._replace(_NOTHING)

    def _replace(self, obituary: WriteObituary) -> list[WriteObituary]:
        if obituary == self._written:
            return []
        self._written = obituary
        return [obituary]

    def _state(self) -> _State:
        """Return what tells whether anything has changed."""
        swim, identity = self._swim, self._swim.identity
        table = swim.table
        whose = identity.mesh_id, identity.card.boot
        return (*whose, table.view_hash, table.moves, tuple(self._voters()))

    def _letters(self) -> Iterable[Letter]:
        identity = self._swim.identity
        boot, node_id = identity.card.boot, identity.node_id
        over = Dead(node_id, boot, INCARNATION_MAX, Cause.ENDED, node_id)
        data = self._mail.close_datagram([encode_message(over)])
        for reader in self._readers():
            member = self._swim.table.get(reader)
            if member is not None:
                yield Letter(reader, member.address, data)

    def _readers(self) -> list[NodeId]:
        """Return who is told: the observers, who look for it anyway, the voters, others up to the limit."""
        table = self._swim.table
        chosen = dict.fromkeys(self._swim.observers.among(table.living, READERS_MAX))
        for voter in self._voters():
            member = table.get(voter)
            if member is not None and member.is_living and voter != self._swim.identity.node_id:
                chosen.setdefault(voter)
        for other in table.living[:READERS_MAX]:
            chosen.setdefault(other)
        return list(chosen)[:READERS_MAX]
