"""Small scenarios of one register: who asks, under which ballots, and what may go wrong.

Three voters, one epoch. A turn is one ballot of one asker; the turns of a node follow each other, a later
one may begin at any moment, and with another boot it means that the node has restarted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.wire.register_messages import Standing, Value

KEY: Final = b"register"
EPOCH: Final = 1
VOTERS: Final = (NodeId(11), NodeId(12), NodeId(13))
P0: Final = NodeId(21)
P1: Final = NodeId(22)
P2: Final = NodeId(23)


class Kind(Enum):
    """What an asker wants."""

    FIRST = "creates without asking (n = 0)"
    CREATE = "creates"
    CLAIM = "claims"


@dataclass(frozen=True, slots=True)
class Turn:
    """One ballot of one asker."""

    n: int
    node: NodeId
    kind: Kind = Kind.CLAIM
    boot: int = 1
    home: int = 0
    """FIRST: the place of the voter that creates."""

    @property
    def ballot(self) -> Ballot:
        return Ballot(1, EPOCH, self.n, self.node)

    @property
    def name(self) -> str:
        who = f"P{self.node - P0}" if self.node >= P0 else f"voter {'ABC'[self.home]}"
        return f"{who} (n = {self.n}, boot {self.boot})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Who asks, and what may go wrong."""

    name: str
    turns: tuple[Turn, ...]
    exists: bool = True
    """The register was created, and all three voters have it."""

    renewals: int = 0
    """Rounds of renewals of each claim, after the grant itself."""

    restarts: bool = True
    """Voters may restart at any moment, any number of times."""

    holds_back: bool = False
    """Commits take time: what waits for one is lost by a restart, with the answers that wait for it."""

    proofs: bool = False
    """A session that is over may be proved to be."""

    completes: bool = True
    """Owners may come to an end."""

    alike: int = 0
    """From this place on, voters differ in nothing but their names."""


def created(turn: int) -> Value:
    """Return the value of a register that this turn created."""
    return Value(Standing.OPEN, b"made by turn %d" % turn)


def first(home: int, boot: int = 1) -> Turn:
    """Return the turn of a voter that creates without asking."""
    return Turn(0, VOTERS[home], Kind.FIRST, boot, home)


BEFORE: Final = Ballot(1, EPOCH, 0, VOTERS[0])
"""Under this an existing register was created."""

_CLAIMS = (Turn(1, P0), Turn(2, P1))

ONE_CLAIM_EACH = Scenario(name="two claimants, one ballot each", turns=_CLAIMS, renewals=1)
SLOW_COMMITS = Scenario(
    name="two claimants, commits that take time", turns=_CLAIMS, holds_back=True
)
TWO_ROUNDS = Scenario(name="two claimants, two rounds of renewals", turns=_CLAIMS, renewals=2)
SLOW_COMMITS_RENEWED = Scenario(
    name="two claimants that renew, commits that take time",
    turns=_CLAIMS,
    renewals=1,
    holds_back=True,
)
TWO_CLAIMS_EACH = Scenario(
    name="two claimants, two ballots each",
    turns=(Turn(1, P0), Turn(2, P1), Turn(3, P0), Turn(4, P1)),
)
CLAIMS_AGAIN = Scenario(
    name="a claimant claims again what it has, then another claims",
    turns=(Turn(1, P0), Turn(2, P0), Turn(3, P1)),
)
RETURNS = Scenario(
    name="a claimant restarts, then another claims",
    turns=(Turn(1, P0), Turn(2, P0, boot=2), Turn(3, P1)),
    renewals=1,
)
RETURNS_TO_RENEW = replace(RETURNS, completes=False, restarts=False)
SLOW_RENEWALS = replace(SLOW_COMMITS_RENEWED, completes=False)
RETURNS_AMONG_THREE = Scenario(
    name="a claimant restarts, beside two others",
    turns=(Turn(1, P0), Turn(2, P1), Turn(3, P0, boot=2), Turn(4, P2)),
)
PROVED = Scenario(
    name="a claimant restarts, its end is proved",
    turns=(Turn(1, P0), Turn(2, P0, boot=2), Turn(3, P1)),
    proofs=True,
)
CREATED_TWICE = Scenario(
    name="created by its first voter and by another, and claimed",
    turns=(first(0), Turn(1, P0, Kind.CREATE), Turn(2, P1)),
    exists=False,
    alike=1,
)
CREATED_AND_CLAIMED_TWICE = Scenario(
    name="created by its first voter and by another, and claimed by two",
    turns=(first(0), Turn(1, P0, Kind.CREATE), Turn(2, P1), Turn(3, P2)),
    exists=False,
    alike=1,
)
CREATED_SLOWLY = Scenario(
    name="created by its first voter and by another, commits that take time",
    turns=(first(0), Turn(1, P0, Kind.CREATE)),
    exists=False,
    holds_back=True,
    alike=1,
)
FIRST_RETURNS = Scenario(
    name="its first voter creates it, restarts and creates it",
    turns=(first(0), first(0, boot=2), Turn(2, P0)),
    exists=False,
    alike=1,
)
TWO_FIRSTS = Scenario(
    name="two voters create without asking, and a claim",
    turns=(first(0), first(1), Turn(2, P0)),
    exists=False,
    alike=2,
)
CREATES_AGAIN = Scenario(
    name="whoever creates restarts and creates, beside a claim",
    turns=(Turn(1, P0, Kind.CREATE), Turn(2, P0, Kind.CREATE, boot=2), Turn(3, P1)),
    exists=False,
)
SAME_BALLOT = Scenario(
    name="whoever creates restarts and uses its ballot again, beside a claim",
    turns=(Turn(1, P0, Kind.CREATE), Turn(1, P0, Kind.CREATE, boot=2), Turn(2, P1)),
    exists=False,
)


def apart(scenario: Scenario) -> Scenario:
    """Return the scenario without knowing that some voters are alike."""
    return replace(scenario, alike=3)
