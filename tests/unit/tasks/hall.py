"""Three voters in one room, and nodes that ask them: messages arrive at once, unless a voter is cut off.

Voters and askers are the real ones; only the network, the disk and the desk are missing.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Hashable, Iterable

from mesh.core.address import Address
from mesh.core.effects import Answer, Persist
from mesh.core.ids import NodeId, format_id
from mesh.placement.live_view import LiveMember, LiveView
from mesh.registers import leases
from mesh.registers.asker import Asked, Asker, Done
from mesh.registers.numbers import Numbers
from mesh.registers.proposal import Change
from mesh.registers.trust import Hold
from mesh.registers.voter import Store, Voter
from mesh.tasks.asking import Asking
from mesh.tasks.body import Body, task_key
from mesh.tasks.commands import Question
from mesh.tasks.entry import in_order_of_making
from mesh.tasks.form import of_value
from mesh.tasks.means import Means, Step
from mesh.tasks.noticing import Noticing
from mesh.wire.records import Card, Metadata
from mesh.wire.register_messages import Accept, Owner, Prepare, Read, Renew, Value
from mesh.wire.register_messages import Answer as AskAnswer
from mesh.wire.roster_messages import Roster
from mesh.wire.task_messages import CancelAnswer, Notice, Watch
from tests.unit.tasks.made import NOON

ADDRESS = Address("127.0.0.1", 7946)
NAMES = {1: "anna", 2: "bert", 3: "carl", 4: "dora"}
VOTERS = (NodeId(1), NodeId(2), NodeId(3))


class Hall:
    """The voters, and the one clock of all."""

    def __init__(self) -> None:
        self.now = 100.0
        self.cut: set[NodeId] = set()
        self.no_accepts: set[NodeId] = set()
        self.noticing = {voter: Noticing() for voter in VOTERS}
        self.notices: deque[tuple[NodeId, NodeId, Notice]] = deque()  # to, from, what
        self.is_noticing = True
        self.voters = {
            voter: Voter(voter, leases.local(), epoch=1, now=self.now) for voter in VOTERS
        }

    def ask(self, voter: NodeId, request: Prepare | Accept | Renew | Read) -> list[AskAnswer]:
        """Return a voter's answers; none if it is cut off, or does not hear such a request."""
        if voter in self.cut or (isinstance(request, Accept) and voter in self.no_accepts):
            return []
        answers: list[AskAnswer] = []
        for step in self.voters[voter].handle(self.now, request):
            if isinstance(step, Store):
                for to, notice in self.noticing[voter].changed(step.key, step.record):
                    self.notices.append((to, voter, notice))
            elif isinstance(step, AskAnswer):
                answers.append(step)
        return answers

    def held(self, task_id: str) -> Body | None:
        """Return the latest that any voter holds of a task."""
        key = task_key(task_id)
        records = [voter.record(key) for voter in self.voters.values()]
        latest = max(records, key=lambda one: (one.ballot, one.seq))
        return None if latest.value is None else of_value(latest.value)


class Clerk:
    """One node's questions to the hall: what a desk is for others."""

    def __init__(self, hall: Hall, owner: Owner, set_aside: int = 0) -> None:
        self._hall = hall
        self._voters: tuple[NodeId, ...] = VOTERS
        self.done: deque[Done] = deque()
        self.holds: dict[bytes, Hold] = {}
        self.asker = Asker(
            boot=owner.boot,
            own_id=owner.node_id,
            domain=0,
            numbers=Numbers(set_aside),
            seats=self.seats,
            rng=random.Random(owner.node_id),
        )
        self._voter = (
            hall.voters[owner.node_id]
            if owner.node_id in hall.voters
            else Voter(owner.node_id, leases.local(), epoch=0, now=hall.now)
        )

    @property
    def voter(self) -> Voter:
        return self._voter

    def seats(self, key: bytes) -> Roster:
        return Roster(1, self._voters)

    def standing(self, now: float, key: bytes) -> Hold | None:
        return self.holds.get(key)

    def place(self, key: bytes) -> int | None:
        del key
        return None  # it creates as any member does

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
        del first
        self._carry(self.asker.create(now, key, value, tag, timeout_s, is_new=is_new))

    def propose(
        self, now: float, key: bytes, change: Change, tag: Hashable, timeout_s: float
    ) -> None:
        self._carry(self.asker.propose(now, key, change, tag, timeout_s))

    def claim(
        self, now: float, key: bytes, change: Change, tag: Hashable, timeout_s: float
    ) -> None:
        """Propose as an owner does, in whose way its own lease is not."""
        self._carry(self.asker.propose(now, key, change, tag, timeout_s))

    def read(self, now: float, key: bytes, tag: Hashable, timeout_s: float) -> None:
        self._carry(self.asker.read(now, key, tag, timeout_s))

    def handle_timeout(self) -> None:
        self._carry(self.asker.handle_timeout(self._hall.now))

    def _carry(self, asked: Iterable[Asked]) -> None:
        todo = deque(asked)
        while todo:
            item = todo.popleft()
            if isinstance(item, Done):
                self.done.append(item)
            elif not isinstance(item, Persist):
                voter, request = item
                for answer in self._hall.ask(voter, request):
                    todo.extend(self.asker.handle(self._hall.now, voter, answer))


class Desk:
    """One node's clients: commands in, answers out, and what it says to members."""

    def __init__(self, hall: Hall, owner: Owner) -> None:
        self.hall = hall
        self.owner = owner
        self.clerk = Clerk(hall, owner)
        self.view = LiveView()
        for number in NAMES:
            self.view.put(member(NodeId(number)))
        card = card_of(owner.node_id, owner.boot)
        self.asking = Asking(
            Means(
                registers=self.clerk,
                card=lambda: card,
                view=self.view,
                rng=random.Random(5),
                unix_offset_s=NOON - hall.now,
                name_of=lambda node_id: NAMES.get(node_id, format_id(node_id)),
            ),
            in_order_of_making(self.clerk.voter),
        )
        self.answers: dict[int, Answer] = {}
        self.sent: list[tuple[NodeId, object]] = []

    def give(self, command: Question) -> Answer | None:
        """Give a command, a moment after the last one; return its answer if it came at once."""
        self.hall.now += 0.001
        self._take(self.asking.handle_command(self.hall.now, command))
        return self.answers.get(command.command_id)

    def hear(self, sender: NodeId, message: CancelAnswer | Notice) -> None:
        """Take a member's message."""
        self._take(self.asking.handle_message(self.hall.now, sender, message))

    def wait(self, seconds: float) -> None:
        """Let the time pass, and do what is due meanwhile."""
        end = self.hall.now + seconds
        while True:
            dues = (self.clerk.asker.next_deadline(), self.asking.next_timeout())
            due = min((due for due in dues if due is not None), default=end)
            if due >= end:
                break
            self.hall.now = max(self.hall.now, due)
            self.clerk.handle_timeout()
            self._take(self.asking.handle_timeout(self.hall.now))
        self.hall.now = end
        self.clerk.handle_timeout()
        self._take(self.asking.handle_timeout(self.hall.now))

    def settle(self) -> None:
        """Take what has come in meanwhile."""
        self._take([])

    def _take(self, steps: list[Step]) -> None:
        todo = deque(steps)
        while True:
            while todo:
                step = todo.popleft()
                if isinstance(step, Answer):
                    assert step.command_id not in self.answers, "a command is answered once"
                    self.answers[step.command_id] = step
                else:
                    self.sent.append(step)
                    self._watch(*step)
            notices = self.hall.notices
            mine = [one for one in notices if one[0] == self.owner.node_id]
            if self.clerk.done:
                todo.extend(self.asking.handle_done(self.hall.now, self.clerk.done.popleft()))
            elif mine:
                notices.remove(mine[0])
                _, voter, notice = mine[0]
                if self.hall.is_noticing:
                    todo.extend(self.asking.handle_message(self.hall.now, voter, notice))
            else:
                break
        self.asking.check_invariants()

    def _watch(self, to: NodeId, message: object) -> None:
        if isinstance(message, Watch) and to not in self.hall.cut:
            voter = self.hall.voters[to]
            record = voter.record(task_key(message.task_id))
            noticing = self.hall.noticing[to]
            found = noticing.watch(self.hall.now, self.owner.node_id, message, record)
            self.hall.notices.extend((back, to, notice) for back, notice in found)
            noticing.check_invariants()


def card_of(node_id: NodeId, boot: int) -> Card:
    return Card(
        node_id=node_id,
        boot=boot,
        incarnation=0,
        name=NAMES.get(node_id, format_id(node_id)),
        address=ADDRESS,
        meta=Metadata(pool="image", offers=(("gpu", 2),)),
    )


def member(node_id: NodeId) -> LiveMember:
    card = card_of(node_id, 1)
    return LiveMember(
        node_id=node_id, boot=1, name=card.name, address=ADDRESS, meta=card.meta, free_slots=1
    )
