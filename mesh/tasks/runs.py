"""All attempts of one node, by task and by number: what is asked of them as a whole.

Source: our own.
"""

from __future__ import annotations

from typing import Any

from mesh.registers.desk import Desk
from mesh.registers.trust import Hold
from mesh.tasks.body import task_key
from mesh.tasks.changes import Claim
from mesh.tasks.effects import Step
from mesh.tasks.run import Run, Stage
from mesh.wire.task_messages import Offer


class Runs:
    """The table of a session's attempts. Invariant: every run is in it by its task and by its number."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._runs: dict[bytes, Run] = {}
        self._keys: dict[int, bytes] = {}  # of runs, by id
        self._last_run_id = 0

    def guard(self) -> list[Step]:
        """Return the deadlines of every run that have moved. O(runs)."""
        steps: list[Step] = []
        for run in self._runs.values():
            if run.stage is Stage.RUNNING:
                steps += self._guard(run)
        return steps

    def running(self) -> list[dict[str, Any]]:
        """Return what runs here, longest first, as programs see it."""
        living = {Stage.RUNNING, Stage.DOOMED}
        return [run.json() for run in self._runs.values() if run.stage in living]

    def is_frozen(self, key: bytes) -> bool:
        """Say whether a task runs here, and is held frozen until it is known whether its lease lives."""
        run = self._runs.get(key)
        return run is not None and run.is_frozen and run.stage in {Stage.RUNNING, Stage.DOOMED}

    def since(self, key: bytes) -> float | None:
        """Return when (Unix) the process of a task was started that runs here; None: none runs."""
        run = self._runs.get(key)
        return None if run is None else run.since

    def is_claiming(self, task_id: str) -> bool:
        """Say whether this node has asked for a task, and waits for the answer."""
        run = self._runs.get(task_key(task_id))
        return run is not None and run.stage is Stage.CLAIMING

    def holds(self, task_id: str) -> bool:
        """Say whether an attempt of a task was granted to this node, and is not settled yet."""
        run = self._runs.get(task_key(task_id))
        return run is not None and run.stage is not Stage.CLAIMING

    def claim_of(self, run_id: int) -> tuple[str, int] | None:
        """Return the task, and the attempt of it, that is claimed under this number; None: none is."""
        run = self._runs.get(self._keys.get(run_id, b""))
        if run is None or run.stage is not Stage.CLAIMING:
            return None
        return run.task_id, run.claim.lost_attempt + 1

    # Inside.

    def _begin(self, now: float, offer: Offer, claim: Claim) -> Run:
        self._last_run_id += 1
        key = task_key(offer.task_id)
        run = Run(self._last_run_id, key, offer.task_id, offer.needs, claim, now)
        run.offered = offer.ballot
        self._runs[key] = run
        self._keys[run.run_id] = key
        return run

    def _is_unsure_at(self, key: bytes) -> bool:
        """Say whether a lease at just these voters is in doubt: a claim there would be too."""
        voters = set(self._desk.seats(key).voters)
        return any(
            set(self._desk.seats(run.key).voters) == voters
            for run in self._runs.values()
            if run.stage is Stage.RUNNING and run.hold is not Hold.SURE
        )

    def _guard(self, run: Run) -> list[Step]:
        return run.guard(self._desk.trusted_until(run.key), self._desk.given_up_at(run.key))
