"""Three desks side by side, whose commits and messages go on when a test says so."""

import random
from collections.abc import Hashable
from dataclasses import dataclass, field

from mesh.core.ids import NodeId
from mesh.registers.asker import Done, Outcome
from mesh.registers.desk import Desk
from mesh.registers.handover import Succession
from mesh.registers.numbers import Numbers
from mesh.registers.outbox import Changed, Commit, Event, Output, Post
from mesh.registers.proposal import Change, Chosen
from mesh.registers.voter import Voter
from mesh.wire.register_messages import Owner, Standing, Value
from mesh.wire.roster_messages import Roster
from tests.unit.registers.asked import EPOCH, TIMES, VOTERS

ROSTER = Roster(EPOCH, VOTERS)


def desk(
    own: NodeId,
    roster: Roster | None = ROSTER,
    *,
    votes_in: int = EPOCH,
    succession: Succession | None = None,
) -> Desk:
    made = Desk(
        own_id=own,
        boot=1,
        domain=1,
        times=TIMES,
        numbers=Numbers(0),
        rng=random.Random(int(own)),
        voter=Voter(own, TIMES, epoch=votes_in, now=0.0),
        roster=roster,
    )
    made.succession = succession
    return made


def claiming(owner: NodeId) -> Change:
    def change(found: Value | None) -> Value | None:
        return None if found is None else Value(Standing.LEASED, found.body, Owner(owner, 1))

    return change


def posts(outputs: list[Output]) -> dict[NodeId, tuple[object, ...]]:
    return {one.to: one.messages for one in outputs if isinstance(one, Post)}


@dataclass
class Desks:
    """The desks of some nodes. `settle` lets everything go on; who is `away` hears nothing, and nobody hears it."""

    by_node: dict[NodeId, Desk]
    away: set[NodeId] = field(default_factory=set)
    now: float = 0.0

    def settle(self) -> dict[NodeId, list[Event]]:
        """Commit and deliver until nothing is left; return what each desk said, but for records that changed."""
        said: dict[NodeId, list[Event]] = {node: [] for node in self.by_node}
        goes_on = True
        while goes_on:
            goes_on = False
            for node, one in self.by_node.items():
                outputs = one.take()
                goes_on = goes_on or bool(outputs)
                for output in outputs:
                    if isinstance(output, Commit):
                        one.committed(self.now, output.number)
                    elif isinstance(output, Post):
                        self._deliver(node, output)
                    elif not isinstance(output, Changed):
                        said[node].append(output)
                one.check_invariants()
        return said

    def wait(self, seconds: float) -> dict[NodeId, list[Event]]:
        """Let time pass, waking each desk whenever it wants to be; return what each said."""
        said: dict[NodeId, list[Event]] = {node: [] for node in self.by_node}
        until = self.now + seconds
        while True:
            due = [at for one in self.by_node.values() if (at := one.next_deadline()) is not None]
            self.now = max(self.now, min(until, *due)) if due else until
            for one in self.by_node.values():
                one.handle_timeout(self.now)
            for node, events in self.settle().items():
                said[node] += events
            if self.now >= until:
                return said

    def outcome(self, node: NodeId, tag: Hashable, seconds: float = 0.0) -> Outcome:
        """Return how a question ended, within some time."""
        events = self.settle()[node]
        if seconds:
            events += self.wait(seconds)[node]
        (outcome,) = [one.outcome for one in events if isinstance(one, Done) and one.tag == tag]
        return outcome

    def claim(self, node: NodeId, key: bytes, value: Value) -> Chosen:
        """Have a node create a register and claim it; return its grant."""
        one = self.by_node[node]
        one.create(self.now, key, value, "create", 5)
        assert isinstance(self.outcome(node, "create"), Chosen)
        one.propose(self.now, key, claiming(node), "claim", 5)
        granted = self.outcome(node, "claim")
        assert isinstance(granted, Chosen)
        return granted

    def _deliver(self, sender: NodeId, post: Post) -> None:
        if post.to in self.by_node and not {sender, post.to} & self.away:
            for message in post.messages:
                self.by_node[post.to].handle(self.now, sender, message)


def three_desks() -> Desks:
    return Desks({node: desk(node) for node in VOTERS})
