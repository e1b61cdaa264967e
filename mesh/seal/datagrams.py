"""Seals and opens datagrams: AES-256-GCM, one derived key for each sender, one number for each packet.

    'S' | flags, version u8 | sender u64 | salt u64 | number u32 | sealed: [challenge] [proof] messages | tag

The nonce is salt and number. The salt is drawn at random when a node starts, and again before the
numbers run out, so no nonce is used twice under a key whatever happened to the disk or to the clock.
The header, the mesh's id and the receiver's are authenticated; neither id travels. Who is at an address is
known once it has proved itself there: what is sent before that opens at any member, and counts at the one
whose challenge is answered next. A plain packet's header is taken off before, and put back after, so
sealing costs 20 bytes a datagram.

Nothing is read, and no state kept, of a datagram that no key opens. One that opens but may be recorded
(see `freshness`) is kept back. If it only asks whether this node is there, it is answered, and that is all.

Nearly all that arrives comes from a session that has proved itself, from where it did. What opens that is
kept by the 18 bytes that all of a session's datagrams begin with, and forgotten as soon as the ring, the
mesh or any session changes; the long way, which every other datagram goes, finds it again.

Source: deterministic nonces with a fixed and a counting field follow [NIST SP 800-38D §8.2.1].
"""

from __future__ import annotations

import math
import struct
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from mesh.core.address import Address
from mesh.core.ids import MeshId, NodeId
from mesh.core.pace import Pace
from mesh.seal.freshness import (
    CHALLENGE_BYTES,
    PEERS_MAX,
    Freshness,
    Held,
    Proved,
    Session,
    make_room,
)
from mesh.seal.ring import KeyRing
from mesh.seal.window import ReplayWindow
from mesh.wire.packet import HEADER as PLAIN_HEADER
from mesh.wire.packet import MAGIC as PLAIN_MAGIC

MAGIC: Final = 0x53
HEADER: Final = struct.Struct(">BBQQI")
TAG_BYTES: Final = 16
SEAL_BYTES_MAX: Final = HEADER.size - PLAIN_HEADER.size + TAG_BYTES + CHALLENGE_BYTES + 12
"""By how much a datagram grows at most."""

_BYTES_MIN: Final = HEADER.size + TAG_BYTES
NUMBER_MAX: Final = (1 << 32) - 1

_BOUND: Final = struct.Struct(">BB16sI8sQ")  # the header, the mesh's id, the receiver's or 0
_IDS: Final = struct.Struct(">QQ")  # its end
_FRONT: Final = struct.Struct(">18sI")  # the header: what a session's all begin with, the number
# Slices below are written out, as each packet costs some. Of a sealed one, [:22] is the header, [10:22] the
# nonce; of a plain one, [2:10] is the mesh's id, and [18:] what is sealed.
_PROOF: Final = struct.Struct(">8sI")  # the challenge, the floor
_HAS_CHALLENGE: Final = 0x10
_HAS_PROOF: Final = 0x20
_FOR_ONE: Final = 0x40
_KINDS: Final = _HAS_CHALLENGE | _HAS_PROOF | _FOR_ONE
_VERSION_BITS: Final = 0x0F
_ANYBODY: Final = NodeId(0)
_PURPOSE: Final = b"mesh datagram"

FLOOR_S: Final = 2.0
MARK_S: Final = 1.0
"""A proof vouches for what its sender has sent in FLOOR_S before, up to MARK_S more."""

ANSWERS_S: Final = 1_000.0
ANSWERS_BURST: Final = 1_000
ANSWER_GAP_S: Final = 0.1
"""Challenges and proofs that are sent for their own sake: in all, and the pause before the next to one member at one address.

More travel with the next packet to that peer."""


Opening: TypeAlias = tuple[Sequence[bytes], Sequence[tuple[Address, bytes]]]
"""What a datagram comes to: the plain packets that count now, in order, and the datagrams to send at once."""

_NOTHING: Final[Opening] = ((), ())


@dataclass(frozen=True, slots=True)
class _Familiar:
    """A session that counts, from where it proved itself: what its next datagram is opened with."""

    there: Proved
    opener: AESGCM
    window: ReplayWindow
    plain_header: bytes


class DatagramSeal:
    """Seals what one node sends, opens what it receives. `counters` says what was dropped, and why."""

    def __init__(
        self,
        *,
        ring: KeyRing,
        node_id: NodeId,
        mesh_id: Callable[[], MeshId],
        entropy: Callable[[int], bytes],
        answer: Callable[[Address, bytes], bytes],
    ) -> None:
        """`answer` answers a plain packet that may be recorded, and changes nothing; b"": it has to wait."""
        self.counters = {
            "dropped_unsealed": 0,
            "dropped_unopened": 0,
            "dropped_replayed": 0,
            "dropped_reflected": 0,
            "dropped_unproven": 0,
            "proof_packets": 0,
        }
        self._ring = ring
        self._node_id = node_id
        self._mesh_id = mesh_id
        self._entropy = entropy
        self._answer = answer
        self._freshness = Freshness(entropy)
        self.begin_anew = self._freshness.begin_anew
        self._sessions = self._freshness.sessions
        self._proved_at = self._freshness.proved_at
        self._challenges = self._freshness.challenges
        self._owed: dict[Address, bytes] = {}
        self._openers: dict[NodeId, AESGCM] = {}
        self._familiar: dict[bytes, _Familiar] = {}
        self._marks: deque[tuple[float, int]] = deque()
        self._answered_at: dict[tuple[Address, NodeId], float] = {}
        self._pace = Pace(rate_s=ANSWERS_S, burst=ANSWERS_BURST)
        self._number = self._ceiling = (
            NUMBER_MAX  # below it for what is sent now, from it down for what is sealed ahead
        )
        self._mark_at = -math.inf
        self._adopt()
        self._renew()

    def seal(self, now: float, to: Address, packet: bytes, receiver: NodeId | None = None) -> bytes:
        """Return a plain packet sealed, with whatever is owed to, or wanted of, the peer at `to`.

        It opens at `receiver` alone; None: at whoever has proved itself at `to`, or at anybody.
        """
        if self._digest != self._ring.digest:
            self._adopt()
        if self._number >= self._ceiling:
            self._renew()
        if now >= self._mark_at:
            self._mark(now)
        if receiver is None:
            receiver = self._freshness.receiver_at(now, to)
        flags, body = packet[1] | _FOR_ONE, packet[18:]
        if self._challenges or self._owed or not receiver:
            flags, body = self._burden(now, to, receiver, packet)
        number = self._number
        self._number = number + 1
        bound = _BOUND.pack(MAGIC, flags, self._session, number, packet[2:10], receiver)
        return bound[:22] + self._sealer.encrypt(bound[10:22], body, bound)

    @property
    def era(self) -> tuple[object, ...]:
        """What of this seal's what is sealed ahead is bound to: while it stays, that counts; then seal anew."""
        return self._ring.digest, self._mesh_id(), self._session

    def seal_ahead(self, receiver: NodeId, packet: bytes) -> bytes:
        """Return a plain packet sealed for one member, to be sent whenever this session sends nothing any more.

        It takes a number from the end of the session's: so it counts where the session has proved itself,
        however much is sent in between and from wherever it comes; once; and nothing sent before counts after it.
        """
        if self._digest != self._ring.digest or self._mesh != self._mesh_id():
            self._adopt()
        if self._number >= self._ceiling:
            self._renew()
        number = self._ceiling
        self._ceiling = number - 1
        flags = packet[1] | _FOR_ONE
        bound = _BOUND.pack(MAGIC, flags, self._session, number, packet[2:10], receiver)
        return bound[:22] + self._sealer.encrypt(bound[10:22], packet[18:], bound)

    def open(self, now: float, source: Address, data: bytes) -> Opening:
        """Open a datagram. Nothing comes of one that does not open here, or does not count: it is counted."""
        packet = self.open_familiar(source, data)
        return self.open_unfamiliar(now, source, data) if packet is None else ((packet,), ())

    def open_familiar(self, source: Address, data: bytes) -> bytes | None:
        """Return the plain packet of a datagram that counts, if its session is familiar from `source`.

        None: it takes `open_unfamiliar` to tell what it is, and no state has changed.
        """
        if self._digest != self._ring.digest or self._mesh != self._mesh_id():
            self._adopt()
        if len(data) < _BYTES_MIN:
            return None
        front, number = _FRONT.unpack_from(data)
        familiar = self._familiar.get(front)
        if familiar is None or self._proved_at.get(source) is not familiar.there:
            return None
        try:
            body = familiar.opener.decrypt(data[10:22], data[22:], data[:22] + self._for_one)
        except InvalidTag:
            return None
        if not familiar.window.accept(number):
            return None
        familiar.there.unanswered = 0
        return familiar.plain_header + body

    def open_unfamiliar(self, now: float, source: Address, data: bytes) -> Opening:
        """Open what `open_familiar` does not: of a new session, or one that moved or took another key."""
        if len(data) < _BYTES_MIN or data[0] != MAGIC:
            is_plain = data[:1] == bytes((PLAIN_MAGIC,))
            self.counters["dropped_unsealed" if is_plain else "dropped_unopened"] += 1
            return _NOTHING
        _, flags, sender, salt, number = HEADER.unpack_from(data)
        if sender == self._node_id:
            self.counters["dropped_reflected"] += 1
            return _NOTHING
        body = self._open(sender, data, flags)
        if body is None:
            self.counters["dropped_unopened"] += 1
            return _NOTHING
        session = self._sessions.get(sender)
        if session is None or session.salt != salt or flags & _KINDS != _FOR_ONE:
            return self._meet(now, source, (flags, sender, salt, number), body, session)
        if not session.window.accept(number):
            self.counters["dropped_replayed"] += 1
            return _NOTHING
        header = self._plain(flags, sender, b"")
        packet = header + body
        there = self._proved_at.get(source)
        if there is not None and there.sender == sender:
            there.unanswered = 0
            make_room(self._familiar, PEERS_MAX)
            known = _Familiar(there, self._openers[sender], session.window, header)
            self._familiar[data[:18]] = known
            return (packet,), ()
        # It has moved to where another may have proved itself, and would be sent what only that one opens.
        self._freshness.doubt(now, source)
        return (packet,), self._say(now, source, sender, flags)

    # Inside.

    def _adopt(self) -> None:
        """The ring or the mesh has changed: seal with the first key, and forget what others sealed with."""
        self._digest, self._mesh = self._ring.digest, self._mesh_id()
        self._sealer = AESGCM(self._ring.primary.derive(_PURPOSE, self._node_id.to_bytes(8, "big")))
        self._for_one, self._for_anybody = (
            _IDS.pack(self._mesh, receiver) for receiver in (self._node_id, _ANYBODY)
        )
        self._openers.clear()
        self._familiar.clear()

    def _renew(self) -> None:
        """Begin a session: a new salt, numbers from 0."""
        self._session = self._node_id.to_bytes(8, "big") + self._entropy(8)
        self._number, self._ceiling = 0, NUMBER_MAX
        self._marks.clear()
        self._mark_at = -math.inf

    def _burden(
        self, now: float, to: Address, receiver: NodeId, packet: bytes
    ) -> tuple[int, bytes]:
        """Return a packet's flags, and its body with what is owed to, or wanted of, the peer at `to`."""
        flags, body = packet[1] | _FOR_ONE if receiver else packet[1], packet[18:]
        proof = self._owed.pop(to, b"")
        if proof:
            flags |= _HAS_PROOF
            body = _PROOF.pack(proof, self._marks[0][1]) + body
        challenge = b""
        if self._challenges or not receiver:
            challenge = self._freshness.challenge_for(now, to)
        if challenge:
            flags |= _HAS_CHALLENGE
            body = challenge + body
        return flags, body

    def _mark(self, now: float) -> None:
        """Note the number that is due; drop notes that vouch for more than FLOOR_S or a little longer."""
        marks = self._marks
        if marks and now - marks[-1][0] >= FLOOR_S + MARK_S:
            marks.clear()  # all that was sent is older
        marks.append((now, self._number))
        while len(marks) > 1 and now - marks[1][0] >= FLOOR_S:
            marks.popleft()
        self._mark_at = now + MARK_S

    def _open(self, sender: NodeId, data: bytes, flags: int) -> bytes | None:
        """Return what was sealed, or None if no key of the ring opens it here."""
        bound = data[:22] + (self._for_one if flags & _FOR_ONE else self._for_anybody)
        nonce, sealed = data[10:22], data[22:]
        opener = self._openers.get(sender)
        if opener is not None:
            try:
                return opener.decrypt(nonce, sealed, bound)
            except InvalidTag:
                pass  # it may have taken another key meanwhile
        for key in self._ring:
            fresh = AESGCM(key.derive(_PURPOSE, sender.to_bytes(8, "big")))
            try:
                body = fresh.decrypt(nonce, sealed, bound)
            except InvalidTag:
                continue
            make_room(self._openers, PEERS_MAX)
            self._openers[sender] = fresh
            return body
        return None

    def _meet(
        self,
        now: float,
        source: Address,
        header: tuple[int, NodeId, int, int],
        body: bytes,
        session: Session | None,
    ) -> Opening:
        """Open what comes with a challenge or a proof, or from a session that is new."""
        flags, sender, salt, number = header
        parts = _split(flags, body)
        if parts is None:
            self.counters["dropped_unopened"] += 1
            return _NOTHING
        challenge, proof, floor, body = parts
        packets: list[bytes] = []
        is_meant = bool(flags & _FOR_ONE)  # for this node, and not for another
        if proof:
            proved = self._freshness.prove(now, source, (sender, salt), proof, floor)
            if proved is not None:
                is_meant = True
                self._familiar.clear()
                session, held = proved
                packets += [kept.packet for kept in held]
                self.counters["dropped_unproven"] = self._freshness.evicted
        is_fresh = is_meant and session is not None and session.salt == salt
        if session is not None and is_fresh and not session.window.accept(number):
            self.counters["dropped_replayed"] += 1
            return packets, []
        there = self._proved_at.get(source)
        # Else another may be sent what is for it.
        is_here = there is not None and there.sender == sender
        if there is not None and is_here and is_fresh:
            there.unanswered = 0
        else:
            self._freshness.doubt(now, source)
        if challenge:
            make_room(self._owed, PEERS_MAX)
            self._owed[source] = challenge
        if not body:  # it has nothing to say, and waits for the proof
            return packets, self._say(now, source, sender, flags) if challenge else []
        packet = self._plain(flags, sender, body)
        if is_fresh:
            return [*packets, packet], [] if is_here else self._say(now, source, sender, flags)
        answer = self._answer(source, packet)
        if answer:
            return packets, [(source, self.seal(now, source, answer, sender))]
        self._freshness.hold(source, Held(now, sender, salt, number, packet))
        self.counters["dropped_unproven"] = self._freshness.evicted
        return packets, self._say(now, source, sender, flags)

    def _say(
        self, now: float, to: Address, receiver: NodeId, flags: int
    ) -> list[tuple[Address, bytes]]:
        """Return a packet that carries a challenge or a proof and nothing else, if the pace allows it."""
        # Not of the address alone: a recording of another member would use up what is due to the one there.
        told_at = self._answered_at.get((to, receiver), -math.inf)
        if now - told_at < ANSWER_GAP_S or not self._pace.allows(now):
            return []
        make_room(self._answered_at, PEERS_MAX)
        self._answered_at[to, receiver] = now
        self.counters["proof_packets"] += 1
        nothing = self._plain(flags, self._node_id, b"")
        return [(to, self.seal(now, to, nothing, receiver))]

    def _plain(self, flags: int, sender: NodeId, body: bytes) -> bytes:
        version = flags & _VERSION_BITS
        return PLAIN_HEADER.pack(PLAIN_MAGIC, version, self._mesh, sender) + body


def _split(flags: int, body: bytes) -> tuple[bytes, bytes, int, bytes] | None:
    """Return (challenge, proof, floor, the rest) of what was sealed; None if it is too short for its flags."""
    challenge, proof, floor = b"", b"", 0
    if flags & _HAS_CHALLENGE:
        challenge, body = body[:CHALLENGE_BYTES], body[CHALLENGE_BYTES:]
        if len(challenge) < CHALLENGE_BYTES:
            return None
    if flags & _HAS_PROOF:
        if len(body) < _PROOF.size:
            return None
        proof, floor = _PROOF.unpack_from(body)
        body = body[_PROOF.size :]
    return challenge, proof, floor, body
