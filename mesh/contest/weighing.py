"""Weights as people set them for a queue, as its register and calls carry them, and as a fitness is reckoned by them.

    cpu=0.5 ──read──► Weighing: in the queue's register, and in each call ──weights_of──► Weights

A part that nobody can tell of others yet is not weighed: each member would count it for itself, and one half for the rest.

Source: our own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import lru_cache
from typing import Final, TypeAlias

from mesh.contest.fitness import DEFAULT_WEIGHTS, Weights
from mesh.errors import ConfigError
from mesh.wire.contest_messages import WEIGHED, Weighing

UNKNOWN: Final[Mapping[str, str]] = {
    "checkpoint": "tasks have no checkpoints yet that a member could hold",
    "warm": "members load no apps ahead yet",
    "zone": "tasks do not say yet where their inputs are; ask for a label of the member instead",
}
"""The parts that are not weighed, and why: what knows of one of them takes it out of here and into `WEIGHED`."""

KNOWN_SETS_MAX: Final = 256

Given: TypeAlias = Mapping[str, float | None]
"""What is to be set: parts, and what each is to weigh; None: what it does by default. No part at all: all do."""


def weighing(weights: Weights) -> Weighing:
    """Return weights as they are sent and kept; the default ones are none at all."""
    if weights == DEFAULT_WEIGHTS:
        return ()
    found = {name: float(getattr(weights, name)) for name in WEIGHED}
    return tuple((name, weight) for name, weight in found.items() if weight > 0)


@lru_cache(maxsize=KNOWN_SETS_MAX)
def weights_of(told: Weighing) -> Weights:
    """Return the weights that were sent or kept. O(parts), O(1) for those that were seen of late."""
    if not told:
        return DEFAULT_WEIGHTS
    return Weights(**{field.name: 0.0 for field in fields(Weights)} | dict(told))


def merged(before: Weighing, given: Given) -> Weighing:
    """Return what is set once these are, on top of what was: parts that are not named stay; none at all sets all back.

    Raises:
        ConfigError: there is no such part, or it is not weighed, or its weight is none, or nothing is left that counts.
    """
    if not given:
        return ()
    for name in given:
        if name in UNKNOWN:
            raise ConfigError(
                f"contest weight {name}: it cannot be set, as {UNKNOWN[name]}; parts that can are {', '.join(WEIGHED)}"
            )
        if name not in WEIGHED:
            raise ConfigError(
                f"contest weight: a part of a fitness is one of {', '.join(WEIGHED)}; found {name[:40]!r}"
            )
    weights = {
        name: getattr(DEFAULT_WEIGHTS, name) if weight is None else weight
        for name, weight in given.items()
    }
    return weighing(replace(weights_of(before), **weights))


def shown(told: Weighing) -> dict[str, float]:
    """Return what each part weighs, those too that count for nothing."""
    weights = weights_of(told)
    return {name: getattr(weights, name) for name in WEIGHED}
