"""What befalls a network of five hosts, and how soon the mesh is one again afterwards.

Each scenario makes a site of its own, lets a fault act, takes it away, and gives no command: the mesh
has to come together by itself. "Healed" is when the last rule was removed, or when the last restarted
node had bound its ports.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from tests.net.ground import How
from tests.net.site import HOSTS, START_TIMEOUT_S, Site, SiteError
from tests.net.storm import Storm

HEALED_WITHIN_S = 5.0
HALVES = (HOSTS[:2], HOSTS[2:])
KEPT = HOSTS[2]
"""Who keeps its address when all others change theirs: no seed of anybody's."""

_seeds = itertools.count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How long things last: the short form is part of every check, the long one of the sweep."""

    profile: str
    fault_s: float
    refused_s: float
    long_cut_s: float
    loss_s: float
    lived_s: float
    """How long a mesh lives before it is restarted: members are noted on disk every ten seconds."""

    hold_s: float
    """How long the views must stay equal before the mesh counts as healed."""


SHORT = Form(
    profile="local",
    fault_s=10.0,
    refused_s=10.0,
    long_cut_s=10.0,
    loss_s=10.0,
    lived_s=12.0,
    hold_s=2.0,
)
LONG = Form(
    profile="lan",
    fault_s=30.0,
    refused_s=60.0,
    long_cut_s=120.0,
    loss_s=60.0,
    lived_s=15.0,
    hold_s=8.0,
)


class Outcome(NamedTuple):
    """How one run ended: with equal views, after so many seconds."""

    healed_s: float
    accused: int | None
    """How often a node held another for dead that it could reach; None where that was not counted."""


Scenario = Callable[[Form], Outcome]


def cut_in_silence(form: Form) -> Outcome:
    """Nothing passes between two and three hosts."""
    return _cut_between_halves(form, "DROP", form.fault_s)


def cut_with_refusals(form: Form) -> Outcome:
    """As above, and whoever tries is refused: a reset, or an unreachable port."""
    with Site(form.profile) as site:
        since_ns = time.time_ns()
        outcome = _cut_and_heal(site, form, "REJECT", form.refused_s)
        first: dict[tuple[str, str], str] = {}
        for event in site.events("dead", since_ns):
            first.setdefault((event["observer"], event["member"]), event["cause"])
        for half, other in (HALVES, HALVES[::-1]):
            across = {pair: first.get(pair) for pair in itertools.product(half, other)}
            assert set(across.values()) == {"crashed"}, f"{across}{site.story()}"
        return outcome


def long_cut(form: Form) -> Outcome:
    """A cut in silence, longer than every timeout."""
    return _cut_between_halves(form, "DROP", form.long_cut_s)


def cut_and_new_key(form: Form) -> Outcome:
    """While nothing passes between the halves, one takes a new key and seals with it."""
    with Site(form.profile) as site:
        since_ns = time.time_ns()
        began = time.monotonic()
        site.ground.cut(*HALVES, "DROP")
        site.wait_apart(HALVES, START_TIMEOUT_S)
        changed, behind = (half[0] for half in HALVES)
        site.command(changed, "key", "add")
        (new,) = set(site.keys(changed)) - set(site.keys(behind))
        assert site.command(changed, "key", "use", new) == 0
        time.sleep(max(0.0, form.fault_s - (time.monotonic() - began)))
        site.ground.heal()
        healed_s = site.wait_one(HEALED_WITHIN_S, form.hold_s)
        assert {site.keys(host)[0] for host in HOSTS} == {new}, f"keys differ{site.story()}"
        return Outcome(healed_s, _accused_by_own_half(site, since_ns))


def cut_one_way(form: Form) -> Outcome:
    """Three hosts hear two others no more, and are still heard by them."""
    with Site(form.profile) as site:
        since_ns = time.time_ns()
        site.ground.cut_one_way(*HALVES, "DROP")
        time.sleep(form.fault_s)
        assert site.events("suspect", since_ns), f"nobody noticed the cut{site.story()}"
        site.ground.heal()
        healed_s = site.wait_one(HEALED_WITHIN_S, form.hold_s)
        return Outcome(healed_s, _accused_by_own_half(site, since_ns))


def cut_between_two(form: Form) -> Outcome:
    """Two hosts do not hear each other, while the three others hear both."""
    with Site(form.profile) as site:
        since_ns = time.time_ns()
        site.ground.cut(HOSTS[:1], HOSTS[1:2], "DROP")
        time.sleep(form.fault_s)
        assert site.ground.dropped(HOSTS[0]) >= 5, "too little was cut"
        site.ground.heal()
        healed_s = site.wait_one(HEALED_WITHIN_S, form.hold_s)
        return Outcome(healed_s, len(site.events("dead", since_ns)))


def loss(form: Form) -> Outcome:
    """Of all packets that arrive anywhere, 30 % are lost."""
    with Site(form.profile) as site:
        since_ns = time.time_ns()
        site.ground.lose(0.3)
        time.sleep(form.loss_s)
        assert all(site.ground.dropped(host) >= form.loss_s / 2 for host in HOSTS), (
            "too little lost"
        )
        site.ground.heal()
        healed_s = site.wait_one(HEALED_WITHIN_S, form.hold_s)
        return Outcome(healed_s, len(site.events("dead", since_ns)))


def changed_address(form: Form) -> Outcome:
    """One host crashes and is back at once under another address; nobody tells it where the others are."""
    with Site(form.profile) as site:
        time.sleep(form.lived_s)
        since_ns = time.time_ns()
        site.kill([KEPT])
        site.ground.readdress(KEPT, "10.77.0.103")
        site.start(KEPT)
        site.wait_bound()
        healed_s = site.wait_one(HEALED_WITHIN_S, form.hold_s)
        dead = [event for event in site.events("dead", since_ns) if event["member"] != KEPT]
        return Outcome(healed_s, len(dead))


def changed_address_while_running(form: Form) -> Outcome:
    """One host's address changes under its node, which runs on."""
    with Site(form.profile, everywhere=True) as site:
        return _after_moves(site, form, {KEPT: "10.77.0.103"})


def stranded_address_while_running(form: Form) -> Outcome:
    """One host gets another address and keeps the old one, where nobody reaches it."""
    with Site(form.profile, everywhere=True) as site:
        old = site.ground.addresses[KEPT]
        site.ground.do(KEPT, "ip", "addr", "add", f"{old}/32", "dev", "lo")
        site.ground.do(KEPT, "iptables", "-w", "-A", "INPUT", "-d", old, "-j", "DROP")
        return _after_moves(site, form, {KEPT: "10.77.0.103"})


def changed_addresses_while_running(form: Form) -> Outcome:
    """Two addresses change under nodes that run on, the seed's among them."""
    with Site(form.profile, everywhere=True) as site:
        moves = {host: f"10.77.0.{100 + n}" for n, host in enumerate(HOSTS[:2], 1)}
        return _after_moves(site, form, moves)


def swapped_addresses_while_running(form: Form) -> Outcome:
    """Each host takes the address of the next under its node, which runs on."""
    with Site(form.profile, everywhere=True) as site:
        addresses = [site.ground.addresses[host] for host in HOSTS]
        turned = addresses[1:] + addresses[:1]
        return _after_moves(site, form, dict(zip(HOSTS, turned, strict=True)))


def mass_restart(form: Form) -> Outcome:
    """All crash together, and are started without seeds."""
    with Site(form.profile) as site:
        time.sleep(form.lived_s)
        site.kill()
        for host in HOSTS:
            site.start(host)
        return _after_restart(site, form)


def cut_and_mass_restart(form: Form) -> Outcome:
    """All crash together and start again while nothing passes between the halves."""
    with Site(form.profile) as site:
        time.sleep(form.lived_s)
        site.ground.cut(*HALVES, "DROP")
        site.kill()
        for host in HOSTS:
            site.start(host)
        site.wait_apart(HALVES, START_TIMEOUT_S)
        since_ns = time.time_ns()
        time.sleep(form.fault_s)
        site.ground.heal()
        healed_s = site.wait_one(HEALED_WITHIN_S, form.hold_s)
        return Outcome(healed_s, len(site.events("dead", since_ns)))


def mass_restart_elsewhere(form: Form) -> Outcome:
    """All crash together, and all but one come back with other addresses, the seeds' old one in their hands."""
    with Site(form.profile) as site:
        old_seed = site.address(HOSTS[0])
        time.sleep(form.lived_s)
        site.kill()
        for number, host in enumerate(HOSTS, 1):
            if host != KEPT:
                site.ground.readdress(host, f"10.77.0.{100 + number}")
        for host in HOSTS:
            site.start(host, *([old_seed] if host != HOSTS[0] else []))
        return _after_restart(site, form)


def mass_restart_swapped(form: Form) -> Outcome:
    """All crash together, and each comes back with the address of the next."""
    with Site(form.profile) as site:
        time.sleep(form.lived_s)
        site.kill()
        addresses = [site.ground.addresses[host] for host in HOSTS]
        for host, address in zip(HOSTS, addresses[1:] + addresses[:1], strict=True):
            site.ground.readdress(host, address)
        for host in HOSTS:
            site.start(host)
        return _after_restart(site, form)


def storm(form: Form) -> Outcome:
    """Cuts, losses, crashes and changed addresses, one after another."""
    with Site(form.profile) as site:
        time.sleep(form.lived_s)
        gale = Storm(site, next(_seeds), KEPT)
        gale.rage(form.long_cut_s)
        gale.end()
        try:
            site.wait_bound()
            healed_s = site.wait_one(HEALED_WITHIN_S, form.hold_s)
        except SiteError as error:
            raise SiteError("\n".join([*gale.told, str(error)])) from None
        return Outcome(healed_s, None)


QUICK: tuple[Scenario, ...] = (
    cut_in_silence,
    cut_with_refusals,
    cut_one_way,
    loss,
    changed_address,
    changed_address_while_running,
    mass_restart_elsewhere,
)
"""What every check plays. On the quick profile any cut is longer than every timeout."""

ALL = (
    *QUICK,
    cut_and_new_key,
    cut_between_two,
    long_cut,
    stranded_address_while_running,
    changed_addresses_while_running,
    swapped_addresses_while_running,
    mass_restart,
    mass_restart_swapped,
    cut_and_mass_restart,
    storm,
)


def _cut_between_halves(form: Form, how: How, fault_s: float) -> Outcome:
    with Site(form.profile) as site:
        return _cut_and_heal(site, form, how, fault_s)


def _cut_and_heal(site: Site, form: Form, how: How, fault_s: float) -> Outcome:
    since_ns = time.time_ns()
    began = time.monotonic()
    site.ground.cut(*HALVES, how)
    site.wait_apart(HALVES, START_TIMEOUT_S)
    time.sleep(max(0.0, fault_s - (time.monotonic() - began)))
    site.ground.heal()
    healed_s = site.wait_one(HEALED_WITHIN_S, form.hold_s)
    return Outcome(healed_s, _accused_by_own_half(site, since_ns))


def _after_moves(site: Site, form: Form, moves: dict[str, str]) -> Outcome:
    """Give hosts other addresses while their nodes run; each is told once, and nobody dies of it."""
    before = {row.name: row for row in site.views()[KEPT]}
    since_ns = time.time_ns()
    for host, address in moves.items():
        site.ground.readdress(host, address)
    healed_s = site.wait_one(HEALED_WITHIN_S, form.hold_s)
    settled_ns = time.time_ns() - int(form.hold_s * 1e9)
    for row in site.views()[KEPT]:
        assert row.boot == before[row.name].boot, f"a node was started anew{site.story()}"
    for host in moves:
        told = [
            event["observer"]
            for kind in ("update", "refute", "return")
            for event in site.events(kind, since_ns)
            if event["member"] == host
            and any(
                said in text
                for said in (f"was at {before[host].address} ", f"longer at {before[host].address}")
                for text in (*event["evidence"], event["detail"])
            )
        ]
        assert sorted(told) == list(HOSTS), f"told at {told}{site.story()}"
    assert not site.events("suspect", settled_ns), f"it did not come to rest{site.story()}"
    return Outcome(healed_s, len(site.events("dead", since_ns)))


def _after_restart(site: Site, form: Form) -> Outcome:
    since_ns = time.time_ns()
    site.wait_bound()
    healed_s = site.wait_one(HEALED_WITHIN_S, form.hold_s)
    return Outcome(healed_s, len(site.events("dead", since_ns)))


def _accused_by_own_half(site: Site, since_ns: int) -> int:
    return sum(
        any({event["observer"], event["member"]} <= set(half) for half in HALVES)
        for event in site.events("dead", since_ns)
    )
