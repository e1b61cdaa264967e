"""A node's tasks and registers, as the node has to do with them: what happens, who votes, what goes where.

    kept ──► voter, numbers ──► desk ──► tasks ──┬─ Send ──────► datagrams, or a parcel, to where the member is
    members ──► succession ──────┘               ├─ Commit ────► bytes for the store; its end comes back
    founded ────────────┘                        └─ the rest ──► the driver

Built anew for each session. What earlier sessions have committed is all that it begins with: so a disk that is
older than what the mesh remembers of this node may vote and own nothing (`mute`): what it has promised, and
which numbers it has used since, nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mesh.core.effects import Answer, Commit, Emit, ReadOutput, StopProcess, TaskChanged
from mesh.core.events import Event, EventKind
from mesh.core.ids import NodeId
from mesh.core.process import ProcessEvent
from mesh.core.requests import Ask, Outgoing, Tell
from mesh.node.delivery import Parcel, pack
from mesh.node.holdings import INSTALLED, MUTED, SEALED, Holdings
from mesh.queues.commands import SetQueue
from mesh.registers import outbox
from mesh.registers.admission import Member
from mesh.registers.handover import SetAside
from mesh.registers.proposal import majority
from mesh.registers.stored import to_stored
from mesh.tasks.commands import (
    Abandon,
    RetryTask,
    Submit,
    SubmitMany,
    TaskCommand,
    Unfollow,
)
from mesh.tasks.effects import Outgoing as Step
from mesh.tasks.effects import Send
from mesh.tasks.quorum import away
from mesh.tasks.tasks import Tasks
from mesh.wire import register_messages, repair_messages, roster_messages
from mesh.wire.register_messages import LEASES_MAX

_MUTING: Final = 1 << 62
"""The number of the commit that says so: nothing is committed after it."""

NOTES_A_STAND: Final = 10
"""So often members are looked at while one stands that is to vote."""

PARCEL_TIMEOUT_S: Final = 5.0

_MUTED: Final = (
    "this node's data directory is older than what the mesh remembers of it: what it has promised since is lost, "
    "so it votes, claims and runs nothing; start it with an empty data directory, as a new member"
)

_HARMLESS: Final = (Answer, Emit, ReadOutput, StopProcess, TaskChanged)
"""What a node still does whose disk cannot be relied on."""

_TAKES_ROOM: Final = (register_messages.Prepare, register_messages.Accept, repair_messages.Ship)
"""What would have to be stored, and is asked again."""

_TAKES_IN: Final = (Submit, SubmitMany, RetryTask, SetQueue)
"""What a client asks to be kept."""


class Work(Holdings):
    """The tasks of one session. Every method that takes `now` returns what is to be done, in order."""

    MESSAGES: Final = (
        Tasks.MESSAGES
        | {kind for kind, _ in register_messages.SCHEMAS.values()}
        | {kind for kind, _ in roster_messages.SCHEMAS.values()}
        | {kind for kind, _ in repair_messages.SCHEMAS.values()}
    )

    def start(self, now: float) -> list[Outgoing]:
        """Begin, before any other call that takes `now`."""
        config = self._config
        self._build(now)
        self._desk.carry_out(now, [SetAside()])
        if config.is_founder and not any(map(self._numbers.get, (INSTALLED, SEALED))):
            # Whoever founded a mesh and ended before its first roster was kept: nothing was ever voted on.
            self._desk.carry_out(now, self._succession.found(now))
        # Whatever an earlier session left was cleared away before this one began, or its leases were waited for.
        steps = self._tasks.end(now, config.node_id, config.boot - 1)
        outputs = self._deliver(now, steps + self._tasks.handle_message(now, config.node_id))
        if config.meta.slots > LEASES_MAX:
            outputs.append(_too_many_slots(config.meta.slots))
        return [*outputs, _warning()] if self._is_muted else outputs

    def found(self, now: float) -> list[Outgoing]:
        """Take that this node has founded the mesh just now: it is its first voter."""
        if not self._is_muted and self._succession.roster is None:
            self._desk.carry_out(now, self._succession.found(now))
        return self._deliver(now, [])

    def mute(self, now: float) -> list[Outgoing]:
        """Stop all that was begun, and vote, claim and run nothing more: see `_MUTED`."""
        if self._is_muted:
            return []
        outputs = self._deliver(now, self._tasks.drain(now, now))
        self._is_muted = True
        harmless = (one for one in outputs if isinstance(one, _HARMLESS))
        return [*harmless, Commit(_MUTING, numbers={MUTED: 1}), _warning()]

    def set_room(self, *, has_room: bool, lacks: str) -> None:
        """Take whether the store takes on more, and what it lacks, in words."""
        self._lacks = None if has_room else lacks
        self._desk.has_room = has_room

    # What happens.

    def handle_messages(
        self, now: float, sender: NodeId, messages: Iterable[object]
    ) -> list[Outgoing]:
        """Take messages of `MESSAGES` that came together from a member; none: look at what else has changed."""
        if self._lacks is not None:
            messages, asked = [], messages
            for message in asked:
                if isinstance(message, _TAKES_ROOM):
                    self._count("dropped_no_room", 1)  # whoever asked asks again
                else:
                    messages.append(message)
        return self._deliver(now, self._tasks.handle_message(now, sender, *messages))

    def handle_command(self, now: float, command: TaskCommand) -> list[Outgoing]:
        """Take a client's command."""
        if self._is_muted and not isinstance(command, Abandon | Unfollow):
            return [Answer(command.command_id, None, _MUTED)]
        if self._lacks is not None and isinstance(command, _TAKES_IN) and self._is_needed():
            text = (
                f"nothing new can be stored: {self._lacks or 'the disk has no room'}; this node's vote is needed, so "
                "nothing is taken in until there is room again"
            )
            return [Answer(command.command_id, None, text)]
        return self._deliver(now, self._tasks.handle_command(now, command))

    def handle_process(self, now: float, event: ProcessEvent) -> list[Outgoing]:
        """Take what a process that was started here wrote, or that it ended."""
        return self._deliver(now, self._tasks.handle_process(now, event))

    def handle_committed(self, now: float, number: int) -> list[Outgoing]:
        """Take that a `Commit` and all before it are durable."""
        return [] if number == _MUTING else self._deliver(now, self._tasks.committed(now, number))

    def handle_member(self, now: float, node_id: NodeId) -> list[Outgoing]:
        """Note that a member came, went, or says more of its slots; the view knows already."""
        if self._note_at is None:
            pause_s = self._config.pace.stand_s / NOTES_A_STAND if self._has_noted else 0.0
            self._note_at = now + pause_s
        steps = self._tasks.handle_member(now, node_id)
        return self._deliver(now, steps) if self._tasks.heeds_members else []

    def end(self, now: float, node_id: NodeId, boot: int) -> list[Outgoing]:
        """Take the proof that a session of another node runs nothing any more."""
        steps = self._tasks.end(now, node_id, boot)
        return self._deliver(now, steps) if self._tasks.heeds_members else []

    def drain(self, now: float, until: float) -> list[Outgoing]:
        """Take no more work; what runs may go on until then, is stopped after that, and released for others to run.

        All was said once `used` is 0 and nothing is under way.
        """
        return self._deliver(now, self._tasks.drain(now, until))

    def handle_timeout(self, now: float) -> list[Outgoing]:
        """Do what is due; early, twice or late is harmless."""
        due = self.next_timeout()
        if due is None or now < due:
            return []
        if self._note_at is not None and now >= self._note_at:
            self._note_at, self._has_noted = None, True
            members = [Member(one.node_id, one.boot, True) for one in self._view.members()]
            self._desk.carry_out(now, self._succession.note_members(now, members))
        return self._deliver(now, self._tasks.handle_timeout(now))

    # Inside.

    def _is_needed(self) -> bool:
        """Say whether no majority votes without this node."""
        others = [one for one in self.voters if one != self._config.node_id]
        here = len(others) - len(away(others, self._view))
        return len(others) < len(self.voters) and here < majority(len(self.voters))

    def _deliver(self, now: float, steps: list[Step]) -> list[Outgoing]:
        """Let the tasks hear of a later roster, and turn all that leaves into what the node sends and does."""
        self._now, self._is_due_known = max(self._now, now), False
        self.is_listened_to = self._tasks.is_listened_to
        while self._desk.roster is not self._roster:
            self._roster = self._desk.roster
            assert self._roster is not None
            steps = steps + self._tasks.adopt(now, self._roster)
        outputs: list[Outgoing] = []
        sends: dict[NodeId, list[object]] = {}
        for step in steps:
            if isinstance(step, Send):
                sends.setdefault(step.to, []).extend(step.messages)
            elif isinstance(step, outbox.Commit):
                outputs.append(self._commit(step))
            else:
                outputs.append(step)
        if self._is_muted:
            return [one for one in outputs if isinstance(one, _HARMLESS)]
        for to, messages in sends.items():
            outputs += self._send(to, messages)
        return outputs

    def _send(self, to: NodeId, messages: list[object]) -> list[Outgoing]:
        address = self._address_of(to)
        if address is None:
            self._count("unaddressed", len(messages))
            return []
        return [
            Ask(address, one, None, PARCEL_TIMEOUT_S)
            if isinstance(one, Parcel)
            else Tell(address, one)
            for one in pack(messages)
        ]

    def _commit(self, commit: outbox.Commit) -> Commit:
        numbers: dict[str, int] = dict(commit.numbers)
        if commit.epoch is not None:
            epoch, sealed = commit.epoch
            # The store's numbers never go down; a node that votes in no epoch has sealed the one it voted in.
            numbers |= {INSTALLED: epoch, SEALED: sealed} if epoch else {SEALED: sealed}
        kept = dict(commit.records)  # the last of each
        records = tuple(to_stored(key, record) for key, record in kept.items())
        return Commit(commit.number, records, numbers, commit.forget)

    def _count(self, what: str, by: int) -> None:
        self.counters[what] = self.counters.get(what, 0) + by


def _too_many_slots(slots: int) -> Emit:
    text = (
        f"{LEASES_MAX} slots at most are used at a node, as so many leases fit into one renewal, found {slots}: what is "
        "offered beyond that is declined as if all were taken; start more nodes on this host to run more"
    )
    return Emit(Event(kind=EventKind.WARN, detail=text))


def _warning() -> Emit:
    return Emit(Event(kind=EventKind.WARN, detail=_MUTED))
