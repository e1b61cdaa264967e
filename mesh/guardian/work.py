"""The runs of a node: which process belongs to which, and how they are frozen, thawed and killed.

A run's processes are its leader's group and session, and all that descends from one of them. Whoever
leaves group, session and parent at once (setsid and a double fork) becomes the guardian's child: an
**orphan**. Nothing tells whose it was. It counts as the work of every run that may have started it:
those that are older than it, without those whose living leader is the subreaper of its own work. So an
orphan is frozen with the first of them and thawed with the last, killed with the first that lost its
lease, and with the last that merely ended. Better a helper too many stopped than work run twice.

Only descendants of the guardian are ever signalled, and of these only the node's (`company`). A freeze repeats until a pass finds nobody whom
the passes before it have not stopped: a process with a signal pending cannot complete a fork.
"""

from __future__ import annotations

from mesh.guardian.link import DONE, FROZEN, KILLED, REFUSED, THAWED, Leader
from mesh.guardian.process import PASSES_MAX, SIGCONT, SIGKILL, SIGSTOP, below, send, survey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from mesh.guardian.company import Company
    from mesh.guardian.process import Key, Process

RUNS_MAX: Final = 8192
"""Runs that are guarded or have just ended; more than that are refused."""

SWEEP_S: Final = 1.0
"""How long what an ended run left behind may still write its last words."""

RETRY_S: Final = 0.05
"""The wait after /proc could not be read (no descriptor, no memory)."""

FIRST_LOOK_S: Final = 0.002
LOOK_S_MAX: Final = 1.0

INFINITY: Final = float("inf")
_RUNNING, _ENDED, _DOOMED = range(3)


class Run:
    """One run: its leader, its deadlines, and whom this guardian has stopped of it."""

    __slots__ = (
        "foreign",
        "freeze_at",
        "is_frozen",
        "kill_at",
        "leader",
        "look_at",
        "pause_s",
        "run_id",
        "stage",
        "stopped",
    )

    def __init__(self, run_id: int, leader: Leader, freeze_at: float, kill_at: float) -> None:
        self.run_id = run_id
        self.leader = leader
        self.freeze_at = freeze_at
        self.kill_at = kill_at
        self.stage = _RUNNING
        self.is_frozen = False
        self.stopped: dict[Key, None] = {}
        self.foreign: set[Key] = set()  # orphans that it cannot have started
        self.look_at = 0.0  # when not running: the next look at what is left of it
        self.pause_s = FIRST_LOOK_S


_UNKNOWN: Final = Run(0, Leader(0, 0), INFINITY, INFINITY)
"""Owns what a child of the node may have started that is no run, or not yet."""


class Work:
    """All runs of one node, and what is done to them when their time has come."""

    def __init__(self, company: Company, own: set[int], say: Callable[[int, Run], None]) -> None:
        self.node = 0
        """The node's pid; 0 before it is started."""

        self.spared: set[int] = set()
        """Children of the guardian that are its own."""

        self.runs: dict[int, Run] = {}
        self._company = company
        # What leads no run: processes, groups and sessions.
        self._own = own | {0, 1, company.guardian}
        self._say = say
        self._over: list[Run] = []  # ended or doomed: what is left of them goes
        self._not_before = 0.0
        self._sweep_at = 0.0

    def watch(self, run_id: int, leader: Leader, freeze_at: float, kill_at: float) -> bool:
        """Take a run; False, and REFUSED is said, if it is none that can be guarded."""
        known = self.runs.get(run_id)
        if known is not None and (known.leader.pid, known.leader.start) == (
            leader.pid,
            leader.start,
        ):
            known.freeze_at, known.kill_at = freeze_at, kill_at
            return True
        run = Run(run_id, leader, freeze_at, kill_at)
        is_own = leader.pid in self._own or leader.pid == self.node
        if known is not None or is_own or len(self.runs) + len(self._over) >= RUNS_MAX:
            self._say(REFUSED, run)
            return False
        self.runs[run_id] = run
        return True

    def move(self, run_id: int, freeze_at: float, kill_at: float) -> None:
        """Move a run's deadlines. One that is over, or unknown, stays so."""
        run = self.runs.get(run_id)
        if run is not None:
            run.freeze_at, run.kill_at = freeze_at, kill_at

    def done(self, run_id: int, now: float) -> None:
        """Let a run end; what it left behind goes with the next sweep, then DONE is said."""
        run = self.runs.pop(run_id, None)
        if run is not None:
            if self._sweep_at <= now:  # one sweep for all that end meanwhile
                self._sweep_at = now + SWEEP_S
            self._end(run, _ENDED, self._sweep_at)

    def next_deadline(self) -> float:
        """Return when something is due next, in seconds of the clock; infinity for never. O(runs)."""
        due = INFINITY
        for run in self.runs.values():
            due = min(due, run.kill_at, INFINITY if run.is_frozen else run.freeze_at)
        for run in self._over:
            due = min(due, run.look_at)
        return max(due, self._not_before)

    def freeze_due(self, now: float) -> None:
        """Freeze every run whose time has passed, and those to be killed: this can be taken back."""
        late = [
            run
            for run in self.runs.values()
            if not run.is_frozen and min(run.freeze_at, run.kill_at) <= now
        ]
        self._guarded(now, late)

    def freeze_all(self, now: float) -> None:
        """Freeze every run, for as long as the guardian itself will be stopped."""
        self._guarded(now, [run for run in self.runs.values() if not run.is_frozen])

    def settle(self, now: float) -> None:
        """Thaw what was revived and kill what is over."""
        for run in list(self.runs.values()):
            if run.kill_at <= now:
                del self.runs[run.run_id]
                self._end(run, _DOOMED, now)
            elif (run.is_frozen or run.stopped) and run.freeze_at > now:
                self._thaw(run)
                if run.is_frozen:  # else only some of it was: nobody was told
                    run.is_frozen = False
                    self._say(THAWED, run)
        due = [run for run in self._over if run.look_at <= now]
        if due and now >= self._not_before:
            try:
                self._kill(due, now)
            except OSError:
                self._not_before = now + RETRY_S

    def _guarded(self, now: float, runs: list[Run]) -> None:
        if not runs or now < self._not_before:
            return
        try:
            is_complete = self._stop(runs)
        except OSError:  # no descriptor, no memory: the runs stay due
            self._not_before = now + RETRY_S
            return
        for run in runs:
            if is_complete:
                run.is_frozen = True
                self._say(FROZEN, run)

    def _stop(self, runs: list[Run]) -> bool:
        """Stop all processes of these runs; False if they forked faster than they were found."""
        wanted = set(runs)
        for _ in range(PASSES_MAX):
            is_fresh = False
            for process, owners in self._owned():
                for run in owners:
                    if run in wanted and process.key not in run.stopped and not process.is_dead:
                        is_fresh |= self._stop_one(process, run)
            if not is_fresh:
                return True
        return False

    def _stop_one(self, process: Process, run: Run) -> bool:
        if not process.is_stopped:
            run.stopped[process.key] = None
            return send(process.key, SIGSTOP)
        # Stopped under another run: held until both let go. By itself: none of ours to continue.
        if self._is_held(process.key, run):
            run.stopped[process.key] = None
        return False

    def _thaw(self, run: Run) -> None:
        for key in run.stopped:
            if not self._is_held(key, run):
                send(key, SIGCONT)
        run.stopped.clear()

    def _is_held(self, key: Key, run: Run) -> bool:
        return any(
            key in other.stopped for other in (*self.runs.values(), *self._over) if other is not run
        )

    def _end(self, run: Run, stage: int, look_at: float) -> None:
        run.stage, run.look_at = stage, look_at
        self._over.append(run)

    def _kill(self, due: list[Run], now: float) -> None:
        self._stop([run for run in due if run.stage == _DOOMED])
        alive: set[Run] = set()
        # Children before their parents: a stopped group that is orphaned would be continued.
        for process, owners in reversed(self._owned()):
            if not process.is_dead and _is_over(owners, now):
                send(process.key, SIGKILL)
                alive.update(owners)
        for run in due:
            if run in alive:
                run.look_at = now + run.pause_s
                run.pause_s = min(2 * run.pause_s, LOOK_S_MAX)
            else:
                self._over.remove(run)
                self._thaw(run)  # what it held and may be another's
                self._say(KILLED if run.stage == _DOOMED else DONE, run)

    def find(self) -> list[Process]:
        """Return the node and all its work, parents first. Raises OSError."""
        processes = survey()
        return self._find(processes, self._leaders(processes))

    def _find(self, processes: dict[int, Process], leaders: dict[int, Run]) -> list[Process]:
        tree = below((self._company.guardian,), processes)
        return self._company.pick(tree, {self.node, *self.spared}, leaders)

    def _leaders(self, processes: dict[int, Process]) -> dict[int, Run]:
        runs = (*self._over, *self.runs.values())
        return {run.leader.pid: run for run in runs if _is_led(run, processes)}

    def _owned(self) -> list[tuple[Process, tuple[Run, ...]]]:
        """Return the node and all its work with the runs that each is of, parents first."""
        processes = survey()
        runs = (*self._over, *self.runs.values())
        leaders = self._leaders(processes)
        owners: dict[int, tuple[Run, ...]] = {}
        tree = self._find(processes, leaders)
        for run in runs:
            if run.foreign:
                run.foreign.intersection_update([process.key for process in tree])
        # The node's screen is in the guardian's own group, and starts nothing.
        starters = [
            process.start
            for process in tree
            if process.parent == self.node
            and process.pid not in leaders
            and process.group not in self._own
        ]
        for process in tree:
            led = (
                leaders.get(process.pid)
                or leaders.get(process.group)
                or leaders.get(process.session)
            )
            if process.pid == self.node or process.pid in self.spared:
                owners[process.pid] = ()
            elif led is not None and process.start >= led.leader.start:
                owners[process.pid] = (led,)
            elif process.parent not in owners:  # an orphan
                owners[process.pid] = tuple(
                    run
                    for run in runs
                    if process.key in run.stopped or _may_have_started(run, process, processes)
                ) + ((_UNKNOWN,) if any(start <= process.start for start in starters) else ())
            else:
                owners[process.pid] = owners[process.parent]
        return [(process, owners[process.pid]) for process in tree]


def _is_led(run: Run, processes: dict[int, Process]) -> bool:
    """Say whether the group of this id is the run's: its leader leads it, or nobody does any more."""
    leader = processes.get(run.leader.pid)
    return leader is None or leader.start == run.leader.start


def _may_have_started(run: Run, orphan: Process, processes: dict[int, Process]) -> bool:
    if orphan.start < run.leader.start or orphan.key in run.foreign:
        return False
    leader = processes.get(run.leader.pid)
    if leader is None or leader.start != run.leader.start or leader.is_dead:
        return True
    if run.leader.keeps_orphans:
        run.foreign.add(
            orphan.key
        )  # remembered: when the leader is killed, nothing shows it any more
    return not run.leader.keeps_orphans


def _is_over(owners: tuple[Run, ...], now: float) -> bool:
    """Say whether a process is to be killed: one owner lost it, or all have ended and had their time."""
    if any(run.stage == _DOOMED for run in owners):
        return True
    return bool(owners) and all(run.stage == _ENDED and run.look_at <= now for run in owners)
