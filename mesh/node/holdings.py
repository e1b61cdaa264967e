"""What the tasks and registers of one session are built of, what was kept of those before, and what is seen of them.

    kept: records, numbers ──► voter ──► succession, keeping ──► desk ──► tasks ──► slots, view, voters

What happens to them is `mesh.node.work`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mesh.core.address import Address
from mesh.core.ids import NodeId
from mesh.core.rng import stream
from mesh.core.stored import Kept
from mesh.node.config import NodeConfig
from mesh.registers import outbox
from mesh.registers.asker import SET_ASIDE
from mesh.registers.desk import Desk
from mesh.registers.numbers import Numbers
from mesh.registers.stored import from_stored
from mesh.registers.succession import Succession
from mesh.registers.voter import Voter
from mesh.tasks.config import TasksConfig
from mesh.tasks.contests_view import contests_view
from mesh.tasks.quorum import away, parting, standstill
from mesh.tasks.retention import TaskKeeping, expiring
from mesh.tasks.surroundings import Surroundings
from mesh.tasks.tasks import Tasks

DOMAIN: Final = 0
"""Of all ballots of a mesh that keeps its registers itself."""

INSTALLED: Final = "installed"
SEALED: Final = "sealed"
"""The last epoch that this node has voted in, and the last that it has sealed; as the store's numbers."""

MUTED: Final = "muted"
"""1 from when a session has found out that its disk is older than what the mesh remembers; so for all sessions after it."""

SHOWN_MAX: Final = 500


class Holdings:
    """The machines of one session, and what is seen of them."""

    def __init__(
        self,
        config: NodeConfig,
        *,
        around: Surroundings,
        address_of: Callable[[NodeId], Address | None],
        seed: int,
        kept: Kept,
    ) -> None:
        """Read what was kept.

        Raises:
            DecodeError: a record is none that this version can read.
        """
        self.counters: dict[str, int] = {}
        self._lacks: str | None = None
        """What the store lacks for more; None: nothing. Then requests that would have to be stored are dropped."""

        self._config = config
        self._card = around.card
        self._view = around.view
        self._around = around
        self._address_of = address_of
        self._seed = seed
        self._records = dict(map(from_stored, kept.records))
        self._numbers = dict(kept.numbers)
        self._is_muted = bool(self._numbers.get(MUTED))
        self._now = float("-inf")
        self._note_at: float | None = None
        self._due: float | None = None  # when the tasks have something due, while `_is_due_known`
        self._is_due_known = False
        self._has_noted = False
        self.is_listened_to = False
        """Whether some voter wants to be told of this node's slots and load, whenever they change."""

    def _build(self, now: float) -> None:
        """Build the machines of what was kept."""
        config, own_id = self._config, self._config.node_id
        installed, sealed = self._numbers.get(INSTALLED, 0), self._numbers.get(SEALED, 0)
        voter = Voter(
            own_id,
            config.leases,
            epoch=installed if installed > sealed else 0,
            sealed=sealed,
            now=now,
            records=self._records.items(),
            purged_n=self._numbers.get(outbox.PURGED, 0),
        )
        self._records = {}  # the voter's from here on
        self._succession = Succession(
            own_id, voter, config.pace, stream(self._seed, "succession"), now
        )
        self._desk = Desk(
            own_id=own_id,
            boot=config.boot,
            domain=DOMAIN,
            times=config.leases,
            numbers=Numbers(self._numbers.get(SET_ASIDE, 0)),
            rng=stream(self._seed, "desk"),
            voter=voter,
            roster=self._succession.roster,
        )
        self._desk.succession = self._succession
        self._desk.keeping = self._keeping = TaskKeeping(
            own_id,
            voter=voter,
            roster=self._succession.roster,
            times=config.upkeep,
            expires=expiring(config.unix_offset_s),
            rng=stream(self._seed, "keeping"),
            now=now,
        )
        self._roster = self._desk.roster
        self._tasks = Tasks(
            desk=self._desk,
            around=self._around,
            rng=stream(self._seed, "tasks"),
            unix_offset_s=config.unix_offset_s,
            config=TasksConfig(),
            claim_for_s=config.leases.doubt_s,
            now=now,
        )

    def next_timeout(self) -> float | None:
        """Return when `handle_timeout` has something to do, or None."""
        # Asked after every input of the node, most of which are none of ours.
        if not self._is_due_known:
            self._due, self._is_due_known = self._tasks.next_timeout(), True
        if self._due is None or (self._note_at is not None and self._note_at < self._due):
            return self._note_at
        return self._due

    def take_watch(self, watcher_id: int) -> tuple[list[tuple[int, bytes]], dict[str, Any] | None]:
        """Take what there is for whoever follows a task; see `Tasks.take_watch`."""
        self._is_due_known = False
        return self._tasks.take_watch(watcher_id)

    @property
    def used(self) -> int:
        """Slots that are reserved, or held by runs whose verdict is not settled; a muted node settles none."""
        return len(self.running) if self._is_muted else self._tasks.used

    @property
    def free_slots(self) -> int:
        """Slots that an offer could get; 0 once this node drains."""
        return 0 if self._is_muted else self._tasks.free_slots

    @property
    def running(self) -> list[dict[str, Any]]:
        """Runs whose process has not ended, JSON-ready."""
        running: list[dict[str, Any]] = self._tasks.view()["running"]
        return running

    def view(self) -> dict[str, Any]:
        """Return how many tasks this node votes on by state, what it runs, and what was given up for want of room.

        JSON-ready: `counts`, `running`, `counters`.
        """
        view = self._tasks.view()
        view["counters"]["purged_early"] = self._keeping.purged_early
        return view

    def newest(self) -> list[dict[str, Any]]:
        """Return the newest tasks that this node votes on, in short JSON, newest first."""
        return self._tasks.newest(SHOWN_MAX)

    def contests(self) -> dict[str, Any]:
        """Return what is seen of the contests that this node holds, JSON-ready; see `contests_view`."""
        return contests_view(self._tasks.calling, self._config.node_id, self._around.name_of)

    @property
    def voters(self) -> tuple[NodeId, ...]:
        """Who votes, as far as this node knows."""
        return () if self._roster is None else self._roster.voters

    def standstill(self) -> str:
        """Return why nothing can be stored; "" while enough voters are here, and for who is no member."""
        if self._view.get(self._config.node_id) is None:
            return ""
        gone = away(self.voters, self._view)
        return standstill(self.voters, gone, self._around.name_of) if gone else ""

    def describe(self) -> dict[str, Any]:
        """Return who votes, as far as this node knows, JSON-ready.

        `standstill`: why nothing can be stored; `parting`: what it means for the others if this node leaves. Each
        is "" if there is nothing to say.
        """
        roster, voters = self._desk.roster, self.voters
        gone = away(voters, self._view)
        has_part = len(self._view) > 1 and not self._is_muted
        own_id, name_of = self._config.node_id, self._around.name_of
        return {
            "epoch": roster.epoch if roster is not None else 0,
            "voters": sorted(map(name_of, voters)),
            "voters_alive": len(voters) - len(gone),
            "voters_away": sorted(map(name_of, gone)),
            "standstill": self.standstill(),
            "parting": parting(voters, gone, own_id, name_of) if has_part else "",
            "votes": bool(self._desk.voter.epoch) and not self._is_muted,
            "records": len(self._desk.voter),
        }

    def check_invariants(self) -> None:
        """Raise AssertionError if the machines contradict themselves or each other. O(tasks)."""
        assert not self._is_due_known or self._due == self._tasks.next_timeout(), self._due
        if not self._is_muted:
            self._tasks.check_invariants(self._now)
