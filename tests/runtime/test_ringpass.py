"""Who may change whose ring: members of one mesh whose rings count there, and nobody else."""

from __future__ import annotations

import os

import msgpack
import pytest

from mesh.core.ids import NO_MESH, MeshId
from mesh.errors import DecodeError
from mesh.runtime.keystore import KeyStore
from mesh.runtime.ringpass import RingPass, read_told
from mesh.seal.key import Key
from mesh.wire.frames import FrameKind, split_exchange
from tests.runtime.keyed_peers import MESH, passing, store

PROD, TEST, NEXT = (Key(bytes([number]) * 32) for number in (1, 2, 3))


def meet(asker: RingPass, answerer: RingPass) -> str:
    """Let one end offer and take the answer; return what the answer complains of."""
    _, kind, data = split_exchange(asker.offer())
    assert kind is FrameKind.RING
    return asker.take(answerer.answer(data)).problem


def newcomer(*keys: Key) -> KeyStore:
    """A ring that a user gave, which counts nowhere yet."""
    found = store(*keys)
    found.mesh_id = NO_MESH
    return found


def test_two_members_take_over_what_either_knows_later() -> None:
    ours, theirs = store(PROD), store(PROD)
    ours.ring.add(NEXT)
    assert "a restart forgets the change" in meet(passing(ours), passing(theirs))
    theirs.ring.use(NEXT.key_id)
    meet(passing(ours), passing(theirs))
    assert ours.ring.digest == theirs.ring.digest
    assert ours.ring.primary == NEXT


@pytest.mark.parametrize("theirs_first", [True, False])
def test_host_that_holds_another_key_brings_it_into_no_mesh(theirs_first: bool) -> None:
    guest, member = newcomer(PROD, TEST), store(PROD)
    before = member.ring.digest
    ends = passing(guest, NO_MESH), passing(member)
    meet(*(ends if theirs_first else ends[::-1]))
    assert member.ring.digest == before
    meet(passing(guest), passing(member))  # it has entered
    assert list(guest.ring) == list(member.ring) == [PROD]
    assert guest.mesh_id == MESH


def test_members_of_two_meshes_that_share_a_key_pass_nothing() -> None:
    ours, theirs = store(PROD, TEST), store(PROD, NEXT)
    theirs.mesh_id = MeshId(8)
    before = ours.ring.digest, theirs.ring.digest
    assert "another mesh" in meet(passing(ours), passing(theirs, MeshId(8)))
    assert "another mesh" in meet(passing(theirs, MeshId(8)), passing(ours))
    assert (ours.ring.digest, theirs.ring.digest) == before


def test_late_host_with_keys_from_before_a_fresh_start_brings_none_of_them_back() -> None:
    """Its directory still names the mesh; the file that it was given replaced the keys of before."""
    late, member = newcomer(NEXT, PROD), store(NEXT)
    meet(passing(late), passing(member))
    assert list(member.ring) == list(late.ring) == [NEXT]


def test_ring_that_counts_nowhere_is_told_to_nobody() -> None:
    _, _, data = split_exchange(passing(newcomer(TEST), NO_MESH).offer())
    assert TEST.secret not in data
    told = read_told(passing(newcomer(TEST)).answer(data))
    assert told.ring is None


def test_node_whose_ring_counts_nowhere_teaches_no_other_newcomer() -> None:
    ours, theirs = newcomer(PROD), newcomer(PROD, TEST)
    meet(passing(ours), passing(theirs))
    assert list(ours.ring) == [PROD]
    assert ours.mesh_id == NO_MESH


def test_bytes_that_are_no_offer_are_refused_and_a_text_cannot_steer_a_terminal() -> None:
    keys = store(PROD)
    digest = keys.ring.digest
    for wrong in (
        b"",
        b"\x92\xc0\xa0",
        os.urandom(40),
        msgpack.packb([MESH, digest, b"no ring", ""]),
        msgpack.packb([-1, digest, b"", ""]),
        msgpack.packb([MESH, b"", b"", ""]),
        msgpack.packb([MESH, digest, b"", 7]),
    ):
        for take in (passing(keys).answer, passing(keys).take):
            with pytest.raises(DecodeError):
                take(wrong)
    told = read_told(msgpack.packb([MESH, digest, b"", "no room\x1b[2J\nforged"]))
    assert told.problem == "no room?[2J?forged"
    assert keys.ring.digest == digest
