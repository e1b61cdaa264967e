"""All of a node's work behind one face: keeping tasks, running them, and asking the mesh about them.

Keeping and running meet only here. What a node tells itself takes the same way as what it tells
others, but never leaves: a message that is posted to this node is handled at once, and its reply
handed back.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from mesh.core.address import Address
from mesh.core.ids import NodeId
from mesh.core.process import ProcessEvent
from mesh.core.requests import Ask, Outgoing, Tell
from mesh.errors import LocalProtocolError
from mesh.placement.live_view import LiveView
from mesh.wire.records import Card
from mesh.work.commands import WorkCommand
from mesh.work.config import WorkConfig
from mesh.work.keeping.keeping import Keeping
from mesh.work.post import Post, Step
from mesh.work.running.owner import RUN, Owner

__all__ = ["Work", "WorkConfig", "WorkView"]

Handled: TypeAlias = tuple[object | None, list[Step]]


@dataclass(frozen=True, slots=True)
class WorkView:
    """What this node keeps and runs, JSON-ready."""

    tasks: list[dict[str, Any]]  # kept here, newest first, in short form
    task_counts: dict[str, int]  # all that are kept here, by state
    running: list[dict[str, Any]]  # runs here, whoever keeps it
    counters: dict[str, int]  # what was given up for want of room


class Work:
    """The work of one node. Every method that takes `now` returns what is to be done, in order.

    `card` gives this node's card as it is now: its name and boot may change while it joins.
    """

    DATAGRAMS: Final = Keeping.DATAGRAMS
    REQUESTS: Final = Keeping.REQUESTS | Owner.REQUESTS

    def __init__(
        self,
        *,
        card: Callable[[], Card],
        view: LiveView,
        rng: random.Random,
        unix_offset_s: float,
        config: WorkConfig | None = None,
    ) -> None:
        config = config or WorkConfig()
        self._card = card
        self._view = view
        self._keeping = Keeping(
            card=card, view=view, rng=rng, unix_offset_s=unix_offset_s, config=config
        )
        self._owner = Owner(card=card, view=view, unix_offset_s=unix_offset_s, config=config)
        # Where members were last: a suspect is in no view, but its runs go on.
        self._addresses: dict[NodeId, Address] = {}
        self.running = 0
        """Runs whose process has not ended."""
        self.used = 0
        """Slots that runs hold: until their process has ended and their output is with its keeper."""
        self.free_slots = self._owner.free_slots
        """Slots that an offer could get; 0 once this node is leaving."""

    def handle_message(
        self, now: float, sender: NodeId, message: object
    ) -> tuple[object | None, list[Outgoing]]:
        """Take one of DATAGRAMS or REQUESTS and return its reply (None: it has none)."""
        self._learn_address(sender)
        reply, steps = self._dispatch(now, sender, message)
        outputs = self._carry_out(now, steps)
        return reply, outputs

    def handle_reply(self, now: float, tag: Hashable, reply: object | None) -> list[Outgoing]:
        """Take the reply to an `Ask`; None: there was none, and nobody knows whether it arrived."""
        if not isinstance(tag, tuple):
            raise LocalProtocolError(f"a tag of this machine is a tuple, found {tag!r}")
        return self._carry_out(now, self._on_reply(now, tag, reply))

    def handle_process(self, now: float, event: ProcessEvent) -> list[Outgoing]:
        """Take what a process that was started here wrote, or that it ended."""
        return self._carry_out(now, self._owner.handle_process(now, event))

    def handle_command(self, now: float, command: WorkCommand) -> list[Outgoing]:
        """Take a client's command."""
        return self._carry_out(now, self._keeping.handle_command(now, command))

    def handle_member_up(self, now: float, node_id: NodeId) -> list[Outgoing]:
        """Note that a member may get work, or that its vitals show free slots. The view knows already."""
        self._learn_address(node_id)
        self._keeping.handle_member_up(node_id)
        return self._carry_out(now, [])

    def handle_member_down(
        self, now: float, node_id: NodeId, boot: int, reason: str
    ) -> list[Outgoing]:
        """Note that a member's session `boot` is over. `reason`: "declared dead (…)", "left", "restarted".

        It may be this node's own, when its number was raised: tasks stay, attempts that they gave away
        end as if by a crash, and what runs here is stopped.
        """
        steps = self._keeping.handle_member_down(now, node_id, boot, reason)
        steps += self._owner.handle_member_down(now, node_id, boot)
        if self._view.get(node_id) is None:
            self._addresses.pop(node_id, None)
        return self._carry_out(now, steps)

    def handle_timeout(self, now: float) -> list[Outgoing]:
        """Do what is due; early, twice or late is harmless."""
        steps = self._owner.handle_timeout(now) + self._keeping.handle_timeout(now)
        return self._carry_out(now, steps)

    def next_timeout(self) -> float | None:
        """Return when `handle_timeout` has something to do, or None."""
        dues = (self._owner.next_timeout(), self._keeping.next_timeout())
        return min((due for due in dues if due is not None), default=None)

    def take_watch(self, watcher_id: int) -> tuple[list[tuple[int, bytes]], dict[str, Any] | None]:
        """Return the pieces (stream, data) a watcher has not taken, and its task's JSON once that has ended.

        The JSON comes with the last pieces. A watcher that is unknown, or was dropped because it took
        nothing for `watcher_stall_s`, gets no pieces and `{"watch_error": why}` with what is known of
        the task. When a new attempt starts, the pieces go on with that attempt's first.
        """
        return self._keeping.take_watch(watcher_id)

    def view(self, now: float) -> WorkView:  # noqa: ARG002 - every machine's view takes it
        """Return what this node keeps and runs."""
        tasks, task_counts, counters = self._keeping.view()
        return WorkView(
            tasks, task_counts, self._owner.running(), {**counters, **self._owner.counters}
        )

    def stop(self, now: float) -> list[Outgoing]:
        """Take no more work and stop what runs; keepers hear that their attempts are released.

        Everything was stopped and told once `used` is 0 and no `Ask` is under way.
        """
        return self._carry_out(now, self._keeping.stop() + self._owner.stop())

    def check_invariants(self) -> None:
        """Raise AssertionError if a part contradicts itself or another. O(tasks)."""
        self._keeping.check_invariants()
        self._owner.check_invariants()

    # Inside.

    def _carry_out(self, now: float, steps: list[Step]) -> list[Outgoing]:
        """Handle what is for this node, offer what can be offered, and address the rest."""
        outputs: list[Outgoing] = []
        todo = deque(steps)
        own = self._card().node_id
        while True:
            if not todo:
                todo.extend(self._keeping.offer_ready(now))
                if not todo:
                    owner = self._owner
                    self.used, self.free_slots = owner.used, owner.free_slots
                    self.running = owner.living
                    return outputs
            step = todo.popleft()
            if not isinstance(step, Post):
                outputs.append(step)
                continue
            if step.to == own:
                reply, more = self._dispatch(now, step.to, step.message)
                if step.tag is not None:
                    more = more + self._on_reply(now, step.tag, reply)
                todo.extendleft(reversed(more))
                continue
            address = self._address(step.to)
            if address is not None and step.tag is not None:
                outputs.append(Ask(address, step.message, step.tag, step.timeout_s))
            elif address is not None:
                outputs.append(Tell(address, step.message))
            elif step.tag is not None:
                todo.extendleft(reversed(self._on_reply(now, step.tag, None)))

    def _dispatch(self, now: float, sender: NodeId, message: object) -> Handled:
        if type(message) in Owner.REQUESTS:
            return self._owner.handle_message(now, sender, message)
        return self._keeping.handle_message(now, sender, message)

    def _on_reply(self, now: float, tag: tuple[Hashable, ...], reply: object | None) -> list[Step]:
        if tag[0] == RUN:
            return self._owner.handle_reply(now, tag, reply)
        return self._keeping.handle_reply(now, tag, reply)

    def _learn_address(self, node_id: NodeId) -> None:
        member = self._view.get(node_id)
        if member is not None:
            self._addresses[node_id] = member.address

    def _address(self, node_id: NodeId) -> Address | None:
        self._learn_address(node_id)
        return self._addresses.get(node_id)
