"""Everything at once: a seeded run of cuts, losses, crashes and changed addresses, one after another.

The seed decides what happens and when; what the mesh makes of it depends on the machine too. One host
never changes its address: did all, nobody could find anybody.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from tests.net.ground import How
from tests.net.site import HOSTS, Site

STEP_S_MAX = 4.0


class Storm:
    """Lets one thing after another befall a site, and remembers what."""

    def __init__(self, site: Site, seed: int, kept: str) -> None:
        self._site = site
        self._kept = kept
        self._rng = random.Random(seed)
        self._down: set[str] = set()
        self._next_address = 101
        self.told: list[str] = [f"seed {seed}"]

    def rage(self, duration_s: float) -> None:
        """Do something every few seconds."""
        steps: tuple[Callable[[], None], ...] = (
            self._cut,
            self._cut_one_way,
            self._lose,
            self._heal,
            self._kill,
            self._start,
            self._start,
        )
        until = time.monotonic() + duration_s
        while time.monotonic() < until:
            self._rng.choice(steps)()
            time.sleep(self._rng.uniform(0.2, STEP_S_MAX))

    def end(self) -> None:
        """Take every fault away and start whoever is down."""
        self._heal()
        while self._down:
            self._start()

    def _tell(self, text: str) -> None:
        self.told.append(f"{time.strftime('%H:%M:%S')} {text}")

    def _some(self) -> list[str]:
        return sorted(self._rng.sample(HOSTS, self._rng.randint(1, len(HOSTS) - 1)))

    def _how(self) -> How:
        return self._rng.choice(("DROP", "REJECT"))

    def _cut(self) -> None:
        some, how = self._some(), self._how()
        self._tell(f"cut {some} off: {how}")
        self._site.ground.cut(some, set(HOSTS) - set(some), how)

    def _cut_one_way(self) -> None:
        some, how = self._some(), self._how()
        self._tell(f"{some} are heard by nobody else: {how}")
        self._site.ground.cut_one_way(some, set(HOSTS) - set(some), how)

    def _lose(self) -> None:
        self._tell("30 % lost")
        self._site.ground.lose(0.3)

    def _heal(self) -> None:
        self._tell("healed")
        self._site.ground.heal()

    def _kill(self) -> None:
        victims = [host for host in self._some() if host not in self._down]
        self._tell(f"killed {victims}")
        self._site.kill(victims)
        self._down |= set(victims)

    def _start(self) -> None:
        if not self._down:
            return
        host = self._rng.choice(sorted(self._down))
        self._down.discard(host)
        if host != self._kept and self._rng.random() < 0.5:
            self._site.ground.readdress(host, f"10.77.0.{self._next_address}")
            self._next_address += 1
        self._tell(f"started {host} at {self._site.address(host)}")
        self._site.start(host)
