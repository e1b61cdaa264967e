"""How soon whole nodes begin a task: where the write that creates it names its owner, sooner than by offer and claim."""

from __future__ import annotations

from mesh.core.ballot import BALLOT_BYTES, Ballot
from mesh.node.config import profile
from mesh.node.node import Node
from mesh.sim.fleet import Fleet, FleetOptions
from mesh.sim.network import Conditions, Network
from mesh.sim.runs import Act, Behaviour, Run
from mesh.sim.world import World
from mesh.tasks.commands import New, Submit
from mesh.wire.work_messages import Spec

DELAY_S = 0.01
SEATED_S = 8.0
"""By then three of them vote, and have stood still for a while."""


class Three:
    """Three voters, and when each task began."""

    def __init__(self) -> None:
        network = Network(1, Conditions(delay_s=DELAY_S, jitter_s=0.0))
        self.world = World(1, Node, network, workload=lambda _host, _start: Behaviour(0.01))
        fleet = Fleet(self.world, profile("local"), FleetOptions(profile="local"))
        for _ in range(3):
            fleet.boot(fleet.add())
        self.begun: list[tuple[float, Run]] = []
        self.world.runs.watchers.append(self._see)
        self.world.run_for(SEATED_S)

    def _see(self, run: Run, act: Act) -> None:
        if act is Act.START:
            self.begun.append((self.world.loop.now_s, run))

    def pick_up(self, at: int, task_id: str) -> tuple[float, Ballot]:
        """Submit a task at a node at rest; return how long it took to begin, and its token."""
        began_s = self.world.loop.now_s
        self.begun.clear()
        command = Submit(int(began_s * 1e6), New(Spec(task_id=task_id, argv=("work",))))
        self.world.command(self.world.hosts[at], command)
        self.world.run_for(2.0)
        ((begun_s, run),) = self.begun
        token = int(run.command.env["MESH_TOKEN"])
        return begun_s - began_s, Ballot.unpack(token.to_bytes(BALLOT_BYTES, "big"))


def test_what_is_submitted_at_a_voter_begins_after_three_messages_in_a_row_at_most() -> None:
    three = Three()
    for number in range(12):
        took_s, token = three.pick_up(number % 3, "")
        assert token.n == 0, "its creation named who ran it"
        assert took_s < 4 * DELAY_S, "creation and word, renewal, its answer; and two commits"


def test_what_has_an_id_of_its_own_is_offered_and_claimed() -> None:
    three = Three()
    for number in range(6):
        took_s, token = three.pick_up(number % 3, f"task{number}")
        assert token.n > 0
        assert took_s >= 4 * DELAY_S
