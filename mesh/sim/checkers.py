"""What must hold, judged from outside: views, events and counters, never a node's inside.

`Convergence` is invariant 9 once faults have stopped; `Safety` and `Accusations` hold at every moment.
(Invariant 10 is in `mesh.sim.garbage`.) Each takes plain values, so that a test can hand it a history
with a planted violation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mesh.core.events import EventKind
from mesh.core.limits import RECALLED_MAX
from mesh.node.config import SwimConfig
from mesh.node.view import View
from mesh.sim.census import Census, Identity
from mesh.sim.host import Host
from mesh.sim.world import Observed, World

_REMEMBERED_EACH: Final = 4
_ASKED_MAX: Final = 192
"""Entries of a snapshot for each host: one that lost its disk is another member. Of a large mesh, so many are
asked at most until one answers."""

_ORDER: Final = {"alive": 0, "suspect": 1, "dead": 2, "left": 3}


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that must never be: which invariant, where, about whom."""

    invariant: str  # "9a" to "9f", "10", "safety", "crash"
    at_s: float
    observer: str
    member: str  # a name, "" if it is about no member
    text: str

    def __str__(self) -> str:
        """Return one line for people."""
        about = f" about {self.member}" if self.member else ""
        return (
            f"invariant {self.invariant} at {self.at_s:.3f} s, {self.observer}{about}: {self.text}"
        )


def verdict_window_s(swim: SwimConfig, members: int) -> float:
    """Return how long after its last trouble a member may still be declared dead because of it.

    One probe under way, the suspicion that follows, the time its news takes to get round (a period per
    tenfold of members, and two more), and a second suspicion: one that is passed on just before it
    ends begins anew at whom it reaches.
    """
    spread_s = (2 + math.log10(max(1, members))) * swim.probe_interval_s
    return swim.probe_interval_s + 2 * swim.suspicion_s(members) + spread_s


def settle_bound_s(swim: SwimConfig, members: int, seeds: int) -> float:
    """Return how soon after the last fault all views are equal, at the latest.

    The sum of what may have to happen one after the other:

    - find a member that died just now: somebody probes it within min(2 n, 12) periods
      (nobody does for k periods with probability below e^-k), then `verdict_window_s`;
    - reach one that was falsely declared dead: each of the dead is tried about once in
      `reconnect_interval_s`; 12 of them, and one exchange that times out;
    - a node that seeks: two rounds through its seeds, each of which may time out, and one through all
      that it remembers, sixteen at a time;
    - what gossip did not carry to all: 3 rounds of anti-entropy.

    All of it by clocks that may be 1 % slow.
    """
    detect_s = min(2 * members, 12) * swim.probe_interval_s + verdict_window_s(swim, members)
    reconnect_s = 12 * swim.reconnect_interval_s + swim.exchange_timeout_s
    seek_s = 2 * (swim.join_retry_s + max(1, seeds) * swim.exchange_timeout_s)
    rounds = math.ceil(min(_REMEMBERED_EACH * members, _ASKED_MAX) / RECALLED_MAX)
    seek_s += rounds * (1.25 * swim.join_retry_s + swim.exchange_timeout_s)
    spread_s = 3 * (swim.sync_interval_s + swim.exchange_timeout_s)
    return 1.02 * (detect_s + reconnect_s + seek_s + spread_s)


class Convergence:
    """Invariant 9: after the faults, every view shows exactly the living, alive, under their last boots."""

    def __init__(self, census: Census) -> None:
        self._census = census

    def differences(self, at_s: float, views: Mapping[str, View]) -> list[Violation]:
        """Return where the views of the living (by host's name) differ from the truth; none: converged."""
        found: list[Violation] = []
        running = [identity for identity in self._census.identities() if identity.is_running]
        own: dict[str, dict[str, Any]] = {
            view.node["node_id"]: view.node for view in views.values()
        }
        meshes = sorted({view.node["mesh_id"] for view in views.values()})
        if len(meshes) > 1:
            text = f"one mesh is expected, found {len(meshes)}: {', '.join(meshes)}"
            found.append(Violation("9a", at_s, "everybody", "", text))
        for observer, view in views.items():
            if view.node["phase"] != "member":
                text = f"phase member is expected, found {view.node['phase']}"
                found.append(Violation("9a", at_s, observer, observer, text))
            seen = {member["node_id"]: member for member in view.members}
            for identity in running:
                key = f"{identity.node_id:016x}"
                text = _compare(identity, seen.pop(key, None), own.get(key))
                if text:
                    rule = "9b" if "found dead" in text else "9a"
                    found.append(Violation(rule, at_s, observer, identity.name, text))
            for member in seen.values():
                if member["state"] in {"alive", "suspect"}:
                    text = f"it does not run, found {member['state']}"
                    found.append(Violation("9a", at_s, observer, member["name"], text))
        return found


def _compare(identity: Identity, seen: dict[str, Any] | None, own: dict[str, Any] | None) -> str:
    """Return how a view's entry differs from the truth about one who runs; "" if it does not."""
    if seen is None:
        return "it runs, found no such member"
    if seen["state"] != "alive":
        return f"it runs, found {seen['state']} ({seen['cause'] or 'no cause'})"
    if seen["boot"] != identity.boot:
        return f"boot {identity.boot} is expected, found {seen['boot']}"
    address = str(identity.host.spec.address)
    if seen["address"] != address:
        return f"address {address} is expected, found {seen['address']}"
    if own is not None and seen["incarnation"] != own["incarnation"]:
        return f"incarnation {own['incarnation']} is expected, found {seen['incarnation']}"
    return ""


class Safety:
    """At every moment: nobody who never was, nothing that goes back within one observer's session.

    What is known of a member is ordered by boot, incarnation and state (alive, suspect, dead, left);
    no input may take an observer back in that order. One that somebody saw gone `lasts_s` ago, the shortest
    time for which anybody gone is remembered, may be met again as if for the first time.
    """

    def __init__(self, census: Census, lasts_s: float = math.inf) -> None:
        self._census = census
        self._lasts_s = lasts_s
        self._last: dict[tuple[int, int, str], tuple[int, int, int]] = {}
        self._gone_s: dict[
            tuple[str, int], float
        ] = {}  # by member and boot: when it was first seen gone

    def observe(self, at_s: float, host: Host, view: View) -> list[Violation]:
        """Judge one view against the earlier ones of the same session."""
        found: list[Violation] = []
        observer = host.spec.name
        self._forget(at_s, host, view)
        for member in view.members:
            identity = self._census.identity(member["node_id"])
            if identity is None or member["boot"] not in identity.boots:
                text = f"node {member['node_id']} with boot {member['boot']} never existed"
                found.append(Violation("safety", at_s, observer, member["name"], text))
                continue
            rank = (member["boot"], member["incarnation"], _ORDER[member["state"]])
            key = (host.index, host.session, member["node_id"])
            last = self._last.get(key)
            if last is not None and rank < last and not self._may_be_forgotten(at_s, key, last):
                text = f"(boot, incarnation, state) went back from {last} to {rank}"
                found.append(Violation("safety", at_s, observer, member["name"], text))
            self._last[key] = rank
            if rank[2] >= _ORDER["dead"]:
                self._gone_s.setdefault((key[2], rank[0]), at_s)
        return found

    def _forget(self, at_s: float, host: Host, view: View) -> None:
        """Forget of an observer's members those that it may have forgotten itself."""
        if self._lasts_s == math.inf:
            return
        seen = {member["node_id"] for member in view.members}
        mine = [key for key in self._last if key[:2] == (host.index, host.session)]
        for key in mine:
            if key[2] not in seen:
                self._gone_s.setdefault((key[2], self._last[key][0]), at_s)
                if self._is_old(at_s, key):
                    del self._last[key]

    def _may_be_forgotten(
        self, at_s: float, key: tuple[int, int, str], last: tuple[int, int, int]
    ) -> bool:
        """Say whether somebody gone may have been forgotten, and met again, since the last look."""
        return last[2] >= _ORDER["dead"] and self._is_old(at_s, key)

    def _is_old(self, at_s: float, key: tuple[int, int, str]) -> bool:
        gone_s = self._gone_s.get((key[2], self._last[key][0]), math.inf)
        return at_s - gone_s >= self._lasts_s


class Accusations:
    """Counts dead verdicts on nodes that were up, unpaused and connected all the while, as was the observer.

    In a mesh without any fault or loss for `verdict_window_s` such a verdict is a violation; under loss
    it is only counted.
    """

    def __init__(self, world: World, swim: SwimConfig) -> None:
        self.count = 0
        self.violations: list[Violation] = []
        self._world = world
        self._swim = swim
        world.watchers.append(self.observe)

    def observe(self, observed: Observed) -> None:
        """Judge one event."""
        event = observed.event
        if event.kind is not EventKind.DEAD or event.member_id is None:
            return
        identity = self._world.census.identity(event.member_id)
        if identity is None or not identity.is_running:
            return
        host = identity.host
        window_s = verdict_window_s(self._swim, len(self._world.hosts))
        since_s = observed.at_s - window_s
        if not (_was_fine(host, since_s) and _was_fine(observed.observer, since_s)):
            return
        self.count += 1
        if self._world.network.conditions.loss_ratio == 0 and _all_fine(self._world.hosts, since_s):
            text = f"declared dead ({event.cause}) though no fault was near for {window_s:.1f} s"
            self.violations.append(
                Violation("9b", observed.at_s, observed.observer.spec.name, identity.name, text)
            )


def _was_fine(host: Host, since_s: float) -> bool:
    return host.is_clean and host.clean_since_s <= since_s and host.started_s <= since_s


def _all_fine(hosts: Iterable[Host], since_s: float) -> bool:
    """Say whether no host was in trouble since; one that is off for good is no trouble to others."""
    return all(host.is_clean and host.clean_since_s <= since_s for host in hosts)
