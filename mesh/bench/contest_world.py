"""One simulated mesh that holds contests: tasks come one after the other, and an oracle knows who is fittest.

    warm-up ──► submit at a random member ──► its voter calls ──► bids ──► grant ──► process ──► the next task
                     │ the vitals of all members, several times in a one-way delay
                     └──────► the fitness of every member at the moment of the call: who should have won

Whole nodes and their real bytes on a simulated network; hosts have a background load that wanders, each its own, and
a lag of their loops. How a contest went is read from the view of whoever held it, as people see it; who owns a task, from processes.
The oracle reads what each member knows of itself, which is more than any other could know at that moment, and how far
each is from the caller; no task fails here, so no history tells anybody apart.

Source: our own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Final, NamedTuple, TypeAlias

from mesh.bench.contestant import BenchError
from mesh.contest.estimate import sent_score
from mesh.contest.fitness import DEFAULT_WEIGHTS, Circumstances, fitness
from mesh.core.effects import StartProcess
from mesh.core.rng import stream
from mesh.node.commands import SetLoad
from mesh.node.config import profile
from mesh.node.node import Node
from mesh.node.view import View
from mesh.placement.live_view import Wants
from mesh.queues.commands import SetQueue, ShowQueue
from mesh.queues.settings import Strategy
from mesh.sim.executions import OwnersChecker
from mesh.sim.fleet import Fleet, FleetOptions
from mesh.sim.host import Host
from mesh.sim.network import Conditions, Network
from mesh.sim.runs import Act, Behaviour, Run
from mesh.sim.world import World
from mesh.tasks.commands import New, Submit
from mesh.wire.contest_messages import SCORE_MAX
from mesh.wire.work_messages import Spec

QUEUE: Final = "contest"

LOAD_STEP_S: Final = 1.0
"""So often a host's load is read, as by a real node; each host at moments of its own."""

LOAD_STEP_PCT: Final = 6.0
LOAD_PULL: Final = 0.02
LOAD_MEAN_PCT: Final = 50.0
"""A load wanders by a normal step, and a little back to the mean: most of the time it lies between 20 and 80 %."""

LAGS_MS: Final = (0, 0, 0, 1, 2, 5, 20, 60)
"""How late loops run: of most hosts hardly; each has one of these for a while."""

LAG_STAYS: Final = 60
"""It has another one after so many steps of its load, in the mean."""

WARM: Final = "warm"
WARM_TASKS_MAX: Final = 60
_SETTLE_S: Final = 3.0
_ASK_PAUSE_S: Final = 0.01
_GATHER_EVERY: Final = 10  # contests; a view shows fifty
_SLICES: Final = 60
_COARSE: Final = 20  # times as long as a fine slice


class Setting(NamedTuple):
    """One mesh that is measured: its size, the name of its network (`NETWORKS`), and its loss (0 to 1)."""

    nodes: int
    network: str
    loss_ratio: float

    @property
    def conditions(self) -> Conditions:
        """What lies between the hosts."""
        kind = NETWORKS[self.network]
        return Conditions(delay_s=kind.delay_s, jitter_s=kind.jitter_s, loss_ratio=self.loss_ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of network, with the times that fit it. Seconds."""

    delay_s: float
    jitter_s: float
    """The mean of the exponential part of the one-way delay."""

    warm_s: float
    """Until the voters stand, and have measured round trips."""

    gap_s: float
    """From one task to the next."""

    runs_s: tuple[float, float]
    """How long a task runs, evenly between these."""


NETWORKS: Final[Mapping[str, Kind]] = {
    "lan": Kind(delay_s=0.0002, jitter_s=0.0001, warm_s=40.0, gap_s=0.3, runs_s=(0.2, 2.0)),
    "wan": Kind(delay_s=0.03, jitter_s=0.005, warm_s=90.0, gap_s=1.0, runs_s=(0.6, 6.0)),
}
"""By the profile's name: a switch between them, and half a continent."""

Vitals: TypeAlias = tuple[int, int, int]  # free slots, use in hundredths, lag in milliseconds
Scores: TypeAlias = tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contested:
    """One contest as it went, and as it should have gone. Members are numbers, from 0."""

    task_id: str
    caller: int
    called: tuple[int, ...]
    scores: Scores
    """The true fitness (0 to 1) of every member when it was called; None: it could not have taken the task."""

    bids: int
    """Those that a caller heard before the grant: at a loss some are missing here, the winner's too."""

    rounds: int
    is_first_window: bool
    winner: int | None
    """Whose process began, which is not before a majority has granted it the task; None: nobody's did."""

    grant_s: float | None
    """From the call until that process began, in true time."""

    late: int
    """Contests for the same that were held after the grant, by a voter that had not heard of it."""

    story: Mapping[str, Any]
    """What the caller's view told of it."""


class _Start(NamedTuple):
    """When a process began, in true time, and on which host."""

    at_s: float
    host: int


_Held: TypeAlias = tuple[int, float]
"""Which host held a contest, and when, in Unix time of its clock."""

Story: TypeAlias = dict[str, Any]
"""A contest as its caller's view tells it."""


class Timeline:
    """The vitals of all members in true time: of each, what they were from when to when. O(changes)."""

    def __init__(self) -> None:
        self._times: list[list[float]] = []
        self._vitals: list[list[Vitals]] = []

    def note(self, now_s: float, vitals: list[Vitals]) -> None:
        """Take what they are now."""
        for member, found in enumerate(vitals):
            if member == len(self._times):
                self._times.append([])
                self._vitals.append([])
            known = self._vitals[member]
            if not known or known[-1] != found:
                self._times[member].append(now_s)
                known.append(found)

    def at(self, at_s: float) -> list[Vitals]:
        """Return what they were; before the first note, what they were then."""
        return [
            known[max(0, bisect_right(times, at_s) - 1)]
            for times, known in zip(self._times, self._vitals, strict=True)
        ]


class ContestWorld:
    """A mesh, and all contests that were held in it since it was warm."""

    def __init__(self, seed: int, setting: Setting) -> None:
        self.setting = setting
        self._kind = NETWORKS[setting.network]
        self._rng = stream(seed, f"contest/{setting.nodes}/{setting.network}")
        network = Network(seed, setting.conditions)
        self.world = World(seed, Node, network, workload=self._behaviour)
        options = FleetOptions(clock_rate_error=1e-4, profile=setting.network)
        self._fleet = Fleet(self.world, profile(setting.network), options)
        self.owners = OwnersChecker(self.world)
        self.world.runs.watchers.append(self._see)
        self._loads: list[float] = []
        self._lags: list[int] = []
        self._commands = 0
        self._tasks: dict[str, float] = {}  # when each was submitted
        self._timeline = Timeline()
        self._starts: dict[tuple[str, int], _Start] = {}
        self._stories: dict[tuple[str, int], dict[_Held, Story]] = {}

    # What is done.

    def warm_up(self) -> None:
        """Start all, until they know each other as in a mesh that has held contests for a while.

        Raises:
            BenchError: a voter never held a contest.
        """
        world = self.world
        self._fleet.boot_acquainted(self.setting.nodes)
        for host in world.hosts:
            self._loads.append(self._rng.uniform(0, 100))
            self._lags.append(self._rng.choice(LAGS_MS))
            world.loop.schedule(self._rng.random() * LOAD_STEP_S, self._wander, host)
        self._run_for(self._kind.warm_s)
        self._command(SetQueue(self._next_command(), QUEUE, Strategy.CONTEST), world.hosts[0])
        self._run_for(_SETTLE_S)
        # In a mesh at work each has asked the voters for something before, and so knows who they are.
        for host in world.hosts:
            self._command(ShowQueue(self._next_command(), QUEUE), host)
            self._run_for(_ASK_PAUSE_S)
        self._run_for(_SETTLE_S)
        for number in range(WARM_TASKS_MAX):
            self._submit(f"{WARM}{number}")
            self._run_for(self._kind.gap_s)
            voters = self._voters()
            held = {host.spec.name: self._view(host).contests["held"] for host in voters}
            if len(held) > 1 and all(held.values()):
                break
        else:
            raise BenchError(
                f"each of several voters should have held a contest after {WARM_TASKS_MAX} tasks, found {held}"
            )
        # By then all have been asked for their vitals, and have answered, or have been asked again.
        self._run_for(_SETTLE_S)

    def hold(self, count: int) -> Iterator[int]:
        """Let so many tasks come, one after the other; yield after each how many there were."""
        for number in range(1, count + 1):
            at_s = self._submit(f"t{number}")
            slice_s = self._kind.delay_s / 4
            for _ in range(_SLICES):
                self._timeline.note(self.world.loop.now_s, self._vitals())
                self.world.run_for(slice_s)
            while self.world.loop.now_s < at_s + self._kind.gap_s:
                self._timeline.note(self.world.loop.now_s, self._vitals())
                self.world.run_for(_COARSE * slice_s)
            if number % _GATHER_EVERY == 0:
                self._gather()
            yield number
        self._run_for(_SETTLE_S)
        self._gather()

    # What is seen.

    def contests(self) -> list[Contested]:
        """Return how each contest went. Where several were held for one attempt of a task, they are one."""
        return [self._contested(*key, told) for key, told in self._stories.items()]

    def starts_s(self) -> list[float]:
        """Return how long each task took from its submission to its process, in seconds."""
        return [
            self._starts[task_id, 1].at_s - at_s
            for task_id, at_s in self._tasks.items()
            if (task_id, 1) in self._starts and not task_id.startswith(WARM)
        ]

    @property
    def two_owners(self) -> int:
        """How many tasks had two owners, in any way that shows: see `mesh.sim.executions`."""
        return len(self.owners.faults)

    # Inside.

    def _behaviour(self, _host: Host, _command: StartProcess) -> Behaviour:
        return Behaviour(self._rng.uniform(*self._kind.runs_s))

    def _see(self, run: Run, act: Act) -> None:
        if act is Act.START:
            env = run.command.env
            start = _Start(self.world.loop.now_s, run.host.index)
            self._starts.setdefault((env["MESH_TASK_ID"], int(env["MESH_ATTEMPT"])), start)

    def _wander(self, host: Host) -> None:
        load = self._loads[host.index]
        load += self._rng.gauss(0, LOAD_STEP_PCT) + LOAD_PULL * (LOAD_MEAN_PCT - load)
        self._loads[host.index] = load = min(100.0, max(0.0, load))
        if self._rng.random() < 1 / LAG_STAYS:
            self._lags[host.index] = self._rng.choice(LAGS_MS)
        self.world.command(host, SetLoad(round(load), lag_ms=self._lags[host.index]))
        self.world.loop.schedule(self.world.loop.now_s + LOAD_STEP_S, self._wander, host)

    def _run_for(self, duration_s: float) -> None:
        """Let time pass, and keep nothing of what only piles up."""
        world, end_s = self.world, self.world.loop.now_s + duration_s
        while world.loop.now_s < end_s:
            world.run_for(min(1.0, end_s - world.loop.now_s))
            world.events.clear()
            world.answers.clear()

    def _next_command(self) -> int:
        self._commands += 1
        return self._commands

    def _command(self, command: SetQueue | ShowQueue | Submit, host: Host) -> None:
        self.world.command(host, command)

    def _submit(self, task_id: str) -> float:
        """Submit a task at a random member; return when."""
        self.world.events.clear()
        self.world.answers.clear()
        at_s = self._tasks[task_id] = self.world.loop.now_s
        spec = Spec(task_id=task_id, argv=("work",), queue=QUEUE)
        self._command(Submit(self._next_command(), New(spec)), self._rng.choice(self.world.hosts))
        return at_s

    def _vitals(self) -> list[Vitals]:
        """Return what each member knows of itself just now."""
        found = []
        for host in self.world.hosts:
            assert isinstance(host.node, Node)
            vitals = host.node.identity.vitals
            found.append((vitals.free_slots, vitals.busy_pct, self._lags[host.index]))
        return found

    def _view(self, host: Host) -> View:
        assert host.node is not None
        return host.node.view(host.clock.read(self.world.loop.now_s))

    def _voters(self) -> list[Host]:
        view = self._view(self.world.hosts[0])
        return [self._host(name) for name in view.node["registers"]["voters"]]

    def _host(self, name: str) -> Host:
        return self.world.hosts[int(name.removeprefix("node-"))]

    def _gather(self) -> None:
        """Read the stories that are over from whoever holds contests."""
        for host in self._voters():
            for story in reversed(self._view(host).contests["latest"]):
                if story["task_id"] in self._tasks and not story["task_id"].startswith(WARM):
                    by = self._stories.setdefault((story["task_id"], story["attempt"]), {})
                    by[host.index, story["at"]] = story

    def _contested(self, task_id: str, attempt: int, told: dict[_Held, Story]) -> Contested:
        """Return the contest that began first; one that began before the grant was its part.

        What began after it are a voter's that had not heard of the grant: it finds the task taken.
        """
        start = self._starts.get((task_id, attempt))
        parts = sorted((self._true_s(host, at), host) for host, at in told)
        granted_s = inf if start is None else start.at_s
        bidders = {
            (said["member"], host, at_s)
            for (host, at), story in told.items()
            for said in story["said"]
            if said["score"] is not None and (at_s := self._true_s(host, at)) <= granted_s
        }
        (called_s, caller), story = parts[0], min(told.items(), key=lambda one: one[0][1])[1]
        return Contested(
            task_id=task_id,
            caller=caller,
            called=tuple(self._host(one["member"]).index for one in story["called"]),
            scores=self._scores(task_id, caller, self._timeline.at(called_s)),
            bids=len(bidders),
            rounds=story["rounds"],
            is_first_window=story["first_window"],
            winner=None if start is None else start.host,
            grant_s=None if start is None else start.at_s - called_s,
            late=sum(at_s > granted_s for at_s, _ in parts),
            story=story,
        )

    def _true_s(self, index: int, unix_s: float) -> float:
        host = self.world.hosts[index]
        assert host.node is not None
        return host.clock.true_time(unix_s - host.node.config.unix_offset_s)

    def _scores(self, task_id: str, caller: int, vitals: list[Vitals]) -> Scores:
        """Return what each member would have made of itself, and of how far it is from the caller."""
        wants, scores = Wants(key=task_id), []
        rtt_s = 2 * (self._kind.delay_s + self._kind.jitter_s)
        for host, (free_slots, busy_pct, lag_ms) in zip(self.world.hosts, vitals, strict=True):
            own = Circumstances(
                meta=host.spec.meta,
                free_slots=free_slots,
                busy_pct=busy_pct,
                lag_s=lag_ms / 1e3,
                history=1.0,
                rtt_s=0.0 if host.index == caller else rtt_s,
            )
            found = fitness(wants, own, DEFAULT_WEIGHTS)
            scores.append(None if found is None else sent_score(found.score) / SCORE_MAX)
        return tuple(scores)
