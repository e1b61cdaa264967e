"""What is seen of whole nodes from outside: their processes, their disks, what they answer. A judge hears of all of it."""

from __future__ import annotations

from mesh.core.effects import Commit
from mesh.core.ids import NodeId
from mesh.node.holdings import INSTALLED
from mesh.registers.roster import FULL, ROSTERS, chosen_roster
from mesh.registers.stored import from_stored
from mesh.sim.executions import Execution
from mesh.sim.host import Host
from mesh.sim.runs import Act, Run
from mesh.sim.world import World
from tests.sim.tasks.judge import Judge


class Witness:
    """Watches a world for a judge."""

    def __init__(self, world: World, judge: Judge) -> None:
        self._judge = judge
        self._world = world
        self._executions: dict[Run, Execution] = {}
        self._voters: dict[int, int] = {1: 1}  # of each epoch; the first one is the founder's
        self.busy: dict[Run, None] = {}
        """What makes progress just now."""

        world.runs.watchers.append(self._see_run)
        world.disks.watchers.append(self._see_disk)

    def close(self) -> None:
        """Say which sessions run nothing any more."""
        for identity in self._world.census.identities():
            living = identity.boot if identity.is_running else None
            self._judge.over |= {(identity.node_id, b) for b in identity.boots if b != living}

    def _see_run(self, run: Run, act: Act) -> None:
        judge, env = self._judge, run.command.env
        if act is Act.START:
            self._executions[run] = execution = Execution(
                env["MESH_TASK_ID"],
                run.host.node_id,
                int(env["MESH_TOKEN"]),
                int(env["MESH_ATTEMPT"]),
            )
            judge.started(execution)
        execution = self._executions[run]
        if act in {Act.START, Act.GO_ON}:
            self.busy[run] = None
            judge.executes(execution)
            return
        self.busy.pop(run, None)
        judge.rests(execution)
        if act is Act.END:
            execution.exit_code = run.exit_code

    def _see_disk(self, host: Host, commit: Commit) -> None:
        for stored in commit.records:
            key, record = from_stored(stored)
            if key.startswith(ROSTERS):
                if record.value is not None:
                    roster = chosen_roster(record.value)
                    self._voters[roster.epoch] = min(FULL, len(roster.voters))
                continue
            # A ballot may be of an epoch before; who counts for a majority votes in this one.
            majority = self._voters[max(1, host.numbers.get(INSTALLED, 0))] // 2 + 1
            self._judge.committed(NodeId(host.node_id), key, record, majority)
