"""All that one node has to do with tasks behind one face: its desk, its stewardship, its runs, its clients.

    messages of registers ──► desk ─┬─ Done ──────────────────► claiming, asking, book of queues: by the tag
                              ▲     ├─ Held, Written, Fenced ─► claiming
                              │     └─ Changed ───────────────► book of queues, steward, listing, notices
    messages of tasks ──► steward, claiming, asking, noticing; of output ──► output, following
    what any of them says to this node itself is handled at once; all else leaves as `Send`

Composition only. Every call that takes `now` returns what is to be done, in order: a `Commit` is to be made
durable, and then told of by `committed`; nothing else waits for it, for what would have to is held back here.
Built anew for each session of a node: its boot number never changes under it.
"""

from __future__ import annotations

import random
from collections import deque
from typing import Any, Final

from mesh.core.ids import NodeId
from mesh.core.process import ProcessEvent
from mesh.errors import LocalProtocolError
from mesh.queues.book import BOOK, QueueBook
from mesh.registers.asker import Done
from mesh.registers.desk import Desk
from mesh.registers.leaseholder import Held
from mesh.registers.outbox import Changed, Commit, Fenced, Message, Output, Post, Written
from mesh.tasks.asking import ASK, Asking
from mesh.tasks.body import DURATION_S_MAX, TIME_MAX, task_key
from mesh.tasks.calling import Calling
from mesh.tasks.claiming import Claiming
from mesh.tasks.commands import Abandon, Follow, TaskCommand, Unfollow
from mesh.tasks.config import TasksConfig
from mesh.tasks.contending import Contending
from mesh.tasks.effects import Outgoing, Send, Step
from mesh.tasks.entry import in_order_of_making
from mesh.tasks.following import FOLLOW, Following
from mesh.tasks.means import Means
from mesh.tasks.noticing import Noticing
from mesh.tasks.output import HeldOutput
from mesh.tasks.steward import Steward
from mesh.tasks.surroundings import Surroundings
from mesh.tasks.telling import lost, told
from mesh.wire import task_messages as wire
from mesh.wire.contest_messages import (
    AskContest,
    AskVitals,
    Bid,
    Call,
    ContestTold,
    Settled,
    VitalsTold,
)
from mesh.wire.register_messages import Renewed
from mesh.wire.roster_messages import Roster
from mesh.wire.task_messages import (
    CancelAnswer,
    CancelRun,
    FollowEnd,
    Named,
    Notice,
    Offer,
    OfferAnswer,
    Piece,
    Watch,
)
from mesh.wire.work_messages import SlotsFree

LATEST: Final = TIME_MAX - DURATION_S_MAX
"""The time of day of a session that begins later, by its host's clock: its own and its tasks' times still fit."""


class Tasks:
    """The tasks of one session of a node."""

    MESSAGES: Final = frozenset(
        {Offer, Named, OfferAnswer, SlotsFree, CancelRun, CancelAnswer, Watch}
        | {Call, Bid, Settled, AskVitals, VitalsTold, AskContest, ContestTold}
        | HeldOutput.MESSAGES
        | Following.MESSAGES
    )
    """Those of tasks that it takes; those of registers go to its desk."""

    heeds_members = False
    """Whether this node votes on tasks that are not over, or is called for one: else who comes and goes moves nothing here."""

    is_listened_to = False
    """Whether some voter wants to be told of this node's slots and load, whenever they change."""

    def __init__(
        self,
        *,
        desk: Desk,
        around: Surroundings,
        rng: random.Random,
        unix_offset_s: float,
        config: TasksConfig,
        claim_for_s: float,
        now: float,
    ) -> None:
        """Begin a session with what the desk's voter holds; `claim_for_s`: see `Claiming`."""
        card, view = around.card, around.view
        self._own_id = card().node_id
        self._view = view
        # A host may believe to be before 1970, or in the year 9892; no record could hold that.
        unix_offset_s = min(max(unix_offset_s, -now), LATEST - now)
        self._desk = desk
        self._book = QueueBook(desk, rng)
        weighing_of = self._book.weighing_of
        self.calling = Calling(view, around.known_of, config, unix_offset_s, weighing_of)
        """The contests that this node holds, for whoever looks at them."""
        self._steward = self._new_steward(rng, unix_offset_s, config)
        self._output = HeldOutput(self._is_member, config)
        self._claiming = Claiming(
            desk=desk,
            card=card,
            rng=rng,
            unix_offset_s=unix_offset_s,
            config=config,
            claim_for_s=claim_for_s,
            output=self._output,
        )
        self._contending = Contending(
            claiming=self._claiming,
            card=card,
            view=view,
            busy_pct=around.busy_pct,
            lag_ms=around.lag_ms,
            rng=rng,
        )
        means = self._means(around, rng, unix_offset_s)
        kept = in_order_of_making(desk.voter)
        self._asking = Asking(means, kept)
        self._following = Following(means, config)
        self._noticing = Noticing()
        self.used = 0
        """Slots that are reserved, or held by runs whose verdict is not settled."""

        self.free_slots = self._claiming.free_slots
        """Slots that an offer could get; 0 once this node drains."""
        self.take_watch = self._following.take_watch
        self.newest = self._asking.newest
        """Returns the newest tasks that this node votes on, so many at most, as it knows them, in short JSON."""

        self._steward.adopt(now, kept)
        self.heeds_members = len(self._steward) > 0

    # What happens.

    def handle_message(self, now: float, sender: NodeId, *messages: object) -> list[Outgoing]:
        """Take one of `MESSAGES`, or of registers, or several that came together; none: do what the desk was told elsewhere."""
        steps = [step for one in messages for step in self._dispatch(now, sender, one)]
        return self._carry_out(now, steps)

    def handle_command(self, now: float, command: TaskCommand) -> list[Outgoing]:
        """Take a client's command; all but `Abandon` and `Unfollow` are answered by one `Answer`."""
        steps: list[Step] = []
        if isinstance(command, Follow | Unfollow | Abandon):
            steps += self._following.handle_command(now, command)
        if not isinstance(command, Follow | Unfollow):
            steps += self._asking.handle_command(now, command)
        return self._carry_out(now, steps)

    def handle_process(self, now: float, event: ProcessEvent) -> list[Outgoing]:
        """Take what a process that was started here wrote, or that it ended."""
        return self._carry_out(now, self._claiming.handle_process(now, event))

    def handle_member(self, now: float, node_id: NodeId) -> list[Outgoing]:
        """Note that a member came, went, or says more of its slots. The view knows already: nothing is decided by it."""
        if self._view.get(node_id) is None:
            self._contending.handle_member_down(now, node_id)
            self._steward.handle_member_down(now, node_id)
        else:
            self._steward.handle_member_up(node_id)
        return self._carry_out(now, []) if self.heeds_members else []

    def end(self, now: float, node_id: NodeId, boot: int) -> list[Outgoing]:
        """Take the proof that a session of another node runs nothing any more: its leases are over at once."""
        self._desk.end(now, node_id, boot)
        keys = self._steward.end(now, node_id, boot)
        if not self.heeds_members:
            return []
        return self._carry_out(now, [e for key in keys for e in lost(self._desk.voter.record(key))])

    def adopt(self, now: float, roster: Roster) -> list[Outgoing]:
        """Take a later roster. O(tasks)."""
        self._desk.adopt(now, roster)
        self._steward.adopt(now)
        return self._carry_out(now, [])

    def committed(self, now: float, number: int) -> list[Outgoing]:
        """Take that a `Commit` and all before it are durable."""
        self._desk.committed(now, number)
        return self._carry_out(now, [])

    def handle_timeout(self, now: float) -> list[Outgoing]:
        """Do what is due; early, twice or late is harmless."""
        self._desk.handle_timeout(now)
        steps = self._claiming.handle_timeout(now) + self._contending.handle_timeout(now)
        steps += self._steward.handle_timeout(now)
        steps += self._asking.handle_timeout(now) + self._output.handle_timeout(now)
        steps += self._following.handle_timeout(now)
        self._noticing.handle_timeout(now)
        outputs = self._carry_out(now, steps)
        return outputs + self._carry_out(now, self._claiming.guard())

    def next_timeout(self) -> float | None:
        """Return when `handle_timeout` has something to do, or None."""
        dues = (
            self._desk.next_deadline(),
            self._claiming.next_timeout(),
            self._contending.next_timeout(),
            self._steward.next_timeout(),
            self._asking.next_timeout(),
            self._book.next_timeout(),
            self._noticing.next_timeout(),
            self._output.next_timeout(),
            self._following.next_timeout(),
        )
        return min((due for due in dues if due is not None), default=None)

    def drain(self, now: float, until: float) -> list[Outgoing]:
        """Take nothing more, but go on offering to others; what runs may end until then, and is let go after that, for others to run.

        All is said once `used` is 0.
        """
        return self._carry_out(now, self._claiming.drain(now, until))

    def view(self) -> dict[str, Any]:
        """Return what this node votes on by state, what runs here, and what was given up or could not be read, JSON-ready."""
        return {
            "counts": self._asking.counts(),
            "running": self._claiming.running(),
            "counters": {
                "dropped_output_bytes": self._output.dropped_bytes,
                "unread_settings": self._book.unread,
                **self._contending.counters,
            },
        }

    def check_invariants(self, now: float) -> None:
        """Raise AssertionError if a part contradicts itself or another. O(tasks)."""
        self._desk.check_invariants()
        self._steward.check_invariants()
        self._claiming.check_invariants(now)
        self._contending.check_invariants()
        self._asking.check_invariants()
        self._book.check_invariants()
        self._noticing.check_invariants()
        self._output.check_invariants()
        self._following.check_invariants()

    # Inside.

    def _carry_out(self, now: float, steps: list[Step]) -> list[Outgoing]:
        """Handle what is for this node, and what the desk says; offer what can be offered; gather the rest."""
        outputs: list[Outgoing] = []
        sends: dict[NodeId, list[object]] = {}
        todo = deque(steps)
        while True:
            while todo:
                step = todo.popleft()
                if not isinstance(step, tuple):
                    outputs.append(step)
                elif step[0] == self._own_id:
                    todo.extend(self._dispatch(now, *step))
                else:
                    sends.setdefault(step[0], []).append(step[1])
            taken = self._desk.take()
            for output in taken:
                if isinstance(output, Commit):
                    outputs.append(output)
                elif isinstance(output, Post):
                    sends.setdefault(output.to, []).extend(output.messages)
                else:
                    todo.extend(self._on_event(now, output))
            if not taken and not todo:
                todo.extend([*self._steward.offer_ready(now), *self._contending.tell(now)])
                if not todo and not self._book.ask_due(now):
                    claiming = self._claiming
                    self.used, self.free_slots = claiming.used, claiming.free_slots
                    self.heeds_members = len(self._steward) + len(self._contending) > 0
                    self.is_listened_to = self._contending.is_listened_to
                    break
        for to, messages in sends.items():
            self._contending.ride(now, to, messages)
            outputs.append(Send(to, tuple(messages)))
        return outputs

    def _dispatch(self, now: float, sender: NodeId, message: object) -> list[Step]:
        match message:
            case Renewed():
                self._desk.handle(now, sender, message)
                return self._claiming.guard()
            case Offer() | Named() | CancelRun():
                return self._claiming.handle_message(now, sender, message)
            case OfferAnswer() | SlotsFree() | VitalsTold():
                self._steward.handle_message(now, sender, message)
                return []
            case Call() | Bid() | Settled() | AskVitals() | AskContest():
                return self._hear_contest(now, sender, message)
            case CancelAnswer() | ContestTold():
                return list(self._asking.handle_message(now, sender, message))
            case Notice():
                steps: list[Step] = list(self._asking.handle_message(now, sender, message))
                return steps + self._following.handle_message(now, sender, message)
            case wire.Follow():
                return self._output.handle_message(now, sender, message)
            case Piece() | FollowEnd():
                return self._following.handle_message(now, sender, message)
            case Watch():
                record = self._desk.voter.record(task_key(message.task_id))
                return list(self._noticing.watch(now, sender, message, record))
            case _:
                pass
        if not isinstance(message, Message):
            raise LocalProtocolError(f"{type(message).__name__} is no message about tasks")
        self._desk.handle(now, sender, message)
        return []

    def _hear_contest(
        self, now: float, sender: NodeId, message: Call | Bid | Settled | AskVitals | AskContest
    ) -> list[Step]:
        if isinstance(message, AskContest):
            return [(sender, self.calling.tell(message))]
        if isinstance(message, Bid):
            self._steward.handle_message(now, sender, message)
        return self._contending.handle_message(now, sender, message)

    def _on_event(self, now: float, event: Output) -> list[Step]:
        match event:
            case Done():
                about = event.tag[0] if isinstance(event.tag, tuple) else None
                if about == ASK:
                    return list(self._asking.handle_done(now, event))
                if about == BOOK:
                    self._book.handle_done(now, event)
                    return []
                if about == FOLLOW:
                    return self._following.handle_done(now, event)
                return self._contending.handle_done(now, event)
            case Held() | Written() | Fenced():
                return self._claiming.handle_event(now, event)
            case Changed():
                self._book.handle_changed(event.key, event.record)
                self._steward.handle_changed(now, event.key, event.record)
                before = self._asking.handle_changed(event.key, event.record)
                steps: list[Step] = list(told(event.key, before, event.record))
                return steps + list(self._noticing.changed(event.key, event.record))
            case Commit() | Post():
                raise LocalProtocolError("what is stored or sent is no event")

    def _new_steward(self, rng: random.Random, offset_s: float, config: TasksConfig) -> Steward:
        return Steward(
            own_id=self._own_id,
            desk=self._desk,
            view=self._view,
            rng=rng,
            unix_offset_s=offset_s,
            config=config,
            calling=self.calling,
            strategy_of=self._book.strategy_of,
        )

    def _is_member(self, node_id: NodeId) -> bool:
        return node_id == self._own_id or self._view.get(node_id) is not None

    def _means(self, around: Surroundings, rng: random.Random, unix_offset_s: float) -> Means:
        """Return what its clients' questions have at their disposal."""
        steward = self._steward
        return Means(
            registers=self._desk,
            card=around.card,
            view=around.view,
            rng=rng,
            unix_offset_s=unix_offset_s,
            name_of=around.name_of,
            waits_for=steward.waits_for,
            loss=steward.loss,
            is_frozen=self._claiming.is_frozen,
            since=self._claiming.since,
            name_home=steward.name_home,
            learn_queue=self._book.learn,
            known_strategy=self._book.known,
            known_queues=self._book.settings,
        )
