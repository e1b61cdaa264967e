"""Successions of a small mesh, and what is said to them and by them."""

from __future__ import annotations

import random

from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.registers.admission import Member, Pace
from mesh.registers.handover import Adopt, Install, Move, Propose, SetAside
from mesh.registers.leases import local
from mesh.registers.proposal import Chosen
from mesh.registers.record import Record
from mesh.registers.roster import founding, proposing, successor_key
from mesh.registers.succession import Succession
from mesh.registers.voter import Voter
from mesh.wire.register_messages import Standing, Value
from mesh.wire.roster_messages import AskRoster, Roster, Seal

A, B, C, D, E = (NodeId(number) for number in (1, 2, 3, 4, 5))
ONE = founding(A)
TWO = Roster(2, (A, B, C))
PACE = Pace(stand_s=60, ask_s=10)
OPEN = Value(Standing.OPEN, b"ready")


def value_of(roster: Roster) -> Value:
    value = proposing(roster)(None)
    assert value is not None
    return value


def kept(roster: Roster, n: int = 0) -> tuple[bytes, Record]:
    """Return a roster's record, as it is on a voter's disk."""
    ballot = Ballot(0, max(1, roster.epoch - 1), n, A)
    return successor_key(roster.epoch - 1), Record(ballot, ballot, 0, value_of(roster))


def voter(own_id: NodeId, epoch: int = 0, sealed: int = 0, *rosters: Roster) -> Voter:
    records = [kept(roster) for roster in rosters]
    return Voter(own_id, local(), epoch=epoch, sealed=sealed, now=0.0, records=records)


def session(own_id: NodeId, of: Voter | None = None) -> Succession:
    return Succession(own_id, of or voter(own_id), PACE, random.Random(1), 0.0)


def founder() -> Succession:
    return session(A, voter(A, 1, 0, ONE))


def member(node_id: NodeId, boot: int = 1, *, keeps_store: bool = True) -> Member:
    return Member(node_id, boot, keeps_store)


def proposals(moves: list[Move]) -> list[Propose]:
    return [move for move in moves if isinstance(move, Propose)]


def adopted(moves: list[Move]) -> list[Roster]:
    return [move.roster for move in moves if isinstance(move, Adopt)]


def chosen(roster: Roster) -> Chosen:
    return Chosen(value_of(roster), Ballot(0, 1, 1, A), 0.0, is_found=False)


def learn(at: Succession, now: float, sender: NodeId, roster: Roster) -> list[Move]:
    """Let a voter name a roster, and say so again when it is asked; return what comes of that."""
    moves = at.handle(now, sender, roster)
    is_learnt = any(
        isinstance(move, Adopt | Install) or isinstance(move[1], Seal)
        for move in moves
        if not isinstance(move, Propose | SetAside)
    )
    return moves if is_learnt else at.handle(now, sender, roster)


def stood(at: Succession, *nodes: NodeId) -> list[Move]:
    """Let these members stand for long enough; return what comes of it."""
    at.note_members(0.0, [member(node) for node in nodes])
    return at.handle_timeout(PACE.stand_s)


def asked(moves: list[Move]) -> set[NodeId]:
    """Return who is asked for rosters."""
    return {move[0] for move in moves if isinstance(move, tuple) and isinstance(move[1], AskRoster)}
