"""Three desks whose voters compare and purge, for tests that let time pass."""

import random
from collections.abc import Callable
from typing import Any

from mesh.core.ids import NodeId
from mesh.registers.desk import Desk
from mesh.registers.keeping import Keeping
from mesh.registers.numbers import Numbers
from mesh.registers.outbox import Post
from mesh.registers.record import Record
from mesh.registers.upkeep import UpkeepTimes
from mesh.registers.voter import Voter
from mesh.wire.register_messages import Accept, Standing, Value
from tests.unit.registers.asked import EPOCH, TIMES, VOTERS, ballot
from tests.unit.registers.desks import ROSTER, Desks

UPKEEP = UpkeepTimes(compare_s=2, settle_s=1, message_life_s=30)
FIRST_KEY = b"task/1"
Expires = Callable[[bytes, Record], float | None]


def for_good(_key: bytes, _record: Record) -> None:
    """Keep everything."""


def keeper(
    node: NodeId,
    records: list[tuple[bytes, Record]],
    *,
    times: UpkeepTimes = UPKEEP,
    expires: Expires = for_good,
    now: float = 0.0,
) -> Desk:
    """Return a desk that begins with these records."""
    voter = Voter(node, TIMES, epoch=EPOCH, now=now, records=records)
    made = Desk(
        own_id=node,
        boot=1,
        domain=1,
        times=TIMES,
        numbers=Numbers(0),
        rng=random.Random(int(node)),
        voter=voter,
        roster=ROSTER,
    )
    made.keeping = Keeping(
        node,
        voter=voter,
        roster=ROSTER,
        times=times,
        expires=expires,
        rng=random.Random(int(node)),
        now=now,
    )
    return made


class Keepers(Desks):
    """Three voters that begin with nothing."""

    def __init__(self, **how: Any) -> None:  # noqa: ANN401 - handed on to `keeper`
        super().__init__({node: keeper(node, [], **how) for node in VOTERS})
        self.passes: Callable[[Post], bool] = lambda _: True
        """Sees what is sent, and says whether it arrives."""

    def put(
        self, key: bytes, value: Value, *at: NodeId, n: int = 1, seq: int = 0, asker: int = 21
    ) -> None:
        """Have some voters accept a value, as if the others were away."""
        for node in at or VOTERS:
            token = ballot(n, NodeId(asker))
            self.by_node[node].handle(
                self.now, token.node_id, Accept(key, EPOCH, token, seq, value)
            )
        self.settle()

    def _deliver(self, sender: NodeId, post: Post) -> None:
        if self.passes(post):
            super()._deliver(sender, post)

    def held(self, key: bytes) -> list[Value | None]:
        return [one.voter.record(key).value for one in self.by_node.values()]

    def check(self) -> None:
        for one in self.by_node.values():
            assert one.keeping is not None
            one.keeping.check_sums()


def final(text: bytes) -> Value:
    return Value(Standing.FINAL, text)
