"""What the tests of registers share: a key, three voters, those who ask, and short ways to name things."""

from typing import Final

from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.registers.leases import LeaseTimes
from mesh.registers.record import Record
from mesh.registers.voter import Voter
from mesh.wire.register_messages import Accept, Owner, Prepare, Renew, Standing, Value

KEY: Final = b"key"
A, B, C = VOTERS = (NodeId(1), NodeId(2), NodeId(3))
STRANGER: Final = NodeId(9)
P, Q = NodeId(21), NodeId(22)
TIMES: Final = LeaseTimes(renew_s=2, owner_s=10, voter_s=15, grace_s=2)
EPOCH: Final = 4

OPEN: Final = Value(Standing.OPEN, b"open")
FINAL: Final = Value(Standing.FINAL, b"done")
P_HAS: Final = Value(Standing.LEASED, b"open", Owner(P, 1))
Q_HAS: Final = Value(Standing.LEASED, b"open", Owner(Q, 1))


def ballot(n: int, node: NodeId = P, epoch: int = EPOCH) -> Ballot:
    return Ballot(1, epoch, n, node)


def prepare(n: int, node: NodeId = P, *, boot: int = 1, epoch: int = EPOCH) -> Prepare:
    return Prepare(KEY, ballot(n, node, epoch), boot)


def accept(n: int, value: Value, *, node: NodeId = P, seq: int = 0, epoch: int = EPOCH) -> Accept:
    return Accept(KEY, epoch, ballot(n, node), seq, value)


def renew(n: int, node: NodeId = P, *, round_: int = 1, epoch: int = EPOCH) -> Renew:
    return Renew(epoch, round_, ((KEY, ballot(n, node)),))


def voter(now: float = 0.0, record: Record | None = None, epoch: int = EPOCH) -> Voter:
    kept = [] if record is None else [(KEY, record)]
    return Voter(A, TIMES, epoch=epoch, now=now, records=kept)


def leased_voter(now: float = 0.0) -> Voter:
    """Return a voter that has accepted P's lease, under number 5, just now."""
    asked = voter()
    asked.handle(now, accept(5, P_HAS))
    return asked
