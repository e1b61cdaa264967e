"""Who may change whose key ring: members of one mesh, whose rings count there, and nobody else.

A ring *counts* in a mesh once its node founded that mesh, or took the ring over from a member whose ring
counts. What a user gives with `--key FILE` opens the door and no more: a newcomer's ring does not count,
is told to nobody, and is replaced by the ring of the mesh as soon as a member answers. So a key enters a
mesh by `mesh key add` alone, never with a host that held it for another reason.

    my ring counts, theirs too, one mesh ► both merge
    my ring does not count yet           ► theirs replaces it
    another mesh, or no ring that counts ► nothing passes
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgpack

from mesh.core.ids import NO_MESH, MeshId
from mesh.errors import DecodeError
from mesh.runtime.keystore import KeyStore
from mesh.seal.ring import DIGEST_BYTES, RING_BYTES_MAX, KeyRing, decode_ring
from mesh.wire.frames import FrameKind, exchange_body

_TEXT_CHARS_MAX: Final = 400


@dataclass(frozen=True, slots=True)
class Told:
    """What one end told of its ring. `ring` is None where it does not count, or is of another mesh."""

    mesh_id: MeshId
    digest: bytes
    ring: KeyRing | None
    problem: str


class RingPass:
    """Makes offers of a node's ring, answers those of others, and takes what is answered."""

    def __init__(self, keys: KeyStore, mesh_id: Callable[[], MeshId]) -> None:
        self._keys = keys
        self._mesh_id = mesh_id

    @property
    def counts(self) -> bool:
        """Say whether this node's ring counts in the mesh that it belongs to."""
        return self._keys.mesh_id == self._mesh_id() != NO_MESH

    def offer(self) -> bytes:
        """Return the body of a frame that offers this node's ring, if it counts, and asks for the other's."""
        return exchange_body(0, FrameKind.RING, self._tell(""))

    def answer(self, data: bytes) -> bytes:
        """Take an offer, and answer with this node's ring as it is then.

        Raises:
            DecodeError: it is no offer.
        """
        told = read_told(data)
        if told.mesh_id not in {NO_MESH, self._mesh_id()}:
            return _pack(
                self._mesh_id(), self._keys.ring.digest, b"", "is a member of another mesh"
            )
        problem = ""
        if self.counts and told.ring is not None and told.mesh_id == self._mesh_id():
            problem = self._keys.merge(told.ring)
        return self._tell(problem)

    def take(self, data: bytes) -> Told:
        """Take the answer to an offer, and return what it told.

        Raises:
            DecodeError: it is no answer.
        """
        told = read_told(data)
        ours = self._mesh_id()
        if told.ring is None or ours not in {NO_MESH, told.mesh_id}:
            return told
        if self.counts:
            problem = self._keys.merge(told.ring)
        else:
            problem = self._keys.replace(told.ring, told.mesh_id)
        here = problem and f"here, {problem}"
        return Told(told.mesh_id, told.digest, told.ring, told.problem or here)

    def count(self) -> str:
        """Let this node's ring count in its mesh from now on; return why that is not kept, or ""."""
        return self._keys.bind(self._mesh_id())

    def _tell(self, problem: str) -> bytes:
        ring = self._keys.ring.to_bytes() if self.counts else b""
        return _pack(self._mesh_id(), self._keys.ring.digest, ring, problem)


def _pack(mesh_id: MeshId, digest: bytes, ring: bytes, problem: str) -> bytes:
    return bytes(msgpack.packb([mesh_id, digest, ring, problem]))


def read_told(data: bytes) -> Told:
    """Return what an offer or an answer tells.

    Raises:
        DecodeError: it is neither.
    """
    try:
        mesh_id, digest, ring, problem = msgpack.unpackb(
            data, max_array_len=4, max_bin_len=RING_BYTES_MAX, max_map_len=0, max_ext_len=0
        )
    except Exception as error:
        raise DecodeError(f"a key ring is expected, found {type(error).__name__}") from error
    is_number = type(mesh_id) is int and 0 <= mesh_id < 1 << 64
    is_digest = type(digest) is bytes and len(digest) == DIGEST_BYTES
    if not is_number or not is_digest or type(ring) is not bytes or type(problem) is not str:
        raise DecodeError("a mesh, a digest, a ring and a text are expected, found something else")
    text = "".join(c if c.isprintable() else "?" for c in problem[:_TEXT_CHARS_MAX])
    return Told(MeshId(mesh_id), digest, decode_ring(ring) if ring else None, text)
