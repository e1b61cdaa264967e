"""A ring that changes while a stream stays open reaches the other end with the next question."""

from __future__ import annotations

import trio

from mesh.core.effects import StartExchange
from mesh.runtime.sealed_door import SealedDoor
from mesh.runtime.streams import Asker
from mesh.seal.key import Key
from tests.runtime.keyed_peers import keyed, passing, store
from tests.runtime.peers import Replies

KEY, OTHER, THIRD = Key(b"k" * 32), Key(b"o" * 32), Key(b"t" * 32)


async def test_member_that_missed_a_change_hears_of_it_though_its_stream_stays_open() -> None:
    """As of one that was stopped for as long as `mesh key` waits, in a mesh of two that never pause."""
    ours, theirs, replies = store(KEY), store(KEY), Replies()
    async with keyed(theirs) as peer, trio.open_nursery() as nursery:

        def take(data: bytes) -> None:
            passing(ours).take(data)

        rings = (passing(ours).offer, take)
        asker = Asker(nursery, trio.current_time, replies.add, door=SealedDoor(ours), rings=rings)
        nursery.start_soon(asker.run)
        for number in range(6):
            if number == 2:
                ours.ring.add(OTHER)
            if number == 4:
                theirs.ring.add(THIRD)  # that is for the other end to tell, on a stream of its own
            asker.ask(StartExchange(number, peer.address, b"q", 8.0))
            assert await replies.of(number) == b"Q"
            if number == 2:
                assert theirs.ring.digest == ours.ring.digest
        assert asker.counters["sent_frames"] == 7  # six questions and one ring
        nursery.cancel_scope.cancel()
