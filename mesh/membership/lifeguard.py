"""Which of Lifeguard's parts, and of ours beyond it, are at work; each can be switched off by itself.

SWIM accuses a healthy member when the *observer* is slow: it misses an ack that has long arrived.
Lifeguard makes an observer ask how healthy it is itself, and gives a suspicion that nobody else
shares more time. Ours goes on from there: an observer that hears nobody, that slept, or that accuses
much of the mesh alone, has reason to doubt itself first.

Source: the three parts of [Lifeguard]: self-awareness, dynamic suspicion, buddy system.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeguardConfig:
    """The defaults are all of it. `plain_swim` and `paper` are there to be compared with."""

    health_max: int = 8
    """The worst health score; probes slow down to `health_max + 1` times the period. 0: off."""

    confirmations: int = 2
    """How many others must share a suspicion until it runs out soonest. 0: each does from the start."""

    suspicion_factor: float = 6.0
    """How much longer a suspicion lasts that nobody shares. 1: off."""

    has_nacks: bool = True
    """Relays say when they had no answer either, so that silence of a relay counts against oneself."""

    tells_suspect: bool = True
    """Whoever pings a suspect tells it first, so that it can refute at once."""

    has_pause_awareness: bool = True
    """After a pause of its own a node voids its probe and gives suspicions the time that it slept."""

    has_self_doubt: bool = True
    """A node that hears nobody, or alone accuses much of the mesh, waits before it declares a death.

    One that hears not even itself waits as long as that lasts. Once it hears again, suspects get a moment to be heard."""

    checks_deaths: bool = True
    """A death told of a member that was no suspect here, or only just, is a suspicion first, for a moment."""

    observers: int = 4
    """K: how many others watch a member. More: found sooner, and no packets more. 1 to 16."""

    has_lifelines: bool = True
    """A member keeps an idle stream to each of its observers, whose end tells them at once of its crash.

    False: silence alone tells of a death, and no obituary is written either.
    """

    has_turns: bool = True
    """A member pings its observers by turns, and they look at it at once if it is missed or suspected.

    Without: the random round of SWIM, and suspicions that last the longer the larger the mesh."""

    @property
    def lifelines(self) -> int:
        """How many lifelines a member keeps."""
        return self.observers if self.has_lifelines else 0


def plain_swim() -> LifeguardConfig:
    """Return SWIM alone."""
    return LifeguardConfig(
        health_max=0,
        confirmations=0,
        suspicion_factor=1.0,
        has_nacks=False,
        tells_suspect=False,
        has_pause_awareness=False,
        has_self_doubt=False,
        checks_deaths=False,
        has_lifelines=False,
        has_turns=False,
    )


def paper() -> LifeguardConfig:
    """Return SWIM with Lifeguard, and nothing of ours."""
    return LifeguardConfig(
        has_pause_awareness=False,
        has_self_doubt=False,
        checks_deaths=False,
        has_lifelines=False,
        has_turns=False,
    )
