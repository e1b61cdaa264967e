"""Whether a sender's session runs now, or was recorded long ago and is played back.

A datagram that opens proves that a holder of the key wrote it, not when. Within a session the replay
window tells old from new; a session that this node has not met yet has to prove itself once:

    A ── news ─────────────────────► B   never met this session of A: B keeps the news back
    A ◄─ challenge: 8 random bytes ─ B
    A ── proof: the same, floor ───► B   only who runs now can seal that; the news counts after all

`floor` is the number of A's packets a moment ago: what was kept back and is older does not count.
A challenge travels with whatever is sent to a peer that is new, and so does the proof, so two members
that ping each other need no packet more. Challenges are drawn at random and each counts once, and for
`CHALLENGE_S`: else a proof could be held back until its sender is gone, and then be let in with all it sent.

Where somebody has proved itself, packets are sealed for that one alone, as long as it answers there. Two
members may both have moved, each to where it knew a third; neither can open what the other sends, so neither
would ever learn of it. So after a few packets without an answer, what is sent there opens at any
member again, and asks who that is.

Source: our own; it serves as the cookie exchange of [RFC 9147 §5.1] does. Before the proof a challenge is
kept, and a few packets.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from mesh.core.address import Address
from mesh.core.ids import NO_NODE, NodeId
from mesh.seal.window import ReplayWindow

CHALLENGE_BYTES: Final = 8
CHALLENGE_S: Final = 10.0
"""How long a challenge is open: a round trip, the wait for a packet to travel with, and some losses."""

PEERS_MAX: Final = 8_192
"""Sessions remembered, and addresses with an open challenge; of more the earliest are forgotten, and prove themselves again."""

UNANSWERED_MAX: Final = 3
UNANSWERED_GAP_S: Final = 0.5
"""So many packets, each so long after the one before, may stay unanswered; of those between, none counts.

Fewer, and lost packets or news that wants no answer make strangers of members; more, and it takes longer."""

HELD_MAX: Final = 512
HELD_PER_PEER_MAX: Final = 8
HELD_S: Final = 2.0
"""Packets kept back for a proof: in all, of one address, and for how long."""


@dataclass(frozen=True, slots=True)
class Held:
    """A packet kept back until its session has proved itself."""

    at: float
    sender: NodeId
    salt: int
    number: int
    packet: bytes


@dataclass(slots=True)
class Session:
    """A session that has proved itself: its salt, and which of its numbers were seen."""

    salt: int
    window: ReplayWindow


@dataclass(slots=True)
class Proved:
    """Who proved itself last at an address, and how many packets in a row were left unanswered there."""

    sender: NodeId
    unanswered: int = 0
    sent_at: float = -math.inf  # the latest of them


class Freshness:
    """Sessions that have proved themselves, open challenges, and what is kept back."""

    def __init__(self, entropy: Callable[[int], bytes]) -> None:
        self.evicted = 0
        """Packets kept back that no proof came for."""
        self._entropy = entropy
        self.sessions: dict[NodeId, Session] = {}
        self.proved_at: dict[Address, Proved] = {}
        self.challenges: dict[Address, tuple[bytes, float]] = {}
        """To be read: who proved itself last, of each sender and at each address; what is asked where, since when."""

        self._held: dict[Address, deque[Held]] = {}
        self._held_count = 0

    def receiver_at(self, now: float, to: Address) -> NodeId:
        """Return whom to seal for what is sent to `to` now: who has proved itself there and answers; 0: any member."""
        there = self.proved_at.get(to)
        if there is None:
            return NO_NODE
        if now - there.sent_at >= UNANSWERED_GAP_S:
            if there.unanswered >= UNANSWERED_MAX:
                del self.proved_at[to]
                return NO_NODE
            there.unanswered += 1
            there.sent_at = now
        return there.sender

    def begin_anew(self) -> None:
        """This node's own address has changed, so others' may have too: let nobody be sure to be where it was."""
        self.proved_at.clear()

    def challenge_for(self, now: float, to: Address) -> bytes:
        """Return what to ask of whoever is at `to`; b"" if it has proved itself and is not in doubt."""
        is_sure = to in self.proved_at and to not in self.challenges
        return b"" if is_sure else self.doubt(now, to)

    def doubt(self, now: float, source: Address) -> bytes:
        """Somebody is there whose session has not proved itself: ask, and return what is asked."""
        challenge, since = self.challenges.get(source, (b"", now))
        if not challenge or now - since > CHALLENGE_S:
            if not challenge:
                make_room(self.challenges, PEERS_MAX)
            challenge = self._entropy(CHALLENGE_BYTES)
            self.challenges[source] = (challenge, now)
        return challenge

    def prove(
        self, now: float, source: Address, who: tuple[NodeId, int], proof: bytes, floor: int
    ) -> tuple[Session, list[Held]] | None:
        """Take a proof of `who`, a sender and its salt: the session counts from now on.

        None: that challenge is not open, or no more.

        Returns:
            The session, and what was kept back and counts after all, in order.
        """
        sender, salt = who
        challenge, since = self.challenges.get(source, (b"", now))
        if challenge != proof or now - since > CHALLENGE_S:
            return None
        del self.challenges[source]
        session = self.sessions.get(sender)
        if session is None or session.salt != salt:
            self.sessions.pop(sender, None)
            make_room(self.sessions, PEERS_MAX)
            session = self.sessions[sender] = Session(salt, ReplayWindow(floor))
        make_room(self.proved_at, PEERS_MAX)
        self.proved_at[source] = Proved(sender)
        kept = self._held.pop(source, ())
        self._held_count -= len(kept)
        due = [h for h in kept if h.salt == salt and h.sender == sender and now - h.at <= HELD_S]
        due = [h for h in due if h.number >= floor and session.window.accept(h.number)]
        self.evicted += len(kept) - len(due)
        return session, due

    def hold(self, source: Address, held: Held) -> None:
        """Keep a packet back; the earliest of that address, or of all, give way."""
        queue = self._held.get(source)
        if queue is not None and len(queue) >= HELD_PER_PEER_MAX:
            queue.popleft()
            self._dropped()
        elif self._held_count >= HELD_MAX:
            first = next(iter(self._held))
            self._held[first].popleft()
            self._dropped()
            if not self._held[first]:
                del self._held[first]
        self._held.setdefault(source, deque()).append(held)
        self._held_count += 1

    def _dropped(self) -> None:
        self._held_count -= 1
        self.evicted += 1


def make_room(entries: dict[Any, Any], most: int) -> None:
    """Forget the earliest entries until one more fits."""
    while len(entries) >= most:
        del entries[next(iter(entries))]
