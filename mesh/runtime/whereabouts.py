"""Whether this host still has the address that its node has told the others.

A node that is bound to all addresses tells one of them. A host may lose that one while the node runs: a lease
ends, a cable goes elsewhere. The sockets do not mind, but the others go on sending to where nobody is. So
this looks again, with a question to the kernel's routing table, whenever the node is awake anyway:

    the address is the host's no more   ► another that the host sends from to the members
    the node is suspected, or alone,
    and it sends to no member from it   ► the same: the address is there, but on the wrong side

An address that works is never left for another, however the kernel routes. What the user named is kept as
it is (it may stand outside, behind a translation of addresses), and so is an address that was bound alone.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from mesh.core.address import Address, is_loopback, numeric_host, split_host_port
from mesh.core.events import Event, EventKind
from mesh.core.ids import NodeId
from mesh.errors import ConfigError
from mesh.runtime.endpoint import advertised_address, source_towards
from mesh.runtime.reach import Reach
from mesh.runtime.settings import AgentSettings

MEMBERS_MAX: Final = 8
"""So many members are looked at to find out which address faces them."""

_LIVING: Final = frozenset({"alive", "suspect"})
_TROUBLES: Final = frozenset({EventKind.REFUTE, EventKind.SEEK})


class Whereabouts:
    """Knows where the node says it is. `look` is cheap while that is right, some microseconds."""

    def __init__(
        self,
        advertised: Address,
        bound: Address,
        *,
        settings: AgentSettings,
        reach: Reach,
        node_id: NodeId,
        members: Callable[[], list[dict[str, Any]]],
    ) -> None:
        self._at = advertised
        self._bound = bound
        self._is_fixed = settings.advertise is not None or not _is_unspecified(bound.host)
        # A name is not looked up here: that may take long, and others wait meanwhile.
        hosts = (split_host_port(seed)[0] for seed in settings.seeds)
        self._seeds = tuple(host for host in hosts if numeric_host(host) is not None)
        self._reach = reach
        self._node_id = node_id
        self._members = members
        self._is_doubted = False

    def note(self, event: Event) -> None:
        """Hear what happened to the node: one that had to refute something, or hears nobody, may be elsewhere."""
        if event.kind in _TROUBLES and event.member_id == self._node_id:
            self._is_doubted = True

    def look(self) -> Address | None:
        """Return the address to tell from now on, if it is another than before."""
        if self._is_fixed:
            return None
        is_mine = is_loopback(self._at.host) or source_towards(self._at.host) == self._at.host
        if is_mine and not self._is_doubted:
            return None
        self._is_doubted = False
        facing = self._facing()
        if not facing or (is_mine and self._at in facing):
            return None
        (best, _), *_ = facing.most_common(1)
        if best == self._at:
            return None
        self._at = best
        return best

    def _facing(self) -> Counter[Address]:
        """Return from which addresses this host sends to the members, and to how many of those looked at."""
        others = [row for row in self._members() if not row["self"]]
        living = [row for row in others if row["state"] in _LIVING]
        rows = [row for row in living or others if self._speaks_to(row["address"])]
        if not rows:
            return Counter(self._usable(None))
        sources = [source_towards(split_host_port(row["address"])[0]) for row in rows[:MEMBERS_MAX]]
        found: Counter[Address] = Counter()
        for host in sources:
            if host is not None and (not is_loopback(host) or is_loopback(self._at.host)):
                found.update(self._usable((host, 0)))
        return found

    def _speaks_to(self, address: str) -> bool:
        return ":" in self._bound.host or ":" not in split_host_port(address)[0]

    def _usable(self, wish: tuple[str, int] | None) -> tuple[Address, ...]:
        """Return the address to tell, by a wish or as at the start; none: that is no address to be told."""
        try:
            return (advertised_address(self._bound, wish, self._seeds, self._reach),)
        except ConfigError:
            return ()


def _is_unspecified(host: str) -> bool:
    return ipaddress.ip_address(host).is_unspecified
