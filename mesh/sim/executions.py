"""What must never be seen of a task's runs, whatever becomes of their hosts: two owners of one task.

    two processes that make progress at one true time   ─┐
    one attempt that is started twice                    ├─► blamed
    a token that is not above those of the runs before  ─┘

It sees processes alone: when they start, rest, go on and end, and the token and attempt in their environment.
Never the machines' insides, so no machine's mistake hides itself.

Source: our own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mesh.core.ids import NodeId
from mesh.sim.runs import Act, Run
from mesh.sim.world import World


@dataclass(slots=True, eq=False)
class Execution:
    """One process of a task, somewhere."""

    task_id: str
    node: NodeId
    token: int
    attempt: int
    exit_code: int | None = None
    is_executing: bool = False


class Executions:
    """All runs of all tasks; `blame` gets a task's id, and a sentence for each thing of it that must not be."""

    def __init__(self, blame: Callable[[str, str], object]) -> None:
        self.starts: dict[str, list[Execution]] = {}
        """Every run that was started, by task, in their order."""

        self._blame = blame

    def started(self, execution: Execution) -> None:
        """Take that a process was started."""
        task_id = execution.task_id
        earlier = self.starts.setdefault(task_id, [])
        for other in earlier:
            if execution.token <= other.token:
                self._blame(task_id, f"the token of {execution} is not above that of {other}")
            if execution.attempt == other.attempt:
                self._blame(task_id, f"one attempt was started twice: {execution}, {other}")
        earlier.append(execution)

    def executes(self, execution: Execution) -> None:
        """Take that a process goes on from now on."""
        execution.is_executing = True
        for other in self.starts[execution.task_id]:
            if other is not execution and other.is_executing:
                self._blame(execution.task_id, f"two run at once: {execution}, {other}")

    def rests(self, execution: Execution) -> None:
        """Take that a process is frozen, or has ended."""
        execution.is_executing = False


class OwnersChecker:
    """Watches a world's processes for two owners of one task."""

    def __init__(self, world: World) -> None:
        self.faults: dict[str, str] = {}
        """The first thing that was wrong with each task that something was wrong with, by its id."""

        self._executions = Executions(self.faults.setdefault)
        self._known: dict[Run, Execution] = {}
        world.runs.watchers.append(self._see)

    @property
    def starts(self) -> dict[str, list[Execution]]:
        """Every run that was started, by task, in their order."""
        return self._executions.starts

    def _see(self, run: Run, act: Act) -> None:
        if act is Act.START:
            env = run.command.env
            self._known[run] = Execution(
                env["MESH_TASK_ID"],
                run.host.node_id,
                int(env["MESH_TOKEN"]),
                int(env["MESH_ATTEMPT"]),
            )
            self._executions.started(self._known[run])
        execution = self._known[run]
        if act in {Act.START, Act.GO_ON}:
            self._executions.executes(execution)
            return
        self._executions.rests(execution)
        if act is Act.END:
            execution.exit_code = run.exit_code
            del self._known[run]
