"""An owner's part of a desk: who votes, what may be done with what is held, and writes under it.

Source: our own.
"""

from __future__ import annotations

from mesh.core.ballot import Ballot
from mesh.registers.owning import Owning
from mesh.registers.proposal import Chosen
from mesh.registers.seating import Seating
from mesh.registers.trust import Hold
from mesh.wire.register_messages import Value
from mesh.wire.roster_messages import Roster


class Holder:
    """What a desk does for an owner, and tells of seats and leases."""

    def __init__(self, seating: Seating, owning: Owning) -> None:
        self._seating = seating
        self._owning = owning

    @property
    def roster(self) -> Roster | None:
        """The latest roster that is known; None: none yet, and nothing that is asked is answered."""
        return self._seating.roster

    def seats(self, key: bytes) -> Roster:
        """Return the epoch and the (at most three) voters of a register, best first."""
        return self._seating.seats(key)

    def place(self, key: bytes) -> int | None:
        """Return this node's place among the voters of a register: 0 is the first; None: it is none of them."""
        return self._seating.place(key)

    def hold(self, now: float, key: bytes, chosen: Chosen) -> Hold:
        """Take a lease that was granted to this session, and renew it from now on; return what may be done with it now.

        Changes come as Held. DOUBT: it was granted too late, nothing is done before Held says SURE. LOST: far
        too late; what was held is only to be dropped, or released by a write.

        Raises:
            LocalProtocolError: it is not this session's lease, or this node holds as many as it may; nothing
                changed.
        """
        hold = self._owning.hold(now, key, chosen)
        self._finish(now)
        return hold

    def take_up(
        self, now: float, key: bytes, value: Value, token: Ballot, *, is_renewed: bool = True
    ) -> Hold:
        """Take a lease that the write which created a register names this session for; DOUBT, until Held says otherwise.

        It may not be chosen, and nothing of it is trusted before a majority has renewed it, which is asked at once.
        To be called once for each such write, in all of a session: whoever takes it up writes under that token.
        Not `is_renewed`: it is taken to be released by a write at once, and LOST as a lease, however many are held.

        Raises:
            LocalProtocolError: as of `hold`.
        """
        named = Chosen(value, token, sent_at=None, is_found=False)
        if is_renewed:
            hold = self._owning.hold(now, key, named)
        else:
            self._owning.take_to_write(key, token)
            hold = Hold.LOST
        self._finish(now)
        return hold

    def write(self, now: float, key: bytes, value: Value) -> int:
        """Write under the token of what is held, in place of the write before; return the number of this one.

        Ends as Written with that number, or as Fenced; of writes that follow each other closely, only the last
        is reported. It goes on when the lease is lost. A value that is no lease (released, or final) ends the
        holding once it is Written: it need not be dropped. The work has stopped before such a value is written:
        who claims next may be sure of it before Written comes.

        Raises:
            LocalProtocolError: the register is not held, or a final value was written; nothing is sent.
        """
        seq = self._owning.write(now, key, value)
        self._finish(now)
        return seq

    def drop(self, now: float, key: bytes) -> None:
        """Hold it no more: no renewals, no writes, and only such events as were on their way. To be called after LOST and Fenced as well."""
        self._owning.drop(key)
        self._finish(now)

    def standing(self, now: float, key: bytes) -> Hold | None:
        """Return what may be done with a lease now; None: it is not held here."""
        return self._owning.standing(now, key)

    def trusted_until(self, key: bytes) -> float | None:
        """Return until when the work of a lease may run: what a guardian is told; None: it is not held here."""
        return self._owning.trusted_until(key)

    def given_up_at(self, key: bytes) -> float | None:
        """Return when a lease is lost, unless it is renewed before; None: it is not held here."""
        return self._owning.given_up_at(key)

    def _finish(self, now: float) -> None:
        raise NotImplementedError
