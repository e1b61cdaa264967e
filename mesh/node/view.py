"""What people and programs see: JSON-ready values, made when somebody asks.

The keys are part of the contract that programs rely on; more may be added, none goes away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mesh.core.ids import NO_MESH, format_id
from mesh.membership.member import Member
from mesh.membership.swim import Swim
from mesh.node.config import NodeConfig
from mesh.node.work import Work
from mesh.tasks.contests_view import no_contests
from mesh.wire.records import Cause, State

LISTED_DIGITS: Final = 4
"""So many digits of its id follow the name of a living member that shares it with another."""


@dataclass(frozen=True, slots=True)
class View:
    """This node, its members, and the tasks that it keeps and runs."""

    node: dict[str, Any]
    members: list[dict[str, Any]]
    newest: Callable[[], list[dict[str, Any]]] = field(compare=False)
    """Makes `tasks`: most who look at a view ask for none, and there may be hundreds."""

    task_counts: dict[str, int]
    running: list[dict[str, Any]]
    held: Callable[[], dict[str, Any]] = field(default=no_contests, compare=False)
    """Makes `contests`."""

    is_looking: bool = field(default=False, compare=False)
    """Whether members that were asked how busy they are may still answer soon."""

    @property
    def tasks(self) -> list[dict[str, Any]]:
        """The newest tasks that this node votes on; ask before anything else happens to the node. O(tasks shown)."""
        return self.newest()

    @property
    def contests(self) -> dict[str, Any]:
        """The contests that this node holds as a voter; ask at once, as for `tasks`. O(those shown).

        Keys: `held`, `won`, `bids_mean`, `success`, `window_ms`, `factor`, `advice`, and `latest`, the newest first,
        of each `task_id`, `attempt`, `at`, `under_way`, `called`, `said`, `winner`, `after_ms`, `rounds`,
        `first_window`, `window_ms`: see `mesh.tasks.contests_view`.
        """
        return self.held()


def build_view(
    *,
    config: NodeConfig,
    swim: Swim,
    work: Work,
    counters: Mapping[str, int],
    started_at: float,
    is_departing: bool,
    is_looking: bool = False,
) -> View:
    """Return the view as it is now. O(members)."""
    done = work.view()
    counted = {**counters, **done["counters"]}
    card = swim.identity.card
    mesh_id = swim.identity.mesh_id
    offset_s = config.unix_offset_s
    node = {
        "name": card.name,
        "node_id": format_id(card.node_id),
        "mesh_id": "" if mesh_id == NO_MESH else format_id(mesh_id),
        "address": str(card.address),
        "boot": card.boot,
        "incarnation": card.incarnation,
        "phase": "leaving" if is_departing else swim.phase,
        "version": card.meta.version,
        "availability": card.meta.availability.word,
        "slots": card.meta.slots,
        "used": work.used,
        "counters": {name: count for name, count in sorted(counted.items()) if count},
        "registers": work.describe(),
        "health": swim.awareness.score,
        "lifelines": {"kept": swim.lines.own.kept, "of_others": swim.lines.evidence.held},
        "since": started_at + offset_s,
    }
    own_vitals = (work.used, swim.identity.vitals.load_average_pct)
    known = [member for member in swim.table if member.state is not State.FORGOTTEN]
    if swim.table.get(card.node_id) is None:  # seeking: it knows of nobody but itself
        alone = Member(card, b"", card.boot, card.incarnation, State.ALIVE, Cause.NONE, started_at)
        known.append(alone)
    members = [
        _member(
            member,
            swim,
            offset_s=offset_s,
            own_vitals=own_vitals if member.node_id == card.node_id else None,
        )
        for member in known
    ]
    members.sort(key=lambda entry: (entry["name"], entry["node_id"]))
    return View(
        node,
        members,
        work.newest,
        done["counts"],
        done["running"],
        work.contests,
        is_looking=is_looking,
    )


def _member(
    member: Member, swim: Swim, *, offset_s: float, own_vitals: tuple[int, int] | None
) -> dict[str, Any]:
    meta = member.card.meta
    name = member.name
    if member.is_living and swim.rumours.names.is_shared(name):
        name = f"{name}~{format_id(member.node_id)[:LISTED_DIGITS]}"
    used: int | None = None
    load: float | None = None
    if own_vitals is not None:
        used, load = own_vitals[0], own_vitals[1] / 100
    elif member.vitals is not None:
        used = max(0, meta.slots - member.vitals.free_slots)
        load = member.vitals.load_average_pct / 100
    return {
        "name": name,
        "node_id": format_id(member.node_id),
        "address": str(member.address),
        "state": member.state.word,
        "cause": member.cause.word,
        "incarnation": member.spoken_incarnation,
        "boot": member.boot,
        "since": member.since + offset_s,
        "rtt_ms": None if member.rtt_s is None else round(member.rtt_s * 1000, 3),
        "slots": meta.slots,
        "used": used,
        "load": load,
        "pool": meta.pool,
        "class": meta.node_class,
        "queues": list(meta.queues),
        "availability": meta.availability.word,
        "availability_why": meta.why,
        "labels": dict(meta.labels),
        "version": meta.version,
        "suspected_by": _accusers(member, swim),
        "self": own_vitals is not None,
    }


def _accusers(member: Member, swim: Swim) -> list[str]:
    """Return the names of those who accuse a suspect, as far as this node heard, the first of them first."""
    suspected = swim.rumours.suspicions.get(member.node_id)
    return [] if suspected is None else [swim.rumours.name_of(one) for one in suspected.accusers]
