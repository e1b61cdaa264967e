"""The owner's side of tasks: takes offers while slots are free, claims, and runs what it may be sure of.

    Offer ── no slot, unfit, draining, unsure there ─► declined
          └─ a slot is reserved, and the claim asked of a majority ── somebody's, over ─► declined after all
                                                                   └─ granted: held, and started once SURE
    Named ── as an offer is judged ─┬─ held in DOUBT, and started once a majority renewed it: SURE
                                    └─ released, under its token
    DOUBT ─► the work is frozen      SURE ─► it goes on      LOST ─► it is killed
    its process ended ─► the verdict is written under the token; the slot is free when that is settled

Nothing runs before a majority has granted it, nor in doubt. A claim whose answer was lost is asked again as
the same claim, so that it takes up its own grant. A verdict counts by its token: it is written though the
lease has lapsed since, and refused where somebody else may have been promised the task.

A slot is held from the offer on, so a node never claims what it cannot start.

Source: our own.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from mesh.core.ballot import NO_BALLOT
from mesh.core.effects import (
    FreezeProcess,
    StartProcess,
    StopProcess,
    ThawProcess,
)
from mesh.core.ids import NodeId
from mesh.core.process import ProcessEvent, ProcessExit, ProcessOutput
from mesh.registers.asker import Done, Late
from mesh.registers.desk import Desk
from mesh.registers.leaseholder import Held
from mesh.registers.outbox import Fenced, Written
from mesh.registers.proposal import Chosen
from mesh.registers.trust import Hold
from mesh.tasks.body import Result, task_key
from mesh.tasks.config import TasksConfig
from mesh.tasks.effects import Step
from mesh.tasks.intake import Intake
from mesh.tasks.naming import DECLINED, Namings, claim_for, claim_of, offer_of
from mesh.tasks.output import HeldOutput
from mesh.tasks.run import KILLED, Run, Stage
from mesh.tasks.runs import Runs
from mesh.wire.records import Card
from mesh.wire.register_messages import Standing, Value
from mesh.wire.task_messages import (
    CancelAnswer,
    CancelRun,
    CancelVerdict,
    Decline,
    Named,
    Offer,
    OfferAnswer,
)

CLAIM: Final = "claim"
"""The first part of every tag of this machine."""

LEAVING: Final = "its node is leaving"

CLAIM_STEP_S: Final = 1e-6  # no two claims of a session are of one time


class Claiming(Runs):
    """All attempts that this node claims and runs."""

    def __init__(
        self,
        *,
        desk: Desk,
        card: Callable[[], Card],
        rng: random.Random,
        unix_offset_s: float,
        config: TasksConfig,
        claim_for_s: float,
        output: HeldOutput,
    ) -> None:
        """Begin a session. `output` holds what runs write. `claim_for_s`: for so long a claim is asked again that may have been granted unheard."""
        super().__init__(desk)
        self._card = card
        self._rng = rng
        self._unix_offset_s = unix_offset_s
        self._config = config
        self._claim_for_s = claim_for_s
        self._output = output
        self._intake = Intake(card, config)
        self._namings = Namings(card)
        self._last_claim_at = 0.0
        self._drain_at: float | None = None

    @property
    def free_slots(self) -> int:
        """Slots that an offer could get: none once this node drains."""
        return self._intake.free

    @property
    def used(self) -> int:
        """Slots that are reserved, or held by runs."""
        return self._intake.used

    # Events.

    def handle_message(
        self, now: float, sender: NodeId, message: Offer | Named | CancelRun
    ) -> list[Step]:
        """Take an offer, the word that this session was named, or a request to stop an attempt."""
        if isinstance(message, Offer):
            return self._on_offer(now, sender, message)
        if isinstance(message, Named):
            return self._on_named(now, sender, message)
        return self._on_cancel(now, sender, message)

    def handle_done(self, now: float, done: Done) -> list[Step]:
        """Take how a claim has ended."""
        assert isinstance(done.tag, tuple)
        run = self._runs.get(self._keys.get(done.tag[1], b""))
        if run is None or run.stage is not Stage.CLAIMING:
            return []
        outcome = done.outcome
        if isinstance(outcome, Chosen):
            if outcome.value.standing is Standing.LEASED and outcome.value.owner == run.owner:
                return self._on_granted(now, run, outcome)
            return self._end(now, run, Decline.OVER)
        if isinstance(outcome, Late):
            if outcome.may_be_chosen and now < run.began + self._claim_for_s:
                self._ask(now, run)
                return []
            return self._end(now, run)
        return self._end(now, run, Decline.TAKEN)

    def handle_event(self, now: float, event: Held | Written | Fenced) -> list[Step]:
        """Take what became of a lease, or of a write."""
        run = self._runs.get(event.key)
        if run is None or run.token != event.token:
            return []
        if isinstance(event, Held):
            return self._on_held(now, run, event.hold)
        if isinstance(event, Fenced):
            return self._on_fenced(now, run)
        steps: list[Step] = []
        if run.cancellers and event.seq >= run.mark_seq:
            steps += run.tell_cancellers(CancelVerdict.STOPPING)
            steps += run.stop(self._config.stop_grace_s)
            if run.stage is Stage.UNSURE:
                return steps + self._finish(now, run, Result(error="it was cancelled unstarted"))
        if run.stage is Stage.SETTLING and event.seq == run.seq:
            steps += self._end(now, run)
        return steps

    def handle_process(self, now: float, event: ProcessEvent) -> list[Step]:
        """Take a piece of output, or the end of a process."""
        run = self._runs.get(self._keys.get(event.run_id, b""))
        if run is None or run.stage not in {Stage.RUNNING, Stage.DOOMED}:
            return []
        if isinstance(event, ProcessOutput):
            run.tails.take(event)
            return self._output.write(now, event)
        return self._on_exit(now, run, event)

    def drain(self, now: float, until: float) -> list[Step]:
        """Take no more offers, and let go at `until` whatever runs then: others run it, at no retry's cost."""
        self._drain_at, self._intake.is_draining = until, True
        return self.handle_timeout(now)

    def handle_timeout(self, now: float) -> list[Step]:
        """Tell more voters of free slots, end a rest, let go what has to be."""
        steps: list[Step] = []
        if self._drain_at is not None and now >= self._drain_at:
            for run in list(self._runs.values()):
                if not run.is_stopped:
                    run.release_because = run.release_because or LEAVING
                steps += run.stop(self._config.stop_grace_s)
        return steps + self._intake.handle_timeout(now)

    def next_timeout(self) -> float | None:
        """Return when `handle_timeout` has something to do."""
        is_draining = any(
            run.stage is Stage.RUNNING and not run.is_stopped for run in self._runs.values()
        )
        dues = (self._intake.next_timeout(), self._drain_at if is_draining else None)
        return min((due for due in dues if due is not None), default=None)

    def check_invariants(self, now: float) -> None:
        """Raise AssertionError if runs and slots disagree, or work goes on that nobody may be sure of."""
        self._intake.check_invariants()
        assert self._intake.used == sum(run.has_slot for run in self._runs.values())
        assert set(self._keys.values()) == set(self._runs)
        for key, run in self._runs.items():
            assert run.key == key
            assert self._keys[run.run_id] == key
            assert (run.token == NO_BALLOT) == (run.stage is Stage.CLAIMING), run
            assert run.has_slot or run.stage is Stage.SETTLING, run
            if run.stage is Stage.RUNNING:
                assert run.is_frozen == (run.hold is not Hold.SURE), run
                assert run.guarded[0] <= (self._desk.trusted_until(key) or 0.0), (now, run)

    # Offers.

    def decline(self, sender: NodeId, offer: Offer, *, is_called: bool = False) -> list[Step]:
        """Return the answer to an offer that makes no claim: why not, or that one is made already; none: it would.

        `is_called`: others were called beside this node, so its sender waits for a slot here only if it has more.
        """
        key = task_key(offer.task_id)
        run = self._runs.get(key)
        decline = Decline.NONE
        if run is not None:
            if run.stage is Stage.CLAIMING:
                run.senders[sender] = offer.attempt
            elif run.stage is Stage.SETTLING and (offer.ballot, offer.seq) == (run.token, run.seq):
                # What came of it is known there before it is here: it is nobody's any more.
                decline = self._judge(sender, key, offer) or Decline.BUSY
            else:
                is_sure = run.stage is Stage.SETTLING or run.hold is Hold.SURE
                decline = Decline.TAKEN if is_sure else Decline.UNSURE
        else:
            decline = self._judge(sender, key, offer)
        if run is None and decline is Decline.NONE:
            return []
        if decline is Decline.BUSY and (offer.has_more or not is_called):
            self._intake.note(sender)
        return [self._answer(sender, offer.task_id, offer.attempt, decline)]

    def _on_offer(self, now: float, sender: NodeId, offer: Offer) -> list[Step]:
        declined = self.decline(sender, offer)
        if declined:
            return declined
        card = self._card()
        self._last_claim_at = max(now + self._unix_offset_s, self._last_claim_at + CLAIM_STEP_S)
        run = self._begin(now, offer, claim_for(offer, card, self._last_claim_at))
        run.senders[sender] = offer.attempt
        self._intake.take(sender, offer)
        self._ask(now, run)
        return [self._answer(sender, offer.task_id, offer.attempt, Decline.NONE)]

    def _on_named(self, now: float, sender: NodeId, message: Named) -> list[Step]:
        body = self._namings.take(now, sender, message)
        key = b"" if body is None else task_key(body.task_id)
        if body is None or key in self._runs or self._unsettled >= self._config.unsettled_max:
            return []
        offer = offer_of(body, message)
        decline = self._judge(sender, key, offer)
        if decline is Decline.TAKEN:
            return []
        run = self._begin(now, offer, claim_of(body))
        run.token, run.stage = message.ballot, Stage.UNSURE
        run.know(message.value)
        self._output.open(run.task_id, run.body.attempt, run.run_id)
        is_taken = decline is Decline.NONE
        run.hold = self._desk.take_up(now, key, message.value, message.ballot, is_renewed=is_taken)
        if not is_taken:
            self._intake.note(sender)
            run.has_slot = False
            steps = self._let_go(now, run, DECLINED[decline])
            return [*steps, self._answer(sender, offer.task_id, offer.attempt, decline)]
        self._intake.take(sender, offer)
        return [self._answer(sender, offer.task_id, offer.attempt, Decline.NONE)]

    @property
    def _unsettled(self) -> int:
        return len(self._runs) - self._intake.used

    def _judge(self, sender: NodeId, key: bytes, offer: Offer) -> Decline:
        decline = self._intake.judge(sender, offer, self._desk.voter.record(key))
        if decline is Decline.NONE:
            if self._unsettled >= self._config.unsettled_max:
                return Decline.BUSY
            if self._is_unsure_at(key):
                return Decline.UNSURE
        return decline

    def _answer(self, sender: NodeId, task_id: str, attempt: int, decline: Decline) -> Step:
        return sender, OfferAnswer(task_id, attempt, decline, self._intake.free_for(sender))

    # Claims and leases.

    def _ask(self, now: float, run: Run) -> None:
        tag = (CLAIM, run.run_id)
        timeout_s = self._config.claim_timeout_s
        self._desk.propose(
            now, run.key, run.claim, tag, timeout_s, as_owner=True, above=run.offered.n
        )

    def _on_granted(self, now: float, run: Run, chosen: Chosen) -> list[Step]:
        run.token, run.stage = chosen.ballot, Stage.UNSURE
        run.know(chosen.value)
        self._output.open(run.task_id, run.body.attempt, run.run_id)
        run.hold = self._desk.hold(now, run.key, chosen)
        if self._drain_at is not None:
            return self._let_go(now, run, LEAVING)
        return self._on_unsure(now, run)

    def _on_unsure(self, now: float, run: Run) -> list[Step]:
        if run.hold is Hold.LOST:
            return self._let_go(now, run, "it could not be started in time")
        # One that is to be cancelled is started no more: that is being written down.
        if run.hold is not Hold.SURE or run.mark_seq:
            return []
        return self._start(now, run) if self._drain_at is None else self._let_go(now, run, LEAVING)

    def _on_held(self, now: float, run: Run, hold: Hold) -> list[Step]:
        run.hold = hold
        if run.stage is Stage.UNSURE:
            return self._on_unsure(now, run)
        if run.stage is Stage.SETTLING:
            # The word is said by the token; but who knows when, and others wait for the slot.
            return self._free_slot(now, run) if hold is Hold.LOST else []
        if run.stage is not Stage.RUNNING:
            return []
        if hold is Hold.SURE:
            run.is_frozen = False
            return [*self._guard(run), ThawProcess(run.run_id)]
        if hold is Hold.DOUBT:
            run.is_frozen = True
            return [FreezeProcess(run.run_id)]
        run.stage = Stage.DOOMED
        return [StopProcess(run.run_id, 0.0)]

    def _on_fenced(self, now: float, run: Run) -> list[Step]:
        run.is_fenced = True
        if run.stage is Stage.RUNNING:
            run.stage = Stage.DOOMED
            return [StopProcess(run.run_id, 0.0)]
        if run.stage is Stage.DOOMED:
            return []
        self._desk.drop(now, run.key)
        return self._end(now, run)

    # Processes.

    def _start(self, now: float, run: Run) -> list[Step]:
        run.stage, run.since = Stage.RUNNING, now + self._unix_offset_s
        spec = run.body.spec
        start = StartProcess(run.run_id, spec.argv, run.environment(), spec.cwd)
        return [*self._guard(run), start]

    def _on_exit(self, now: float, run: Run, event: ProcessExit) -> list[Step]:
        shortage = event.error if event.is_host_fault else ""
        steps = self._intake.judge_start(now, run.run_id, self._last_run_id, shortage)
        standing = self._desk.standing(now, run.key)
        is_lost = run.stage is Stage.DOOMED or standing not in {Hold.SURE, Hold.DOUBT}
        if run.is_fenced or (is_lost and event.exit_code == KILLED):
            self._desk.drop(now, run.key)  # it ended because the lease did, which is no verdict
            return steps + self._end(now, run)
        if shortage or run.release_because:
            return steps + self._let_go(now, run, run.release_because or shortage)
        return steps + self._finish(
            now, run, run.tails.result(event, self._output.dropped(run.run_id))
        )

    def _finish(self, now: float, run: Run, result: Result) -> list[Step]:
        at = now + self._unix_offset_s
        return self._settle(now, run, run.finished(at, result, self._rng.random()))

    def _let_go(self, now: float, run: Run, reason: str) -> list[Step]:
        return self._settle(now, run, run.released(now + self._unix_offset_s, reason))

    def _settle(self, now: float, run: Run, value: Value) -> list[Step]:
        """Write what came of an attempt; its slot waits for that."""
        run.stage = Stage.SETTLING
        run.seq = self._desk.write(now, run.key, value)
        steps = self._output.close(now, run.run_id)
        return steps + self._free_slot(now, run) if run.hold is Hold.LOST else steps

    # Cancelling.

    def _on_cancel(self, now: float, sender: NodeId, message: CancelRun) -> list[Step]:
        run = self._runs.get(task_key(message.task_id))
        verdict = CancelVerdict.UNKNOWN if run is None else run.cancel(sender, message.attempt)
        if verdict is not None:
            verdict = verdict or CancelVerdict.STOPPING
            return [(sender, CancelAnswer(message.task_id, message.attempt, verdict))]
        assert run is not None
        if not run.mark_seq:
            value = run.marked(now + self._unix_offset_s)
            run.mark_seq = self._desk.write(now, run.key, value)
        return []

    # The end.

    def _end(self, now: float, run: Run, decline: Decline | None = None) -> list[Step]:
        steps = self._free_slot(now, run) + self._output.close(now, run.run_id)
        if decline is not None:
            for sender, attempt in run.senders.items():
                steps.append(self._answer(sender, run.task_id, attempt, decline))
        if run.cancellers:
            steps += run.tell_cancellers(CancelVerdict.OVER)
        del self._runs[run.key]
        del self._keys[run.run_id]
        return steps

    def _free_slot(self, now: float, run: Run) -> list[Step]:
        if not run.has_slot:
            return []
        run.has_slot = False
        return self._intake.give_back(now, run.needs)
