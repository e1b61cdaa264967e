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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from mesh.core.ballot import Ballot
from mesh.core.ids import NodeId
from mesh.errors import LocalProtocolError
from mesh.registers.asker import Done
from mesh.registers.leaseholder import Held
from mesh.registers.record import NOTHING, Record
from mesh.registers.voter import Forget, StoreEpoch
from mesh.wire.register_messages import Answer, Request
from mesh.wire.repair_messages import RepairMessage
from mesh.wire.roster_messages import AskRoster, Roster, SealAnswer, SealRequest

Message: TypeAlias = (
    Request | Answer | SealRequest | SealAnswer | Roster | AskRoster | RepairMessage
)

PURGED: Final = "purged_numbers"
"""The name of the stored number up to which nothing begins any more at this voter (`Voter.purged_n`)."""


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

    forget: tuple[bytes, ...] = ()
    """Registers that are kept no more; none of them is among the records."""


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
    """The record that this node, a voter, keeps of a register has changed, and is durable here; NOTHING: it was purged."""

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
        self._forget: dict[bytes, None] = {}
        self._closed: list[Commit] = []
        """Commits that come before that one: what is forgotten in one can be stored anew in the next."""

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
        if key in self._forget:
            self._close()
        self._records.append((key, record))

    def store_epoch(self, step: StoreEpoch) -> None:
        """Make records and an epoch durable, in one commit."""
        if not self._forget.keys().isdisjoint(key for key, _ in step.records):
            self._close()
        self._forget_keys(step.forget)
        self._records += step.records
        self._epoch = (step.epoch, step.sealed)

    def forget(self, step: Forget) -> None:
        """Make it durable that registers are gone."""
        self._forget_keys(step.keys)
        self._numbers[PURGED] = step.n

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
            commit = self._under_way.popleft()
            changed.update(commit.records)
            changed.update(dict.fromkeys(commit.forget, NOTHING))
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
        if self._has_more:
            self._close()
        taken: list[Output] = [*self._closed]
        self._handed_out += len(self._closed)
        self._under_way += self._closed
        self._closed = []
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
        return self._handed_out + len(self._closed) + self._has_more

    @property
    def _has_more(self) -> bool:
        return bool(self._records or self._numbers or self._epoch or self._forget)

    def _close(self) -> None:
        """Have all that is to be stored by now in one commit, and what comes after it in another."""
        commit = Commit(
            self._due,
            tuple(self._records),
            dict(self._numbers),
            self._epoch,
            tuple(self._forget),
        )
        self._records, self._numbers, self._epoch, self._forget = [], {}, None, {}
        self._closed.append(commit)

    def _forget_keys(self, keys: Iterable[bytes]) -> None:
        gone = dict.fromkeys(keys)
        if gone and self._records:
            self._records = [one for one in self._records if one[0] not in gone]
        self._forget.update(gone)

    def _leave(self, to: NodeId, message: Message) -> None:
        if to == self._own_id:
            self._own.append(message)
        else:
            self._posts.setdefault(to, []).append(message)
