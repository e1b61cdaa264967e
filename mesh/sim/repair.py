"""After the faults: who was falsely held dead comes back in time, and a death that some know is known to all.

Each debt is one pair, an observer that is wrong and the member it is wrong about, with the time by which
it must be right. Convergence in the end is checked elsewhere; here is how soon each single error goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mesh.node.config import SwimConfig
from mesh.node.view import View
from mesh.sim.census import Census, Identity
from mesh.sim.checkers import Violation
from mesh.sim.host import Host

_CLOCKS: Final = 1.02
_NOTICE_PERIODS: Final = 8
"""A member is pinged about once a period: by nobody for so many with probability e^-8."""


def _slowed_periods(swim: SwimConfig) -> int:
    """Return how many periods a node at its worst health loses until it is healthy: 8 + 7 + ... + 1."""
    worst = swim.lifeguard.health_max
    return worst * (worst + 1) // 2


def return_bound_s(swim: SwimConfig, members: int, *, was_clean: bool = False) -> float:
    """Return how soon a living member is alive again for an observer whom it holds living.

    It pings the observer within a round of SWIM's probes, 2 n - 1 periods, the longer the worse its health was
    (`was_clean`: it was well); the ack carries the verdict, and the refutation needs a moment to get
    round, and as long again if it was lost in a queue. By turns it may never ping that one; there views
    that differ show in the observer's own next pings, and the death is told, and refuted, sooner.
    """
    slowed = 0 if was_clean else _slowed_periods(swim)
    periods = 2 * members - 1 + slowed
    return _CLOCKS * (periods * swim.probe_interval_s + 2 * swim.moment_s(members))


def death_bound_s(swim: SwimConfig, members: int, *, was_clean: bool = False) -> float:
    """Return how soon an observer whom the others hold alive knows of a death that most of them know.

    A ping shows the difference within 8 periods and an exchange tells it, as a suspicion; that may last
    its longest time; news of it takes a moment.
    """
    slowed = 0 if was_clean else _slowed_periods(swim)
    periods = _NOTICE_PERIODS + slowed
    wait_s = swim.longest_suspicion_s(members)
    return _CLOCKS * (periods * swim.probe_interval_s + wait_s + 2 * swim.moment_s(members))


@dataclass(frozen=True, slots=True)
class _Debt:
    observer: Host
    session: int
    identity: Identity
    due_s: float
    rule: str
    text: str


class Repair:
    """The debts of a mesh, from one moment on."""

    def __init__(self, census: Census, swim: SwimConfig) -> None:
        self._census = census
        self._swim = swim
        self._debts: list[_Debt] = []

    def __len__(self) -> int:
        return len(self._debts)

    def begin(
        self, now_s: float, hosts: list[Host], views: Mapping[str, View], *, was_clean: bool = False
    ) -> None:
        """Note every error in the views (by host's name), now that nothing is in the way any more."""
        seen = {name: {m["node_id"]: m for m in view.members} for name, view in views.items()}
        observers = [host for host in hosts if host.spec.name in views]
        size = len(observers)
        back_s = now_s + return_bound_s(self._swim, size, was_clean=was_clean)
        known_s = now_s + death_bound_s(self._swim, size, was_clean=was_clean)
        for host in observers:
            for identity in self._census.identities():
                entry = seen[host.spec.name].get(f"{identity.node_id:016x}")
                if entry is None or entry["boot"] != identity.boot:
                    continue
                if identity.is_running and entry["state"] == "dead":
                    theirs = seen.get(identity.host.spec.name, {}).get(f"{host.node_id:016x}")
                    if theirs is not None and theirs["state"] in {"alive", "suspect"}:
                        text = "it runs and knows this observer, found dead still"
                        self._owe(host, identity, back_s, ("9d", text))
                elif (
                    not identity.is_running
                    and entry["state"] in {"alive", "suspect"}
                    and self._is_known(host, identity, seen)
                ):
                    text = "most know that it died, found living still"
                    self._owe(host, identity, known_s, ("9e", text))

    def _is_known(
        self, observer: Host, identity: Identity, seen: Mapping[str, Mapping[str, dict[str, Any]]]
    ) -> bool:
        """Say whether all others hold the observer alive, and most of them the member dead or gone."""
        key, own = f"{identity.node_id:016x}", f"{observer.node_id:016x}"
        others = [view for name, view in seen.items() if name != observer.spec.name]
        is_heard = all(view.get(own, {}).get("state") == "alive" for view in others)
        knowing = sum(view.get(key, {}).get("state") in {"dead", "left"} for view in others)
        return is_heard and 2 * knowing > len(others)

    def _owe(self, host: Host, identity: Identity, due_s: float, rule: tuple[str, str]) -> None:
        self._debts.append(_Debt(host, host.session, identity, due_s, *rule))

    def collect(self, now_s: float) -> list[Violation]:
        """Look at the debts that are due; return those that were not paid."""
        due = [debt for debt in self._debts if debt.due_s <= now_s]
        if not due:
            return []
        self._debts = [debt for debt in self._debts if debt.due_s > now_s]
        return [violation for debt in due if (violation := self._look(now_s, debt)) is not None]

    def _look(self, now_s: float, debt: _Debt) -> Violation | None:
        host, identity = debt.observer, debt.identity
        if host.node is None or host.session != debt.session or not host.takes_messages:
            return None
        if identity.is_running != (debt.rule == "9d"):
            return None  # the truth has changed meanwhile
        key = f"{identity.node_id:016x}"
        view = host.node.view(host.clock.read(now_s))
        states = [member["state"] for member in view.members if member["node_id"] == key]
        wrong = {"dead"} if debt.rule == "9d" else {"alive", "suspect"}
        if not wrong.intersection(states):
            return None
        return Violation(debt.rule, now_s, host.spec.name, identity.name, debt.text)
