"""The live view: the members that may get work now, and in which order a task asks them.

It holds who is alive and not suspect, this node included; whoever keeps the membership puts and drops them. Who
drains, is unfit or stands by is in it, says so in its card, and suits no task. It is a local view, and may be wrong for a moment: it says who should be *asked*.
"""

from __future__ import annotations

from dataclasses import dataclass

from mesh.core.address import Address
from mesh.core.ids import NodeId
from mesh.placement.rendezvous import rank
from mesh.wire.records import DEDICATED, Availability, Metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveMember:
    """A member that may get work, as far as this node knows."""

    node_id: NodeId
    boot: int
    name: str
    address: Address
    meta: Metadata
    free_slots: int
    busy_pct: int = 0  # hundredths of the processors that it may use, now


@dataclass(frozen=True, slots=True, kw_only=True)
class Wants:
    """What a task asks of a member. An empty part means any."""

    key: str
    queue: str = ""
    """Its kind: a dedicated member takes those of some queues alone. "": of no queue that a member is dedicated to."""

    pool: str = ""
    node_class: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    needs: tuple[tuple[str, int], ...] = ()


class LiveView:
    """The members that may get work. O(1) to put, drop and get."""

    def __init__(self) -> None:
        self.version = 0
        """Grows whenever a ranking may have changed: a member came, went or declares something else."""

        self._members: dict[NodeId, LiveMember] = {}

    def __len__(self) -> int:
        return len(self._members)

    def put(self, member: LiveMember) -> None:
        """Take a member in, or note what is new about it."""
        old = self._members.get(member.node_id)
        self._members[member.node_id] = member
        if old is None or (old.meta, old.name) != (member.meta, member.name):
            self.version += 1

    def drop(self, node_id: NodeId) -> None:
        """Take a member out; nothing happens if it is not in."""
        if self._members.pop(node_id, None) is not None:
            self.version += 1

    def get(self, node_id: NodeId) -> LiveMember | None:
        """Return the member, or None if it may get no work."""
        return self._members.get(node_id)

    def members(self) -> list[LiveMember]:
        """Return all members, by node id."""
        return [self._members[node_id] for node_id in sorted(self._members)]

    def candidates(self, wants: Wants) -> list[LiveMember]:
        """Return every member that fits `wants`, home first: by rendezvous rank of the key, weighted by slots.

        Members that are dedicated to its queue come before all others. O(n log n) in the members: about 0.04 ms for 10 of them, 0.25 ms for 100, 2.5 ms for 1,000.
        """
        fitting = [(m.node_id, m.meta.slots) for m in self._members.values() if fits(m, wants)]
        found = [self._members[node_id] for node_id in rank(wants.key, fitting)]
        return sorted(found, key=lambda one: not is_dedicated(one))


def fits(member: LiveMember, wants: Wants) -> bool:
    """Say whether a member could ever run such a task: pool, class, labels, declared amounts, a slot at all."""
    return suits(member.meta, wants)


def is_dedicated(member: LiveMember) -> bool:
    """Say whether a member takes the tasks of its queues alone."""
    return member.meta.node_class == DEDICATED


def suits(meta: Metadata, wants: Wants) -> bool:
    """Say so of what a member declares.

    Not one that is unfit or drains, nor one that stands by unless its class is asked for, nor one dedicated to other queues.
    """
    if not _is_available(meta, wants):
        return False
    if meta.slots < 1 or (wants.pool and wants.pool != meta.pool):
        return False
    if wants.node_class and wants.node_class != meta.node_class:
        return False
    if wants.labels:
        labels = dict(meta.labels)
        if any(labels.get(key) != value for key, value in wants.labels):
            return False
    if wants.needs:
        offers = dict(meta.offers)
        return all(offers.get(name, 0) >= amount for name, amount in wants.needs)
    return True


def _is_available(meta: Metadata, wants: Wants) -> bool:
    if meta.availability in {Availability.UNFIT, Availability.DRAINING}:
        return False
    if meta.availability is Availability.STANDBY and wants.node_class != meta.node_class:
        return False
    return meta.node_class != DEDICATED or wants.queue in meta.queues
