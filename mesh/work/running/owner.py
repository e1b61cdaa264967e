"""The executing side: takes offers while slots are free, runs them, and reports to their keepers.

It accepts only what it can start now. The same (keeper, keeper's session, task, attempt) is started
once, however often it is offered: a keeper that heard no answer may ask again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Final, TypeAlias

from mesh.core.effects import Emit, ReadOutput, StartProcess, StopProcess
from mesh.core.events import Event, EventKind
from mesh.core.ids import NodeId
from mesh.core.process import ProcessEvent, ProcessExit, ProcessOutput
from mesh.core.rest import Rest
from mesh.core.timers import Timers
from mesh.errors import LocalProtocolError
from mesh.placement.live_view import LiveView
from mesh.wire.records import Card
from mesh.wire.work_messages import (
    CancelRun,
    Decline,
    Offer,
    OfferAnswer,
    OutputPiece,
    ReportAnswer,
    RunQuery,
    SlotsFree,
    Verdict,
)
from mesh.work.config import WorkConfig
from mesh.work.post import Post, Step
from mesh.work.running.run import Run, RunKey, leaving_warning, orphan_warning
from mesh.work.running.slots import Slots

Tag: TypeAlias = tuple[Hashable, ...]
Handled: TypeAlias = tuple[OfferAnswer | ReportAnswer, list[Step]]
RUN: Final = "run"  # the first part of every tag of this machine


class Owner:
    """All runs of this node."""

    REQUESTS: Final = frozenset({Offer, CancelRun, RunQuery})

    def __init__(
        self,
        *,
        card: Callable[[], Card],
        view: LiveView,
        unix_offset_s: float,
        config: WorkConfig,
    ) -> None:
        meta = card().meta
        self._card = card
        self._slots = Slots(meta.slots, dict(meta.offers), config)
        self._view = view
        self._unix_offset_s = unix_offset_s
        self._config = config
        self._last_run_id = 0
        self._is_stopping = False
        self._runs: dict[int, Run] = {}  # that hold a slot, or whose report nobody took yet
        self._keys: dict[RunKey, int] = {}
        self._tasks: dict[tuple[NodeId, str], int] = {}  # the task's latest run
        self._orphans: OrderedDict[int, None] = OrderedDict()  # ended runs whose keeper is gone
        self._ended: OrderedDict[RunKey, None] = OrderedDict()  # runs that nobody needs any more
        self._timers: Timers[int] = Timers()
        self._rest = Rest()
        self._dropped_reports = 0
        self.living = 0
        """Runs whose process has not ended. Invariant: those without `exit`."""

    @property
    def free_slots(self) -> int:
        """Slots that an offer could get: none once this node is leaving."""
        return 0 if self._is_stopping else self._slots.free

    @property
    def used(self) -> int:
        """Slots that runs hold: until their process has ended and their output is with its keeper."""
        return self._slots.used

    @property
    def counters(self) -> dict[str, int]:
        """What was given up for want of room: reports without a keeper, places in the line for a slot."""
        return {
            "dropped_reports": self._dropped_reports,
            "dropped_waiters": self._slots.turned_away,
        }

    def handle_message(self, now: float, sender: NodeId, message: object) -> Handled:
        """Take one of REQUESTS and return its answer."""
        if isinstance(message, Offer):
            return self._on_offer(now, sender, message)
        if isinstance(message, CancelRun):
            return self._on_cancel(sender, message)
        if isinstance(message, RunQuery):
            return self._on_query(sender, message)
        raise LocalProtocolError(f"{type(message).__name__} is no request to an owner")

    def handle_process(self, now: float, event: ProcessEvent) -> list[Step]:
        """Take a piece of output, or the end of a process."""
        run = self._runs.get(event.run_id)
        if run is None or run.exit is not None:
            return []
        if isinstance(event, ProcessOutput):
            if run.is_stale or run.is_orphan:
                return [ReadOutput(run.run_id, event.stream)]
            run.pending.append(
                OutputPiece(run.spec.task_id, run.attempt, run.next_seq, event.stream, event.data)
            )
            run.next_seq += 1
            self._rest.note_started(run.run_id)
            return self._send(run)
        run.exit = event
        self.living -= 1
        steps = self._judge_start(now, run, event)
        if run.is_orphan and not run.is_stale:
            steps.append(orphan_warning(run))
        return steps + self._advance(now, run)

    def handle_reply(self, now: float, tag: Tag, reply: object | None) -> list[Step]:
        """Take the keeper's answer to a piece of output or a report; None: it did not answer."""
        run = self._runs.get(tag[1]) if isinstance(tag[1], int) else None
        if run is None or run.is_stale:
            return []
        run.is_sending = False
        if not isinstance(reply, ReportAnswer):
            run.tries += 1
            pause_s = self._config.report_retry_s * min(8, 1 << min(run.tries - 1, 3))
            self._timers.set(run.run_id, now + pause_s)
            return []
        run.tries = 0
        if reply.verdict is Verdict.STALE:
            return self._void(now, run)
        if reply.verdict is Verdict.WAIT:
            self._timers.set(run.run_id, now + self._config.output_retry_s)
            return []
        if tag[2] is None:  # the report
            self._end(run)
            return []
        steps: list[Step] = []
        if run.pending and run.pending[0].seq == tag[2]:
            piece = run.pending.popleft()
            if run.exit is None:
                steps.append(ReadOutput(run.run_id, piece.stream))
        return steps + self._advance(now, run)

    def handle_member_down(self, now: float, node_id: NodeId, boot: int) -> list[Step]:
        """Note that a keeper's session is over: its runs go on, their reports have nobody to go to.

        When it is this node's own session, whose number was raised, every keeper takes its runs for
        lost, or will: they are stopped.
        """
        self._slots.forget((node_id,))
        steps: list[Step] = []
        if node_id == self._card().node_id:
            for run in list(self._runs.values()):
                steps += self._void(now, run)
            return steps + self._tell(now)
        for run in list(self._runs.values()):
            if run.keeper == node_id and run.keeper_boot <= boot and not run.is_orphan:
                run.is_orphan = True
                run.is_sending = False
                steps += self._drop_pending(run)
                if run.exit is not None and not run.is_stale:
                    steps.append(orphan_warning(run))
                steps += self._advance(now, run)
        return steps + self._tell(now)

    def handle_timeout(self, now: float) -> list[Step]:
        """Repeat what was not answered, and tell more keepers of free slots."""
        steps: list[Step] = []
        for run_id in self._timers.take_due(now):
            run = self._runs.get(run_id)
            if run is not None:
                steps += self._advance(now, run)
        if self._rest.end(now):
            self._slots.is_closed = False
            return steps + self._tell(now)
        due = self._slots.next_timeout()
        return steps + (self._tell(now) if due is not None and due <= now else [])

    def next_timeout(self) -> float | None:
        """Return when `handle_timeout` has something to do."""
        dues = (self._timers.next_deadline(), self._slots.next_timeout(), self._rest.until)
        return min((due for due in dues if due is not None), default=None)

    def stop(self) -> list[Step]:
        """Take no more offers, and stop every run; its keeper is told that the attempt was released."""
        self._is_stopping = True
        living = [run for run in self._runs.values() if run.exit is None]
        for run in living:
            run.released_because = "it is leaving"
        stops: list[Step] = [StopProcess(run.run_id, self._config.stop_grace_s) for run in living]
        return [*stops, leaving_warning(living)] if living else []

    def running(self) -> list[dict[str, Any]]:
        """Return what runs here, longest first, as programs see it."""
        return [
            {
                "id": run.spec.task_id,
                "attempt": run.attempt,
                "keeper": run.keeper_name,
                "is_orphan": run.is_orphan,
                "since": run.since,
                "argv": list(run.spec.argv),
            }
            for run in self._runs.values()
            if run.exit is None
        ]

    def check_invariants(self) -> None:
        """Raise AssertionError if runs and slots disagree."""
        self._slots.check_invariants()
        assert self._slots.is_closed == (self._rest.until is not None)
        assert self.living == sum(run.exit is None for run in self._runs.values())
        assert self._slots.used == sum(run.has_slot for run in self._runs.values())
        for key, run_id in self._keys.items():
            assert self._runs[run_id].key == key
            assert key not in self._ended
        for run in self._runs.values():
            assert run.has_slot == (run.exit is None or bool(run.pending)), run
            assert not (run.is_sending and run.next_message(0) is None), run
        assert all(self._runs[run_id].is_orphan for run_id in self._orphans)
        assert len(self._orphans) <= self._config.remembered_max
        assert len(self._ended) <= self._config.remembered_max

    # -- requests

    def _on_offer(self, now: float, sender: NodeId, offer: Offer) -> Handled:
        """Start the attempt and say so, or decline."""
        spec = offer.spec
        key = RunKey(sender, offer.keeper_boot, spec.task_id, offer.attempt)
        if key in self._keys or key in self._ended:
            steps = self._revive(key)
            return OfferAnswer(Decline.NONE, self._card().boot, self._slots.free_for(sender)), steps
        keeper = self._view.get(sender)
        if self._is_stopping:
            return OfferAnswer(Decline.DRAINING, self._card().boot, 0), []
        if keeper is None:  # not met yet, or suspect: its report might have nowhere to go
            return OfferAnswer(Decline.BUSY, self._card().boot, 0), []
        if not self._slots.can_ever_run(spec):
            return OfferAnswer(Decline.UNFIT, self._card().boot, self._slots.free_for(sender)), []
        earlier = self._runs.get(self._tasks.get((sender, spec.task_id), 0))
        if earlier is not None and earlier.exit is None:
            # The same task still runs under an older number: that one goes first.
            steps = self._void(now, earlier)
            self._slots.note(sender)
            return OfferAnswer(Decline.BUSY, self._card().boot, 0), steps
        unreported = len(self._runs) - len(self._orphans) - self._slots.used
        is_full = unreported >= self._config.reports_max
        if is_full or not self._slots.can_run_now(spec, sender):
            free = self._slots.free_for(sender)
            self._slots.note(sender)
            return OfferAnswer(Decline.BUSY, self._card().boot, free), []
        steps = self._start(now, offer, key, keeper.name)
        self._slots.forget((sender,))
        free = self._slots.free_for(sender)
        if offer.has_more and not free:
            self._slots.note(sender)
        return OfferAnswer(Decline.NONE, self._card().boot, free), steps

    def _on_cancel(self, sender: NodeId, message: CancelRun) -> Handled:
        """Stop the attempt if it runs here; its report follows."""
        run = self._find(sender, message.task_id, message.attempt)
        if run is None:
            return ReportAnswer(Verdict.STALE), []
        steps = self._revive(run.key)
        if run.exit is None:
            steps.append(StopProcess(run.run_id, self._config.stop_grace_s))
        return ReportAnswer(Verdict.TAKEN), steps

    def _on_query(self, sender: NodeId, message: RunQuery) -> Handled:
        """Say whether the attempt is known here: it runs, or its report was not taken yet."""
        run = self._find(sender, message.task_id, message.attempt)
        if run is None:
            return ReportAnswer(Verdict.STALE), []
        return ReportAnswer(Verdict.TAKEN), self._revive(run.key)

    # -- one run

    def _start(self, now: float, offer: Offer, key: RunKey, keeper_name: str) -> list[Step]:
        spec = offer.spec
        self._last_run_id += 1
        run = Run(
            self._last_run_id,
            key.keeper,
            key.keeper_boot,
            keeper_name,
            spec,
            offer.attempt,
            now + self._unix_offset_s,
        )
        self._runs[run.run_id] = run
        self._keys[key] = self._tasks[key.keeper, spec.task_id] = run.run_id
        self._slots.take(spec)
        self.living += 1
        env = {
            **dict(spec.env),
            "MESH_TASK_ID": spec.task_id,
            "MESH_ATTEMPT": str(offer.attempt),
            "MESH_IDEMPOTENCY_KEY": spec.task_id,
        }
        return [StartProcess(run.run_id, spec.argv, env, spec.cwd)]

    def _judge_start(self, now: float, run: Run, end: ProcessExit) -> list[Step]:
        """If the host was too short of something to start the command, release it and rest."""
        if not end.is_host_fault:
            self._rest.note_started(run.run_id)
            return []
        run.released_because = run.released_because or end.error
        if not self._rest.begin(now, self._last_run_id):
            return []
        self._slots.is_closed = True
        detail = f"this host ran short, and takes no work for {self._rest.pause_s:g} s: {end.error}"
        return [Emit(Event(kind=EventKind.WARN, detail=detail))]

    def _find(self, sender: NodeId, task_id: str, attempt: int) -> Run | None:
        """Return the keeper's run of this attempt, if it runs or its report was not taken yet."""
        run = self._runs.get(self._tasks.get((sender, task_id), 0))
        return run if run is not None and run.attempt == attempt and not run.is_stale else None

    def _revive(self, key: RunKey) -> list[Step]:
        """Report again to a keeper that was believed dead, and asks."""
        run = self._runs.get(self._keys.get(key, 0))
        if run is None or not run.is_orphan or run.is_stale:
            return []
        self._orphans.pop(run.run_id, None)
        run.is_orphan = False
        return self._send(run)

    def _void(self, now: float, run: Run) -> list[Step]:
        """Stop a run that counts no more."""
        if run.is_stale:
            return []
        run.is_stale = True
        run.is_sending = False
        steps = self._drop_pending(run)
        if run.exit is None:
            steps.append(StopProcess(run.run_id, self._config.stop_grace_s))
        return steps + self._advance(now, run)

    def _drop_pending(self, run: Run) -> list[Step]:
        """Let a command write on that nobody listens to."""
        steps: list[Step] = []
        if run.exit is None:
            steps += [ReadOutput(run.run_id, piece.stream) for piece in run.pending]
        run.pending.clear()
        return steps

    def _advance(self, now: float, run: Run) -> list[Step]:
        """Give back the slot, send what comes next, or put the run away, whichever its state asks for."""
        is_freed = run.has_slot and run.exit is not None and not run.pending
        if is_freed:
            run.has_slot = False
            self._slots.give_back(run.spec)
        steps = self._send(run)
        if run.exit is not None and run.is_stale:
            self._end(run)
        elif run.exit is not None and run.is_orphan and run.run_id not in self._orphans:
            self._orphans[run.run_id] = None
            if len(self._orphans) > self._config.remembered_max:
                self._end(self._runs[next(iter(self._orphans))])
                self._dropped_reports += 1
        return steps + (self._tell(now) if is_freed else [])

    def _send(self, run: Run) -> list[Step]:
        """Send the keeper the next message of a run, unless one is under way."""
        if run.is_sending:
            return []
        message = run.next_message(self._slots.free_for(run.keeper))
        if message is None:
            return []
        run.is_sending = True
        self._timers.cancel(run.run_id)
        seq = message.seq if isinstance(message, OutputPiece) else None
        return [Post(run.keeper, message, (RUN, run.run_id, seq), self._config.offer_timeout_s)]

    def _end(self, run: Run) -> None:
        """Put a run away: what remains is that it must not be started again."""
        del self._runs[run.run_id]
        del self._keys[run.key]
        self._orphans.pop(run.run_id, None)
        self._timers.cancel(run.run_id)
        if self._tasks.get((run.keeper, run.spec.task_id)) == run.run_id:
            del self._tasks[run.keeper, run.spec.task_id]
        self._ended[run.key] = None
        if len(self._ended) > self._config.remembered_max:
            self._ended.popitem(last=False)

    def _tell(self, now: float) -> list[Step]:
        """Tell the first in the line of free slots."""
        return [Post(keeper, SlotsFree(1)) for keeper in self._slots.take_told(now)]
