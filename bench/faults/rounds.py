"""One victim after the other: an act is done to each, and all find together again in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from bench.faults.scene import Scene

REST_S: Final = 1.0

Act = Callable[[Scene, str], None]


def each(scene: Scene, among: Callable[[int], Sequence[str]], act: Act) -> None:
    """Apply an act to a victim that is busy, let all find together again, and so on with the next."""
    for number in scene.rounds():
        victim = scene.victim(among(number))
        if victim is None:
            return
        scene.applied += 1
        act(scene, victim)
        scene.stage.wait_whole()
        scene.hold(REST_S)
