"""What the registers of one node store, send and say, in one order: what rests on a commit leaves after it.

    to be stored ──► one Commit at each take ──► the store ──► committed ─┐
    what rests on it ──► waits for every Commit that was due before it ───┴──► leaves, in order
    what rests on nothing stored ─────────────────────────────────────────────► leaves at once

An answer waits though it stores nothing itself: it may tell of a record that a crash would still undo. So it
waits for all that is to be stored before it, whatever that is about: one queue, not one for each register.

Messages to this node itself leave in the same order, and are handled at once.

Source: etcd's raft hands out what to store and what to send after it in one value.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.errors import LocalProtocolError
from mesh.registers.asker import Done
from mesh.registers.leaseholder import Held
from mesh.registers.record import Record
from mesh.registers.voter import StoreEpoch
from mesh.wire.register_messages import Answer, Request
from mesh.wire.roster_messages import AskRoster, Roster, SealAnswer, SealRequest

Message: TypeAlias = Request | Answer | SealRequest | SealAnswer | Roster | AskRoster


@dataclass(frozen=True, slots=True)
class Commit:
    """Make all of this durable at once, after every Commit before it; then tell `Desk.committed` of `number`."""

    number: int
    """1, 2, 3, … in a session."""

    records: tuple[tuple[bytes, Record], ...]
    """In order; where a key comes twice, the last counts."""

    numbers: Mapping[str, int]
    """Named numbers of which none ever goes down."""

    epoch: tuple[int, int] | None
    """The epoch that this node votes in from now on (0: in none), and the last that it has sealed; None: as they were."""


@dataclass(frozen=True, slots=True)
class Post:
    """Send these messages to a node, in this order; they may be lost."""

    to: NodeId
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Written:
    """A majority has the write `seq` of an owner, and with it all before."""

    key: bytes
    token: Ballot
    seq: int


@dataclass(frozen=True, slots=True)
class Fenced:
    """An owner writes no more: a majority may have promised a higher ballot."""

    key: bytes
    token: Ballot
    by: Ballot


@dataclass(frozen=True, slots=True)
class Changed:
    """The record that this node, a voter, keeps of a register has changed, and is durable here."""

    key: bytes
    record: Record


Event: TypeAlias = Done | Held | Written | Fenced | Changed
Output: TypeAlias = Commit | Post | Event


class Outbox:
    """Keeps the order. `deliver` handles a message of this node to itself."""

    def __init__(self, own_id: NodeId, deliver: Callable[[float, Message], None]) -> None:
        self._own_id = own_id
        self._deliver = deliver
        # What the next Commit will hold.
        self._records: list[tuple[bytes, Record]] = []
        self._numbers: dict[str, int] = {}
        self._epoch: tuple[int, int] | None = None

        self._handed_out = 0
        self._committed = 0
        self._numbers_in = 0  # the latest Commit that sets numbers aside
        self._under_way: deque[Commit] = deque()
        self._waiting: deque[tuple[int, NodeId, Message]] = deque()
        """What leaves when a Commit is durable; by their numbers, which never fall."""

        self._own: deque[Message] = deque()
        self._posts: dict[NodeId, list[Message]] = {}
        self._events: list[Event] = []

    @property
    def is_setting_aside(self) -> bool:
        """Say whether numbers are set aside, and not yet durably."""
        return self._numbers_in > self._committed

    @property
    def is_storing(self) -> bool:
        """Say whether anything is to be stored, and not yet durably."""
        return self._due > self._committed

    def store(self, key: bytes, record: Record) -> None:
        """Make a record durable."""
        self._records.append((key, record))

    def store_epoch(self, step: StoreEpoch) -> None:
        """Make records and an epoch durable, in one commit."""
        self._records += step.records
        self._epoch = (step.epoch, step.sealed)

    def set_aside(self, numbers: Mapping[str, int]) -> None:
        """Make named numbers durable."""
        self._numbers.update(numbers)
        self._numbers_in = self._due

    def send(self, to: NodeId, message: Message, *, waits: bool) -> None:
        """Send a message; `waits`: after everything that was to be stored before."""
        if waits and self.is_storing:
            self._waiting.append((self._due, to, message))
        else:
            self._leave(to, message)

    def say(self, event: Event) -> None:
        """Report an event, after those before it."""
        self._events.append(event)

    def committed(self, number: int) -> None:
        """Let out what waited for a Commit, and for those before it.

        Raises:
            LocalProtocolError: no such Commit was handed out; nothing changed.
        """
        if number > self._handed_out:
            raise LocalProtocolError(
                f"a Commit of at most {self._handed_out} is expected, found {number}"
            )
        self._committed = max(self._committed, number)
        changed: dict[bytes, Record] = {}
        while self._under_way and self._under_way[0].number <= self._committed:
            changed.update(self._under_way.popleft().records)
        self._events += [Changed(key, record) for key, record in changed.items()]
        while self._waiting and self._waiting[0][0] <= self._committed:
            _, to, message = self._waiting.popleft()
            self._leave(to, message)

    def flush(self, now: float) -> None:
        """Deliver what has left for this node itself, and what comes of it, until there is no more."""
        while self._own:
            self._deliver(now, self._own.popleft())

    def take(self) -> list[Output]:
        """Return everything since the last take: what to store, then what to send, then what happened."""
        taken: list[Output] = []
        if self._due > self._handed_out:
            self._handed_out += 1
            commit = Commit(
                self._handed_out, tuple(self._records), dict(self._numbers), self._epoch
            )
            self._under_way.append(commit)
            self._records, self._numbers, self._epoch = [], {}, None
            taken.append(commit)
        taken += [Post(to, tuple(messages)) for to, messages in self._posts.items()]
        taken += self._events
        self._posts, self._events = {}, []
        return taken

    def check_invariants(self) -> None:
        """Raise AssertionError if something waits for what is durable, or is out of order, or was not delivered."""
        numbers = [number for number, _, _ in self._waiting]
        assert numbers == sorted(numbers), numbers
        assert all(self._committed < number <= self._due for number in numbers), numbers
        assert self._committed <= self._handed_out, (self._committed, self._handed_out)
        assert not self._own, self._own

    # Inside.

    @property
    def _due(self) -> int:
        """The number of the Commit that holds the last of what is to be stored by now."""
        is_more = bool(self._records or self._numbers or self._epoch)
        return self._handed_out + is_more

    def _leave(self, to: NodeId, message: Message) -> None:
        if to == self._own_id:
            self._own.append(message)
        else:
            self._posts.setdefault(to, []).append(message)
