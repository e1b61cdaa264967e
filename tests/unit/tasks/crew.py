"""Some nodes with their tasks and desks side by side: messages and commits go on at once, unless a test says otherwise."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from mesh.core.address import Address
from mesh.core.effects import Answer, StartProcess
from mesh.core.ids import NodeId
from mesh.core.process import ProcessExit, ProcessOutput
from mesh.placement.live_view import LiveMember, LiveView
from mesh.registers import leases
from mesh.registers.desk import Desk
from mesh.registers.numbers import Numbers
from mesh.registers.outbox import Commit
from mesh.registers.voter import Voter
from mesh.tasks.body import Body, Terms, task_key
from mesh.tasks.commands import New, Submit, TaskCommand
from mesh.tasks.config import TasksConfig
from mesh.tasks.effects import Outgoing, Send
from mesh.tasks.form import of_value
from mesh.tasks.surroundings import Surroundings
from mesh.tasks.tasks import Tasks
from mesh.wire.records import Card, Metadata
from mesh.wire.roster_messages import Roster
from mesh.wire.work_messages import Spec
from tests.unit.tasks.made import NOON

A, B, C = VOTERS = (NodeId(1), NodeId(2), NodeId(3))
TIMES = leases.local()
CONFIG = TasksConfig()


class Node:
    """One node: its tasks, and what they asked of whoever runs processes."""

    def __init__(self, own: NodeId, slots: int, now: float, voters: tuple[NodeId, ...]) -> None:
        self.busy_pct = 0
        self.lag_ms = 0
        meta = Metadata(slots=slots)
        address = Address("127.0.0.1", 1000 + own)
        self.card = Card(
            node_id=own, boot=1, incarnation=0, name=f"n{own}", address=address, meta=meta
        )
        self.view = LiveView()
        self.desk = Desk(
            own_id=own,
            boot=1,
            domain=1,
            times=TIMES,
            numbers=Numbers(0),
            rng=random.Random(own),
            voter=Voter(own, TIMES, epoch=1, now=now),
            roster=Roster(1, voters),
        )
        self.tasks = Tasks(
            desk=self.desk,
            rng=random.Random(own),
            unix_offset_s=NOON - now,
            config=CONFIG,
            claim_for_s=TIMES.doubt_s,
            around=Surroundings(
                card=lambda: self.card,
                view=self.view,
                name_of=lambda node_id: f"n{node_id}",
                busy_pct=lambda: self.busy_pct,
                lag_ms=lambda: self.lag_ms,
            ),
            now=now,
        )
        self.effects: list[object] = []

    def member(self) -> LiveMember:
        card = self.card
        return LiveMember(
            node_id=card.node_id,
            boot=1,
            name=card.name,
            address=card.address,
            meta=card.meta,
            free_slots=self.tasks.free_slots,
        )

    def starts(self) -> list[StartProcess]:
        """Return what was started and not looked at yet."""
        found = [one for one in self.effects if isinstance(one, StartProcess)]
        self.effects = [one for one in self.effects if not isinstance(one, StartProcess)]
        return found

    def said(self, kind: type) -> list[object]:
        """Return the effects of one kind so far, and forget them."""
        found = [one for one in self.effects if isinstance(one, kind)]
        self.effects = [one for one in self.effects if not isinstance(one, kind)]
        return found


class Crew:
    """Some nodes, and one clock."""

    def __init__(self, slots: dict[NodeId, int] | None = None) -> None:
        """Begin with three voters; `slots` by node, none elsewhere."""
        self.now = 100.0
        self.away: set[NodeId] = set()
        """Who hears nothing, and is heard by nobody."""

        self.loses: Callable[[NodeId, object], bool] = lambda _to, _message: False
        """Says which message to whom is lost."""

        self.heard: list[tuple[NodeId, object]] = []
        """Every message that arrived, and where."""

        given = slots or {}
        names = sorted({*VOTERS, *given})
        self.nodes = {own: Node(own, given.get(own, 0), self.now, VOTERS) for own in names}
        self._last = 0
        members = [node.member() for node in self.nodes.values()]
        for node in self.nodes.values():
            for one in members:
                node.view.put(one)
                self.meet(node, one.node_id)

    def do(self, node: Node, call: Callable[[Tasks, float], Iterable[Outgoing]]) -> None:
        """Let something happen at a node, and all that follows."""
        todo = [(node, output) for output in call(node.tasks, self.now)]
        while todo:
            at, output = todo.pop(0)
            if isinstance(output, Commit):
                todo += [(at, one) for one in at.tasks.committed(self.now, output.number)]
            elif isinstance(output, Send):
                todo += self._deliver(at, output)
            else:
                at.effects.append(output)
            at.tasks.check_invariants(self.now)

    def meet(self, node: Node, other: NodeId) -> None:
        """Let a node notice what its view says of a member."""
        self.do(node, lambda tasks, now: tasks.handle_member(now, other))

    def give(self, own: NodeId, make: Callable[[int], TaskCommand]) -> Answer | None:
        """Give a command to a node; return its answer if it came at once."""
        self._last += 1
        node, number = self.nodes[own], self._last
        self.do(node, lambda tasks, now: tasks.handle_command(now, make(number)))
        return self.answer(own, number)

    def answer(self, own: NodeId, number: int = 0) -> Answer | None:
        """Return the answer to a command, the latest by default."""
        answers = [one for one in self.nodes[own].effects if isinstance(one, Answer)]
        found = [one for one in answers if one.command_id == (number or self._last)]
        return found[0] if found else None

    def submit(self, task_id: str, *, retries: int = 0, own: NodeId = A) -> None:
        """Submit a task, and see it acknowledged."""
        terms = Terms(retries=retries, retry_delay_s=1.0)
        new = New(Spec(task_id=task_id, argv=("work", task_id)), terms)
        answer = self.give(own, lambda number: Submit(number, new))
        assert answer is not None
        assert answer.error is None, answer

    def wait(self, seconds: float) -> None:
        """Let the time pass, waking each node whenever it wants to be."""
        until = self.now + seconds
        while True:
            dues = [node.tasks.next_timeout() for node in self.nodes.values()]
            due = min((one for one in dues if one is not None), default=until)
            self.now = max(self.now, min(due, until))
            for node in self.nodes.values():
                self.do(node, lambda tasks, now: tasks.handle_timeout(now))
            if self.now >= until:
                return

    def exit(self, own: NodeId, run_id: int, code: int = 0, output: bytes = b"") -> None:
        """Let a process end."""
        node = self.nodes[own]
        if output:
            piece = ProcessOutput(run_id, 1, output)
            self.do(node, lambda tasks, now: tasks.handle_process(now, piece))
        end = ProcessExit(run_id, code)
        self.do(node, lambda tasks, now: tasks.handle_process(now, end))

    def end(self, end: ProcessExit, own: NodeId) -> None:
        self.do(self.nodes[own], lambda tasks, now: tasks.handle_process(now, end))

    def prove(self, own: NodeId) -> None:
        """Let everybody but the node itself hear the proof that its session is over."""
        for node in self.nodes.values():
            if node.card.node_id != own:
                self.do(node, lambda tasks, now: tasks.end(now, own, 1))

    def body(self, task_id: str) -> Body:
        """Return the latest that any voter holds of a task."""
        records = [node.desk.voter.record(task_key(task_id)) for node in self.nodes.values()]
        latest = max(records, key=lambda one: (one.ballot, one.seq))
        assert latest.value is not None
        return of_value(latest.value)

    def _deliver(self, sender: Node, send: Send) -> list[tuple[Node, Outgoing]]:
        own = sender.card.node_id
        if {own, send.to} & self.away or send.to not in self.nodes:
            return []
        node = self.nodes[send.to]
        found: list[tuple[Node, Outgoing]] = []
        for message in send.messages:
            if self.loses(send.to, message):
                continue
            self.heard.append((send.to, message))
            found += [(node, one) for one in node.tasks.handle_message(self.now, own, message)]
        return found
