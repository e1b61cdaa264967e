"""What a question about tasks has at its disposal, and the words for when no majority answers."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from mesh.core.effects import Answer
from mesh.core.ids import NodeId
from mesh.placement.live_view import LiveView
from mesh.queues.settings import DEFAULT, QueueSettings, Strategy, queue_key
from mesh.registers.proposal import Change, majority
from mesh.registers.trust import Hold
from mesh.registers.voter import Voter
from mesh.tasks.body import Body, Head
from mesh.tasks.choosing import Picked
from mesh.tasks.entry import Loss
from mesh.tasks.form import of_value
from mesh.tasks.quorum import away, standstill
from mesh.tasks.show import Seen, task_json
from mesh.wire.records import Card
from mesh.wire.register_messages import Owner, Value
from mesh.wire.roster_messages import Roster

Step: TypeAlias = Answer | tuple[NodeId, object]
"""An answer to a command, or a message to a member, this node among them."""


class Registers(Protocol):
    """What is asked of the desk; each question ends as `Done` with its tag."""

    @property
    def voter(self) -> Voter:
        """This node's own records."""

    def seats(self, key: bytes) -> Roster:
        """Return the voters of a register."""

    def standing(self, now: float, key: bytes) -> Hold | None:
        """Return what may be done with a lease of this session's; None: it holds none."""

    def place(self, key: bytes) -> int | None:
        """Return this node's place among the voters of a register; None: it is none of them."""

    def create(
        self,
        now: float,
        key: bytes,
        value: Value,
        tag: Hashable,
        timeout_s: float,
        *,
        first: Value | None = None,
        is_new: bool = False,
    ) -> None:
        """Create a register, unless it exists."""

    def propose(
        self, now: float, key: bytes, change: Change, tag: Hashable, timeout_s: float
    ) -> None:
        """Change a register."""

    def read(self, now: float, key: bytes, tag: Hashable, timeout_s: float) -> None:
        """Ask a majority."""


def _no_words(_key: bytes) -> str:
    return ""


def _no_loss(_key: bytes) -> Loss | None:
    return None


def _not_frozen(_key: bytes) -> bool:
    return False


def _not_here(_key: bytes) -> float | None:
    return None


def _nobody(_head: Head) -> Picked | None:
    return None


def _no_queues(_now: float, _queue: str, _settings: QueueSettings | None) -> None:
    return None


def _no_settings() -> Iterable[QueueSettings]:
    return ()


def _unheard(_now: float, _queue: str) -> Strategy | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What every question has at its disposal."""

    registers: Registers
    card: Callable[[], Card]
    view: LiveView
    rng: random.Random
    unix_offset_s: float
    name_of: Callable[[NodeId], str]
    """Returns a member's name, be it gone; its id in digits where it never had one."""

    waits_for: Callable[[bytes], str] = field(default=_no_words)
    """Returns why a ready task of this voter is not running, in words."""

    loss: Callable[[bytes], Loss | None] = field(default=_no_loss)
    """Returns how the last owner of a task of this voter lost it; None: it may run it."""

    is_frozen: Callable[[bytes], bool] = field(default=_not_frozen)
    """Says whether a task's run is held frozen by this node."""

    since: Callable[[bytes], float | None] = field(default=_not_here)
    """Returns when (Unix) the process of a task was started that this node runs; None: it runs none."""

    name_home: Callable[[Head], Picked | None] = field(default=_nobody)
    """Returns whom the write that creates a task at this first voter may name its owner, and why; and counts a slot of it as taken."""

    learn_queue: Callable[[float, str, QueueSettings | None], None] = field(default=_no_queues)
    """Takes what a majority was found to hold of a queue; None: nothing is set for it."""

    known_strategy: Callable[[float, str], Strategy | None] = field(default=_unheard)
    """Returns a queue's strategy; None: nothing was heard of it yet, and it is being asked about."""

    known_queues: Callable[[], Iterable[QueueSettings]] = field(default=_no_settings)
    """Returns what is set for the queues that are in use here, as far as that was heard."""

    @property
    def own(self) -> Owner:
        """This session."""
        card = self.card()
        return Owner(card.node_id, card.boot)

    def unix(self, now: float) -> float:
        """Return `now` as time of day."""
        return now + self.unix_offset_s

    def json(self, key: bytes, value: Value, *, strategy: Strategy | None = None) -> dict[str, Any]:
        """Return the JSON of the task that a majority was seen to hold, with its home as it is now, if it is known to have one. O(members).

        `strategy`: its queue's; None: not known, and then no home is named.

        Raises:
            DecodeError: it holds none that this version can read.
        """
        body = of_value(value)
        record = self.registers.voter.record(key)
        token = record.ballot if record.value == value else None
        has_home = strategy is Strategy.RENDEZVOUS and not body.state.is_terminal
        candidates = self.view.candidates(body.head.wants) if has_home else []
        home = candidates[0].name if candidates else None
        word = None if strategy is None else str(strategy)
        return task_json(
            body,
            self.seen(key, body),
            self.name_of,
            home=home,
            strategy=word,
            token=token,
        )

    def strategy(self, now: float, queue: str) -> Strategy | None:
        """Return a queue's strategy as this node knows it; None: it does not yet.

        Who votes on the queue's own register knows whether it holds nothing.
        """
        is_own = self.registers.place(queue_key(queue)) is not None
        return self.known_strategy(now, queue) or (DEFAULT if is_own else None)

    def seen(self, key: bytes, body: Body) -> Seen:
        """Return what this voter's steward knows of a task: what it waits for, whether its run was lost; and of one that runs here since when, and whether it is frozen."""
        loss, running = self.loss(key), body.running
        if loss is None or running is None or (running.owner, running.number) != loss[:2]:
            lost = None  # nothing is lost, or an attempt that is not the latest
        else:
            lost = loss.cause, self.unix(loss.at)
        is_own = running is not None and running.owner == self.own
        return Seen(
            waits_for=self.waits_for(key),
            lost=lost,
            is_frozen=is_own and self.is_frozen(key),
            since=self.since(key) if is_own else None,
        )

    def no_majority(self, key: bytes, waited_s: float, what: str = "task") -> str:
        """Return the sentence for a question that no majority of the voters of a task, a queue or a hook answered in time."""
        voters = self.registers.seats(key).voters
        if not voters:
            return "this node knows no voters yet: it has not met the mesh; try again in a moment"
        gone = away(voters, self.view)
        names = ", ".join(self.name_of(voter) for voter in voters)
        text = (
            f"an answer from {majority(len(voters))} of the {what}'s {len(voters)} voters ({names}) is expected, "
            f"and did not come for {waited_s:g} s"
        )
        if why := standstill(voters, gone, self.name_of):
            return f"{why}; {text}: bring them back, or ask at a node that sees them"
        if gone:
            missed = ", ".join(self.name_of(voter) for voter in gone)
            return f"{text}: not seen alive from here: {missed}; bring them back, or ask at a node that sees them"
        return f"{text}, though all seem alive: try again; `mesh members` shows who is slow"
